package browser

import (
	"time"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
)

// seeded is an invented memory of a team that runs a harbour's software.
type seeded struct{ berth string }

// seed fills a workspace as months of work would: several agents, domains and
// scripts, changed truths, an open conflict and a shared belief.
func (s *site) seed() seeded {
	s.t.Helper()
	var out seeded
	at := s.clock
	s.clock = at.AddDate(0, -3, 0)
	share := func(c float64) *float64 { return &c }
	facts := []record.ProposeFact{
		{Caller: by("ada", "coder"), Domain: "architecture", Topic: "Berth planner", Content: "The berth planner keeps its schedule in PostgreSQL 16 and publishes changes on the topic berth.changed.", Veracity: "stated", Confidence: share(0.95)},
		{Caller: by("ada", "coder"), Domain: "architecture", Topic: "Tide service", Content: "The tide service answers from a table that is computed once a night; it never calls the weather provider while a request waits.", Confidence: share(0.7)},
		{Caller: by("noor", "devops"), Domain: "operations", Topic: "Deploy window", Content: "Deploys to the quay controllers happen between 02:00 and 04:00, when no ship is alongside.", Veracity: "stated", MemoryType: "instruction"},
		{Caller: by("noor", "devops"), Domain: "operations", Topic: "Crane telemetry", Content: "Crane 7 drops telemetry when its radio roams between masts; the gap is at most 40 seconds.", Veracity: "tool", Confidence: share(0.42)},
		{Caller: by("mina", "pm"), Domain: "people", Topic: "Harbour master", Content: "The harbour master prefers a phone call to a message for anything that moves a ship.", Veracity: "stated", MemoryType: "preference"},
		{Caller: by("mina", "pm"), Domain: "people", Topic: "تماس با بندر", Content: "مسئول اسکله ۷ آقای کاوه رستمی است و فقط روزهای شنبه تا چهارشنبه پاسخ می‌دهد.", Veracity: "stated", MemoryType: "relationship"},
		{Caller: by("kei", "qa"), Domain: "quality", Topic: "潮位テスト", Content: "潮位の回帰テストは東京湾の2024年の観測値を使い、許容差は3センチメートルです。", Veracity: "inferred"},
		{Caller: by("lin", "coder"), Domain: "quality", Topic: "集装箱编号", Content: "集装箱编号必须通过 ISO 6346 校验位检查，否则闸口会拒绝。", Veracity: "imported"},
		{Caller: by("kei", "qa"), Domain: "quality", Topic: "Flaky tests", Content: "TestLockGateTimeout fails about once in 200 runs on the shared runner; the cause is the simulated clock, not the gate.", Veracity: "inferred", MemoryType: "error", Confidence: share(0.6)},
		{Caller: by("ada", "coder"), Domain: "architecture", Topic: "Message format", Content: "Messages between the planner and the quay controllers are Protocol Buffers, version 3, with the schema in the repository quay-contracts.", Veracity: "stated"},
		{Caller: by("sol", "security"), Domain: "security", Topic: "Gate cameras", Content: "Pictures from the gate cameras are kept for 30 days and never leave the harbour's own network.", Veracity: "stated", MemoryType: "instruction"},
		{Caller: by("sol", "security"), Domain: "security", Topic: "Service accounts", Content: "Every service account of the quay controllers rotates its key each quarter; the berth planner reads the new one without a restart.", Confidence: share(0.66)},
		{Caller: by("noor", "devops"), Domain: "operations", Topic: "Backups", Content: "The berth planner's database is copied every 15 minutes to the second site.", Veracity: "tool"},
		{Caller: by("mina", "pm"), Domain: "decisions", Topic: "Pilot with the ferry line", Content: "The pilot with the ferry line starts on 1 June with two berths and ends after the summer.", Veracity: "stated", MemoryType: "decision"},
	}
	for i, f := range facts {
		s.clock = s.clock.Add(31 * time.Hour)
		id := s.hold(f)
		if i == 0 {
			out.berth = id
		}
	}
	s.clock = at.AddDate(0, 0, -6)
	s.hold(record.ProposeFact{Caller: by("noor", "devops"), Domain: "operations", Topic: "Backups", Content: "The berth planner's database is copied every 5 minutes to the second site.", Veracity: "stated"})
	// Whether these two can both hold, nobody can tell.
	s.hold(record.ProposeFact{Caller: by("noor", "devops"), Domain: "operations", Topic: "Tickets", Content: "Tickets are tracked in Redmine.", Veracity: "stated"})
	s.hold(record.ProposeFact{Caller: by("sol", "security"), Domain: "operations", Topic: "Tickets", Content: "We moved our tickets from Redmine to Linear.", Veracity: "inferred"})
	// The same thing from a second agent, and a third time with a detail.
	s.hold(record.ProposeFact{Caller: by("lin", "coder"), Domain: "architecture", Topic: "Berth planner", Content: facts[0].Content, Veracity: "inferred"})
	s.hold(record.ProposeFact{Caller: by("lin", "coder"), Domain: "architecture", Topic: "Schedule store", Content: "The berth schedule is stored in PostgreSQL 16."})
	s.hold(record.ProposeFact{Caller: by("kei", "qa"), Domain: "architecture", Topic: "Planner database", Content: "PostgreSQL 16 stores the berth schedule."})
	s.clock = at.AddDate(0, 0, -2)
	s.with(func(store *memory.Store) error {
		for _, p := range []record.ProposePolicy{
			{Caller: by("noor", "devops"), Domain: "operations", Rule: "Never deploy to a quay controller while a ship is alongside. Ask the harbour master first."},
			{Caller: by("kei", "qa"), Domain: "quality", Rule: "Run the tide regression before every merge that touches the planner.", RequiredRole: "coder"},
			{Caller: by("sol", "security"), Domain: "security", Rule: "Do not write personal names from gate pictures into the memory."},
			{Caller: by("mina", "pm"), Domain: "people", Rule: "پیام به کارکنان اسکله باید به فارسی نوشته شود."},
		} {
			if _, err := store.ProposePolicy(s.t.Context(), p); err != nil {
				return err
			}
		}
		text := "The berth planner keeps its schedule in PostgreSQL 17 and publishes changes on the topic berth.schedule.changed."
		_, err := store.UpdateFact(s.t.Context(), record.UpdateFact{Caller: by("mina", "pm"), FactID: out.berth, ExpectedVersion: s.version(out.berth), Content: &text, Reason: "upgraded in February"})
		return err
	})
	s.clock = at
	return out
}

// version reads a fact's version.
func (s *site) version(id string) (n int64) {
	s.t.Helper()
	s.with(func(store *memory.Store) error {
		return store.View(s.t.Context(), func(v *memory.View) error {
			f, err := v.Fact(id)
			n = f.Version
			return err
		})
	})
	return n
}
