package workflows

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows/seal"
)

// Client calls polyphony through Temporal. It addresses workspaces, never
// workers. Its methods are safe for concurrent use; every error they return is
// a *record.Error.
type Client struct {
	temporal client.Client
	shards   int
	// heartbeats reads what activities say of themselves, which the connection
	// does not decode.
	heartbeats converter.DataConverter
}

// NewClient makes a client over a Temporal connection, which the caller keeps
// and closes. shards must be what the workers run with; 1 for one machine.
func NewClient(t client.Client, shards int) *Client {
	return &Client{temporal: t, shards: max(1, shards), heartbeats: converter.GetDefaultDataConverter()}
}

// WithKeys makes the client show the progress of long calls, like the
// installation of a model, also where heartbeats are sealed. What it sends and
// receives is sealed by the connection.
func (c *Client) WithKeys(r *seal.Ring) *Client {
	var opts client.Options
	seal.Configure(&opts, r)
	with := *c
	with.heartbeats = opts.DataConverter
	return &with
}

// start is how one kind of call becomes a workflow.
type start struct {
	id       string
	workflow any
	caller   record.Caller
	domain   string
	reuse    enumspb.WorkflowIdReusePolicy
	summary  string
	// queue is the task queue; "" is that of the workspace.
	queue string
}

func (c *Client) options(s start) client.StartWorkflowOptions {
	attributes := []temporal.SearchAttributeUpdate{AttributeWorkspace.ValueSet(s.caller.Workspace)}
	if s.caller.Agent != "" {
		attributes = append(attributes, AttributeAgent.ValueSet(s.caller.Agent))
	}
	if s.domain != "" {
		attributes = append(attributes, AttributeDomain.ValueSet(s.domain))
	}
	return client.StartWorkflowOptions{
		ID: s.id, TaskQueue: cmp.Or(s.queue, TaskQueue(s.caller.Workspace, c.shards)),
		WorkflowIDReusePolicy: s.reuse, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		TypedSearchAttributes: temporal.NewSearchAttributes(attributes...),
		StaticSummary:         s.summary,
		Memo:                  map[string]any{"workspace": s.caller.Workspace, "agent": s.caller.Agent, "role": s.caller.Role, "repo": s.caller.Repo},
	}
}

// run starts the workflow, or joins the one that has its id, and waits for its
// result.
func run[Out any](ctx context.Context, c *Client, s start, in any) (Out, error) {
	var out Out
	if err := s.caller.Check(); err != nil {
		return out, err
	}
	if err := checkSize(in); err != nil {
		return out, err
	}
	wr, err := c.temporal.ExecuteWorkflow(ctx, c.options(s), s.workflow, in)
	var closed *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &closed) {
		// Closed under this id: its result is the answer.
		wr, err = c.temporal.GetWorkflow(ctx, s.id, ""), nil
	}
	if err == nil {
		err = wr.Get(ctx, &out)
	}
	return out, FromTemporal(within(s.id, err))
}

// runError is what went wrong with the run of one workflow.
type runError struct {
	id  string
	err error
}

func (e *runError) Error() string { return "workflow " + e.id + ": " + e.err.Error() }
func (e *runError) Unwrap() error { return e.err }

// within says which workflow an error is of.
func within(id string, err error) error {
	if err == nil {
		return nil
	}
	return &runError{id: id, err: err}
}

// IDOf returns the id of the workflow that an error with a cause is of, for
// logs; "" when it is of none.
func IDOf(err error) string {
	var e *runError
	if !errors.As(err, &e) {
		return ""
	}
	return e.id
}

// checkSize refuses what would not fit a payload or lose bytes on its way,
// before anything is sent.
func checkSize(in any) error {
	if err := record.CheckUTF8(in); err != nil {
		return err
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return record.Wrap(record.InvalidArgument, err, "the request cannot be encoded")
	}
	if len(raw) > record.MaxRequestBytes {
		return record.Errorf(record.PayloadTooLarge, "", "the request has %d bytes, over the limit of %d", len(raw), record.MaxRequestBytes)
	}
	return nil
}

