package browser

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/polyphony-memory/polyphony/gateway"
	"github.com/polyphony-memory/polyphony/memory/record"
)

// form is what every form that changes something carries.
type form struct {
	// Version is the version that was read, Key the submission's idempotency
	// key.
	Version int64
	Key     string
	// Reason is why, for the history.
	Reason string
	// Problem is what was wrong with the submission before, Field where.
	Problem, Field string
	// Stale is true when it changed since it was read.
	Stale bool
}

func newForm(version int64) form { return form{Version: version, Key: newKey()} }

// submitted reads the fields that every form has.
//
// Errors: InvalidArgument.
func submitted(v *visit) (form, error) {
	if err := v.ParseForm(); err != nil {
		return form{}, record.Errorf(record.InvalidArgument, "", "the form cannot be read")
	}
	version, err := strconv.ParseInt(v.PostFormValue("expected_version"), 10, 64)
	if err != nil {
		return form{}, record.Errorf(record.InvalidArgument, "expected_version", "the form does not say which version was read")
	}
	return form{Version: version, Key: v.PostFormValue("key"), Reason: strings.TrimSpace(v.PostFormValue("reason"))}, nil
}

// refused prepares a form to be shown again: what a person can mend is shown
// with it, and any other error is returned. current is the version there is.
func (f *form) refused(err error, current int64) error {
	var e *record.Error
	if !errors.As(err, &e) || statusOf(e.Code) == http.StatusServiceUnavailable || e.Code == record.NotFound {
		return err
	}
	f.Problem, f.Field, f.Key = e.Message, e.Field, newKey()
	if e.Code == record.VersionConflict {
		f.Stale, f.Version = true, current
	}
	return nil
}

// status is the answer's status for a form that is shown.
func (f *form) status() int {
	switch {
	case f.Stale:
		return http.StatusConflict
	case f.Problem != "":
		return http.StatusUnprocessableEntity
	}
	return http.StatusOK
}

