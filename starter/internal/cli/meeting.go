package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// minutes is the file that the meeting command reads.
type minutes struct {
	MeetingID string          `json:"meeting_id"`
	Title     string          `json:"title"`
	HeldAt    json.RawMessage `json:"held_at"`
	Revision  int64           `json:"revision"`
	// Decisions must be there: an empty list withdraws what was decided, and
	// that must not come of a misspelt name.
	Decisions *[]record.Decision `json:"decisions"`
	Attendees []string           `json:"attendees"`
}

func (a *app) meeting() *cobra.Command {
	return fileCommand(&cobra.Command{
		Use: "meeting FILE", Short: "Capture the decisions of one meeting from a JSON file (- is standard input)",
		Long: `meeting reads a file like

  {"meeting_id": "weekly-31", "title": "Weekly", "held_at": "2026-07-31T09:00:00Z", "revision": 1,
   "decisions": [{"text": "We ship on Friday", "topic": "release", "decided_by": "Ada"}]}

and makes each decision a fact. The same revision again changes nothing; a later one adds what is new and withdraws
what it no longer holds.`,
		Args: positional("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.caller.Check(); err != nil {
				return err
			}
			in, err := a.readMinutes(args[0])
			if err != nil {
				return err
			}
			out, err := call(cmd.Context(), a, func(ctx context.Context, b backend) (record.MeetingReport, error) {
				return b.CaptureMeetingDecisions(ctx, in)
			})
			if err != nil {
				return err
			}
			if out.Failed == nil {
				out.Failed = []record.ItemError{}
			}
			if out.FactIDs == nil {
				out.FactIDs = []string{}
			}
			return a.emit(out, func(o *output) { captured(o, out) })
		},
	})
}

func (a *app) readMinutes(name string) (record.CaptureMeeting, error) {
	var none record.CaptureMeeting
	text, err := a.readText("", name, record.MaxRequestBytes)
	if record.ErrorCode(err) == record.ContentTooLarge {
		return none, record.Errorf(record.PayloadTooLarge, "", "the file is over the limit of %d bytes", record.MaxRequestBytes)
	}
	if err != nil {
		return none, err
	}
	var m minutes
	if err := decodeStrict(text, &m); err != nil {
		return none, err
	}
	if m.Decisions == nil {
		return none, hinted(usage("decisions", "the file has no list of decisions"), `"decisions": [] when all were taken back`)
	}
	in := record.CaptureMeeting{Caller: a.caller, MeetingID: m.MeetingID, Title: m.Title, Revision: m.Revision, Decisions: *m.Decisions, Attendees: m.Attendees}
	if len(m.HeldAt) > 0 {
		if err := json.Unmarshal(m.HeldAt, &in.HeldAt); err != nil {
			e := fieldOf(err)
			e.Field = "held_at"
			return none, e
		}
	}
	return in, nil
}

func captured(o *output, r record.MeetingReport) {
	title := fmt.Sprintf("meeting %s, revision %d", oneLine(r.MeetingID), r.Revision)
	if r.Outdated {
		o.line("%s %s; a later revision was captured before, so nothing changed", o.bold("Outdated:"), title)
		return
	}
	o.line("%s %s", o.bold("Captured"), title)
	o.line("  %d added, %d re-mentioned, %d withdrawn; %s now", r.Added, r.ReMentioned, r.Withdrawn, count(len(r.FactIDs), "decision", "decisions"))
	for _, f := range r.Failed {
		o.line("  decision %d was not taken: %s", f.Index, itemError(f.Code, f.Message, f.Field))
	}
}

// itemError writes the error of one item.
func itemError(code record.Code, message, field string) string {
	text := string(code) + ": " + oneLine(message)
	if field != "" {
		text += " (" + oneLine(field) + ")"
	}
	return text
}