// FromTemporal turns an error of a Temporal client into ours: the store's own
// one when it is in there, else Unavailable.
func FromTemporal(err error) error {
	if err == nil {
		return nil
	}
	var own *record.Error
	if errors.As(err, &own) {
		return own
	}
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		e := &record.Error{Code: record.Code(app.Type()), Message: app.Message()}
		if app.HasDetails() {
			// Details of another shape leave the name and message standing.
			_ = app.Details(e)
		}
		if e.Code.Known() {
			return e
		}
		return record.Wrap(record.Unavailable, err, "the worker failed")
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, new(*serviceerror.DeadlineExceeded)):
		return record.Wrap(record.Unavailable, err, "no answer in time; is the worker running?")
	case errors.Is(err, context.Canceled), errors.As(err, new(*serviceerror.Canceled)):
		return record.Wrap(record.Unavailable, err, "the call was cancelled")
	case temporal.IsCanceledError(err):
		return record.Wrap(record.Unavailable, err, "the run was cancelled")
	}
	return record.Wrap(record.Unavailable, err, "the engine cannot be reached; is the worker running?")
}

// write runs a keyed call. Without a key it makes one, so that the engine's own
// retries are safe. The receipt shows whether the answer is to this request or
// to an earlier, different one under the same key.
func write[In record.Request, Out interface{ Hash() string }](ctx context.Context, c *Client, kind string, workflow any, domain string, in In) (Out, error) {
	hash := record.RequestHash(kind, in)
	caller := in.Origin()
	id := ID(kind, caller.Workspace, caller.Key)
	if caller.Key == "" {
		var err error
		if id, err = freshID(kind, caller.Workspace); err != nil {
			var none Out
			return none, err
		}
	}
	out, err := run[Out](ctx, c, start{
		id: id, workflow: workflow, caller: caller, domain: domain,
		reuse: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY, summary: kind,
	}, in)
	return out, checkReceipt(out, hash, err)
}

func checkReceipt[Out interface{ Hash() string }](out Out, hash string, err error) error {
	if err == nil && out.Hash() != "" && out.Hash() != hash {
		return record.Errorf(record.IdempotencyKeyReused, "key", "the key was used before with another request")
	}
	return err
}

// ProposeFact adds a fact, or finds that it is known, refines or contradicts
// what is known. A trial leaves its key to the proposal that may follow.
func (c *Client) ProposeFact(ctx context.Context, in record.ProposeFact) (record.ProposeFactResult, error) {
	if in.DryRun {
		in.Key = ""
	}
	return write[record.ProposeFact, record.ProposeFactResult](ctx, c, record.KindProposeFact, ProposeFact, in.Domain, in)
}

// SupersedeFact retires one fact in favour of another.
func (c *Client) SupersedeFact(ctx context.Context, in record.SupersedeFact) (record.SupersedeFactResult, error) {
	return write[record.SupersedeFact, record.SupersedeFactResult](ctx, c, record.KindSupersedeFact, SupersedeFact, "", in)
}

// RestoreFact undoes a supersession or an archiving.
func (c *Client) RestoreFact(ctx context.Context, in record.RestoreFact) (record.RestoreFactResult, error) {
	return write[record.RestoreFact, record.RestoreFactResult](ctx, c, record.KindRestoreFact, RestoreFact, "", in)
}

// ProposePolicy adds a policy.
func (c *Client) ProposePolicy(ctx context.Context, in record.ProposePolicy) (record.PolicyResult, error) {
	return write[record.ProposePolicy, record.PolicyResult](ctx, c, record.KindProposePolicy, ProposePolicy, in.Domain, in)
}