// lines turns the line ends of a submitted text back into those it had.
func lines(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// factForm is the content of the page that edits a fact.
type factForm struct {
	form
	Fact       factItem
	Topic      string
	Content    string
	Confidence string
	MemoryType string
	Veracity   string
	ValidUntil string
	Types      []record.MemoryType
	Veracities []record.Veracity
	// Mine and MineFields are, for a stale form, the way from what stands to
	// what was typed.
	Mine       []span
	MineFields []fieldChange
}

// untilLayout is how a form writes a time, in UTC.
const untilLayout = "2006-01-02T15:04:05"

func formOf(f factItem) factForm {
	out := factForm{
		form: newForm(f.Version), Fact: f, Topic: f.Topic, Content: f.Content, Confidence: strconv.FormatFloat(f.Confidence, 'g', -1, 64),
		MemoryType: string(f.MemoryType), Veracity: string(f.Veracity), Types: record.MemoryTypes(), Veracities: record.Veracities(),
	}
	if !f.ValidUntil.IsZero() {
		out.ValidUntil = f.ValidUntil.UTC().Format(untilLayout)
	}
	return out
}

func (h *handler) readOneFact(v *visit) (factItem, error) {
	f, err := gateway.One[record.Fact](v.ctx, h.Memory, record.ReadMemory{Caller: v.caller, What: record.ReadFact, ID: v.PathValue("id")})
	return h.item(v, f), err
}

func (h *handler) editFact(v *visit) error {
	f, err := h.readOneFact(v)
	if err != nil {
		return err
	}
	return h.showFactForm(v, formOf(f))
}

func (h *handler) showFactForm(v *visit, f factForm) error {
	return h.show(v, f.status(), "fact-edit.html", page{Title: "Edit " + f.Fact.Topic, Tab: "facts"}, f)
}

func (h *handler) saveFact(v *visit) error {
	common, err := submitted(v)
	if err != nil {
		return err
	}
	now, err := h.readOneFact(v)
	if err != nil {
		return err
	}
	typed := formOf(now)
	typed.form = common
	typed.Topic, typed.Content, typed.Confidence = v.PostFormValue("topic"), lines(v.PostFormValue("content")), v.PostFormValue("confidence")
	typed.MemoryType, typed.Veracity, typed.ValidUntil = v.PostFormValue("memory_type"), v.PostFormValue("veracity"), v.PostFormValue("valid_until")
	req, err := typed.request(v.author())
	if err == nil {
		_, err = h.Memory.Client.UpdateFact(v.ctx, req)
	}
	if err == nil {
		v.goTo(now.Link + "?saved=1")
		return nil
	}
	if err := typed.refused(err, now.Version); err != nil {
		return err
	}
	if typed.Stale {
		typed.Mine = forget(difference(now.Content, typed.Content))
		typed.MineFields = fieldChanges(versionOf(now.Fact), typed.version(req))
	}
	return h.showFactForm(v, typed)
}

// request asks for everything that was typed, changed or not, so that the same
// form sent twice is the same request.
//
// Errors: InvalidArgument.
func (f *factForm) request(author record.Caller) (record.UpdateFact, error) {
	req := record.UpdateFact{
		Caller: author, FactID: f.Fact.ID, ExpectedVersion: f.Version, Reason: f.Reason,
		Topic: &f.Topic, Content: &f.Content, MemoryType: &f.MemoryType, Veracity: &f.Veracity, ValidUntil: &record.Time{},
	}
	confidence, err := strconv.ParseFloat(strings.TrimSpace(f.Confidence), 64)
	if err != nil {
		return req, record.Errorf(record.InvalidArgument, "confidence", "confidence is a number from 0 to 1")
	}
	req.Confidence = &confidence
	if f.ValidUntil != "" {
		*req.ValidUntil, err = record.ParseTime("valid_until", f.ValidUntil)
	}
	return req, err
}

// version is what the request would make of the fact.
func (f *factForm) version(req record.UpdateFact) record.FactVersion {
	return record.FactVersion{
		Topic: f.Topic, Content: f.Content, Confidence: *req.Confidence, MemoryType: record.MemoryType(f.MemoryType),
		Veracity: record.Veracity(f.Veracity), ValidUntil: *req.ValidUntil,
	}
}

// deletion is the content of a page that asks before it deletes.
type deletion struct {
	form
	// What is deleted, its text, and where to go when it is not.
	What, Title, Text, Link string
}

func (h *handler) askDeleteFact(v *visit) error {
	f, err := h.readOneFact(v)
	if err != nil {
		return err
	}
	return h.showDeletion(v, "facts", deletion{form: newForm(f.Version), What: "fact", Title: f.Topic, Text: f.Content, Link: f.Link})
}

func (h *handler) showDeletion(v *visit, tab string, d deletion) error {
	return h.show(v, d.status(), "delete.html", page{Title: "Delete this " + d.What, Tab: tab}, d)
}

func (h *handler) deleteFact(v *visit) error {
	f, err := submitted(v)
	if err != nil {
		return err
	}
	_, err = h.Memory.Client.DeleteFact(v.ctx, record.DeleteFact{Caller: v.author(), FactID: v.PathValue("id"), ExpectedVersion: &f.Version})
	if err == nil {
		v.goTo(v.base + "?deleted=1")
		return nil
	}
	now, readErr := h.readOneFact(v)
	if readErr != nil {
		return readErr
	}
	if err := f.refused(err, now.Version); err != nil {
		return err
	}
	return h.showDeletion(v, "facts", deletion{form: f, What: "fact", Title: now.Topic, Text: now.Content, Link: now.Link})
}

func (h *handler) restoreFact(v *visit) error {
	_, err := h.Memory.Client.RestoreFact(v.ctx, record.RestoreFact{Caller: v.author(), FactID: v.PathValue("id"), Reason: "restored by hand"})
	if err != nil {
		return err
	}
	v.goTo(v.link("facts", v.PathValue("id")) + "?restored=1")
	return nil
}

// policyForm is the content of the page that edits a policy.
type policyForm struct {
	form
	Policy       policyItem
	Rule         string
	RequiredRole string
	Roles        []record.Role
	Mine         []span
}

func (h *handler) readOnePolicy(v *visit) (record.PolicyRecord, error) {
	return gateway.One[record.PolicyRecord](v.ctx, h.Memory, record.ReadMemory{Caller: v.caller, What: record.ReadPolicy, ID: v.PathValue("id")})
}

func (h *handler) editPolicy(v *visit) error {
	p, err := h.readOnePolicy(v)
	if err != nil {
		return err
	}
	return h.showPolicyForm(v, policyForm{form: newForm(p.Version), Policy: itemOf(v, p.Policy), Rule: p.Rule, RequiredRole: string(p.RequiredRole)})
}

func (h *handler) showPolicyForm(v *visit, f policyForm) error {
	f.Roles = record.Roles()
	return h.show(v, f.status(), "policy-edit.html", page{Title: "Edit a policy", Tab: "policies"}, f)
}

func (h *handler) savePolicy(v *visit) error {
	common, err := submitted(v)
	if err != nil {
		return err
	}
	now, err := h.readOnePolicy(v)
	if err != nil {
		return err
	}
	f := policyForm{form: common, Policy: itemOf(v, now.Policy), Rule: lines(v.PostFormValue("rule")), RequiredRole: v.PostFormValue("required_role")}
	_, err = h.Memory.Client.UpdatePolicy(v.ctx, record.UpdatePolicy{
		Caller: v.author(), PolicyID: now.ID, ExpectedVersion: f.Version, Reason: f.Reason,
		Rule: &f.Rule, RequiredRole: &f.RequiredRole,
	})
	if err == nil {
		v.goTo(f.Policy.Link + "?saved=1")
		return nil
	}
	if err := f.refused(err, now.Version); err != nil {
		return err
	}
	if f.Stale {
		f.Mine = forget(difference(now.Rule, f.Rule))
	}
	return h.showPolicyForm(v, f)
}

func (h *handler) askDeletePolicy(v *visit) error {
	p, err := h.readOnePolicy(v)
	if err != nil {
		return err
	}
	return h.showDeletion(v, "policies", deletion{form: newForm(p.Version), What: "policy", Title: p.Domain, Text: p.Rule, Link: itemOf(v, p.Policy).Link})
}

func (h *handler) deletePolicy(v *visit) error {
	f, err := submitted(v)
	if err != nil {
		return err
	}
	_, err = h.Memory.Client.DeletePolicy(v.ctx, record.DeletePolicy{Caller: v.author(), PolicyID: v.PathValue("id"), ExpectedVersion: &f.Version})
	if err == nil {
		v.goTo(v.link("policies") + "?deleted=1")
		return nil
	}
	now, readErr := h.readOnePolicy(v)
	if readErr != nil {
		return readErr
	}
	if err := f.refused(err, now.Version); err != nil {
		return err
	}
	return h.showDeletion(v, "policies", deletion{form: f, What: "policy", Title: now.Domain, Text: now.Rule, Link: itemOf(v, now.Policy).Link})
}

// resolve closes a conflict as the person decided.
func (h *handler) resolve(v *visit) error {
	_, err := h.Memory.Client.ResolveConflict(v.ctx, record.ResolveConflict{
		Caller: v.author(), ConflictID: v.PathValue("id"), Winner: v.PostFormValue("winner"), Reason: strings.TrimSpace(v.PostFormValue("reason")),
	})
	if err != nil {
		return err
	}
	v.goTo(v.link("conflicts") + "?resolved=1")
	return nil
}