// SupersedePolicy retires a policy, with or without a replacement.
func (c *Client) SupersedePolicy(ctx context.Context, in record.SupersedePolicy) (record.PolicyResult, error) {
	return write[record.SupersedePolicy, record.PolicyResult](ctx, c, record.KindSupersedePolicy, SupersedePolicy, "", in)
}

// UpdateFact is a person's edit of a fact.
func (c *Client) UpdateFact(ctx context.Context, in record.UpdateFact) (record.UpdateFactResult, error) {
	return write[record.UpdateFact, record.UpdateFactResult](ctx, c, record.KindUpdateFact, UpdateFact, "", in)
}

// DeleteFact removes a fact for good, on a person's word.
func (c *Client) DeleteFact(ctx context.Context, in record.DeleteFact) (record.DeleteFactResult, error) {
	return write[record.DeleteFact, record.DeleteFactResult](ctx, c, record.KindDeleteFact, DeleteFact, "", in)
}

// UpdatePolicy is a person's edit of a policy.
func (c *Client) UpdatePolicy(ctx context.Context, in record.UpdatePolicy) (record.UpdatePolicyResult, error) {
	return write[record.UpdatePolicy, record.UpdatePolicyResult](ctx, c, record.KindUpdatePolicy, UpdatePolicy, "", in)
}

// DeletePolicy removes a policy for good, on a person's word.
func (c *Client) DeletePolicy(ctx context.Context, in record.DeletePolicy) (record.DeletePolicyResult, error) {
	return write[record.DeletePolicy, record.DeletePolicyResult](ctx, c, record.KindDeletePolicy, DeletePolicy, "", in)
}

// DeleteGrant takes a role's grant in a domain back.
func (c *Client) DeleteGrant(ctx context.Context, in record.DeleteGrant) (record.SetGrantResult, error) {
	return write[record.DeleteGrant, record.SetGrantResult](ctx, c, record.KindDeleteGrant, DeleteGrant, in.Domain, in)
}

// SetGrant gives a role a level in a domain.
func (c *Client) SetGrant(ctx context.Context, in record.SetGrant) (record.SetGrantResult, error) {
	return write[record.SetGrant, record.SetGrantResult](ctx, c, record.KindSetGrant, SetGrant, in.Domain, in)
}

// Remember stores a session item.
func (c *Client) Remember(ctx context.Context, in record.Remember) (record.RememberResult, error) {
	return write[record.Remember, record.RememberResult](ctx, c, record.KindRemember, Remember, in.Domain, in)
}

// RecordObservation appends a line to the agent's notes.
func (c *Client) RecordObservation(ctx context.Context, in record.RecordObservation) (record.RecordObservationResult, error) {
	return write[record.RecordObservation, record.RecordObservationResult](ctx, c, record.KindRecordObservation, RecordObservation, "", in)
}

// UpdateNotes replaces the agent's page.
func (c *Client) UpdateNotes(ctx context.Context, in record.UpdateNotes) (record.UpdateNotesResult, error) {
	return write[record.UpdateNotes, record.UpdateNotesResult](ctx, c, record.KindUpdateNotes, UpdateNotes, "", in)
}

// ResolveConflict closes an open conflict row.
func (c *Client) ResolveConflict(ctx context.Context, in record.ResolveConflict) (record.ResolveConflictResult, error) {
	return write[record.ResolveConflict, record.ResolveConflictResult](ctx, c, record.KindResolveConflict, ResolveConflict, "", in)
}

// AssemblePreamble makes the text that an agent gets at dispatch.
func (c *Client) AssemblePreamble(ctx context.Context, in record.Dispatch) (record.Preamble, error) {
	return write[record.Dispatch, record.Preamble](ctx, c, record.KindPreamble, AssemblePreamble, "", in)
}

// CaptureMeetingDecisions takes one revision of a meeting's decisions; its id
// and revision are the idempotency key.
func (c *Client) CaptureMeetingDecisions(ctx context.Context, in record.CaptureMeeting) (record.MeetingReport, error) {
	if err := in.CheckSize(); err != nil {
		return record.MeetingReport{}, err
	}
	in.Key = record.RequestHash(record.KindCaptureMeeting, in)
	out, err := run[record.MeetingReport](ctx, c, start{
		id: MeetingID(in.Workspace, in.MeetingID, in.Revision), workflow: CaptureMeetingDecisions, caller: in.Caller, domain: "decisions",
		reuse: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY, summary: fmt.Sprintf("%d decisions", len(in.Decisions)),
	}, in)
	return out, checkReceipt(out, in.Key, err)
}

// SearchMemory recalls what is relevant to a query.
func (c *Client) SearchMemory(ctx context.Context, in record.Search) (record.SearchResult, error) {
	id, err := freshID(record.KindSearch, in.Workspace)
	if err != nil {
		return record.SearchResult{}, err
	}
	return run[record.SearchResult](ctx, c, start{id: id, workflow: SearchMemory, caller: in.Caller, domain: in.Domain, summary: record.KindSearch}, in)
}

func freshID(kind, workspace string) (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", record.Wrap(record.Unavailable, err, "no randomness for an id")
	}
	return ID(kind, workspace, id.String()), nil
}

// ReadPage reads one page of rows of T, which must be the type of in.What.
func ReadPage[T any](ctx context.Context, c *Client, in record.ReadMemory) (record.Page[T], error) {
	var page record.Page[T]
	id, err := freshID(record.KindRead, in.Workspace)
	if err != nil {
		return page, err
	}
	raw, err := run[record.Page[json.RawMessage]](ctx, c, start{id: id, workflow: ReadMemory, caller: in.Caller, domain: in.Domain, summary: string(in.What)}, in)
	if err != nil {
		return page, err
	}
	page.Next = raw.Next
	page.Items = make([]T, len(raw.Items))
	for i, r := range raw.Items {
		if err := json.Unmarshal(r, &page.Items[i]); err != nil {
			return page, record.Wrap(record.Unavailable, err, "the worker's answer cannot be read; is it of another version?")
		}
	}
	return page, nil
}

// ReadAll reads every page of a read.
func ReadAll[T any](ctx context.Context, c *Client, in record.ReadMemory) ([]T, error) {
	rows := []T{}
	for {
		page, err := ReadPage[T](ctx, c, in)
		if err != nil {
			return nil, err
		}
		rows = append(rows, page.Items...)
		if page.Next == "" {
			return rows, nil
		}
		in.Cursor = page.Next
	}
}

// readOne reads a kind that has exactly one row.
func readOne[T any](ctx context.Context, c *Client, in record.ReadMemory) (T, error) {
	page, err := ReadPage[T](ctx, c, in)
	if err == nil && len(page.Items) != 1 {
		// A workspace that does not exist holds nothing.
		err = record.Errorf(record.NotFound, "workspace", "there is no workspace %s", in.Workspace)
	}
	if err != nil {
		var none T
		return none, err
	}
	return page.Items[0], nil
}

// History reads the whole chain that a fact belongs to.
func (c *Client) History(ctx context.Context, caller record.Caller, factID string) (record.FactHistory, error) {
	h := record.FactHistory{FactID: factID, Chain: []record.Fact{}, Events: []record.FactEvent{}}
	rows, err := ReadAll[record.HistoryRow](ctx, c, record.ReadMemory{Caller: caller, What: record.ReadHistory, ID: factID})
	if err == nil && len(rows) == 0 {
		// A workspace that does not exist holds nothing.
		err = record.Errorf(record.NotFound, "workspace", "there is no workspace %s", caller.Workspace)
	}
	for _, r := range rows {
		switch {
		case r.Fact != nil:
			h.Chain = append(h.Chain, *r.Fact)
		case r.Version != nil:
			h.Versions = append(h.Versions, *r.Version)
		case r.Event != nil:
			h.Events = append(h.Events, *r.Event)
		}
	}
	return h, err
}

// Notes reads the calling agent's page; one never written is empty at version
// 0.
func (c *Client) Notes(ctx context.Context, caller record.Caller) (record.Notes, error) {
	n, err := readOne[record.Notes](ctx, c, record.ReadMemory{Caller: caller, What: record.ReadNotes})
	if record.ErrorCode(err) == record.NotFound {
		return record.Notes{Agent: caller.Agent}, nil
	}
	return n, err
}

// Health reads the state of a workspace's file; deep checks every page of it.
func (c *Client) Health(ctx context.Context, caller record.Caller, deep bool) (record.Health, error) {
	return readOne[record.Health](ctx, c, record.ReadMemory{Caller: caller, What: record.ReadHealth, All: deep})
}

// ConsolidateMemory puts memory in order; while a run is under way it joins
// it. onProgress, when not nil, is told about it about every second.
func (c *Client) ConsolidateMemory(ctx context.Context, in record.Consolidate, onProgress func(MaintenanceProgress)) (record.ConsolidationReport, error) {
	return maintenance[record.ConsolidationReport](ctx, c, trial(record.KindConsolidate, in.DryRun), ConsolidateMemory, in.Caller, ConsolidateInput{Consolidate: in}, onProgress)
}

// HarmonizeMemory finds what several agents hold and where they disagree;
// while a run is under way it joins it.
func (c *Client) HarmonizeMemory(ctx context.Context, in record.Harmonize, onProgress func(MaintenanceProgress)) (record.HarmonizationReport, error) {
	return maintenance[record.HarmonizationReport](ctx, c, trial(record.KindHarmonize, in.DryRun), HarmonizeMemory, in.Caller, HarmonizeInput{Harmonize: in}, onProgress)
}

// trial keeps a dry run from joining a real run, and the other way round.
func trial(kind string, dryRun bool) string {
	if dryRun {
		return kind + "-dry-run"
	}
	return kind
}

// ReferSuspicions makes sure that a run of the judge looks at the suspected
// pairs of the caller's workspace, and does not wait for it.
func (c *Client) ReferSuspicions(ctx context.Context, caller record.Caller) error {
	if err := caller.Check(); err != nil {
		return err
	}
	id := MaintenanceID(record.KindJudge, caller.Workspace)
	o := c.options(start{id: id, caller: caller, reuse: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, summary: record.KindJudge})
	_, err := c.temporal.SignalWithStartWorkflow(ctx, id, SignalSuspected, nil, o, JudgeConflicts, JudgeInput{Caller: caller})
	return FromTemporal(err)
}

// maintenanceQueue is where work runs that nobody waits for by the millisecond.
func (c *Client) maintenanceQueue(caller record.Caller) string {
	return MaintenanceQueue(Shard(caller.Workspace, c.shards))
}

func maintenance[Out, P any](ctx context.Context, c *Client, kind string, workflow any, caller record.Caller, in any, onProgress func(P)) (Out, error) {
	id := MaintenanceID(kind, caller.Workspace)
	s := start{
		id: id, workflow: workflow, caller: caller, queue: c.maintenanceQueue(caller), summary: kind,
		reuse: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}
	if onProgress == nil {
		return run[Out](ctx, c, s, in)
	}
	return watched[Out](ctx, c, s, in, func() {
		// A query that fails only leaves the bar where it is.
		if v, err := c.temporal.QueryWorkflow(ctx, id, "", QueryProgress); err == nil {
			var p P
			if v.Get(&p) == nil {
				onProgress(p)
			}
		}
	})
}

// watched is run that looks about every second how far it is.
func watched[Out any](ctx context.Context, c *Client, s start, in any, look func()) (Out, error) {
	type answer struct {
		out Out
		err error
	}
	done := make(chan answer, 1)
	go func() {
		out, err := run[Out](ctx, c, s, in)
		done <- answer{out, err}
	}()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case a := <-done:
			return a.out, a.err
		case <-ticker.C:
			look()
		}
	}
}
