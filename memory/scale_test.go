//go:build unix

package memory

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// scaleEnv raises the size of the tests below; the figures of
// docs/benchmarks.md were taken with 10000 and 100000.
const scaleEnv = "POLYPHONY_SCALE"

func scale(t *testing.T, small int) int {
	t.Helper()
	if v := os.Getenv(scaleEnv); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatalf("%s: %v", scaleEnv, err)
		}
		return n
	}
	return small
}

var (
	scaleNouns = strings.Fields("gateway mailer parser importer exporter scheduler indexer ledger archiver proxy cache broker router resizer scanner")
	scaleCity  = strings.Fields("Oslo Basel Lyon Turin Ghent Porto Riga Cork Graz Brno")
	scaleThing = strings.Fields("orders invoices tickets pictures reports contracts parcels letters backups drafts")
)

// scaleName is a name that no other number has, made of syllables.
func scaleName(i int) string {
	var b strings.Builder
	for k := range 6 {
		b.WriteString([]string{"ba", "ko", "li", "mu", "ne", "ro", "sa", "ti", "va", "zu"}[i%10])
		if i /= 10; i == 0 && k > 0 {
			break
		}
	}
	return strings.ToUpper(b.String()[:1]) + b.String()[1:]
}

// scaleFact is the i-th statement, with the environment, number and verb that
// near-twins change.
func scaleFact(i int, env string, minutes int, verb string) string {
	return fmt.Sprintf("The %s %s in %s %s its %s after %d minutes in %s.", scaleNouns[i%15], scaleName(i), scaleCity[i/15%10], verb, scaleThing[i/150%10], minutes, env)
}

// planted is a corpus with duplicates and near-twins under other topics.
type planted struct {
	items      []record.ProposeFact
	duplicates int
	twins      []string
}

// plant makes n statements, a tenth of them duplicates of others and a tenth
// near-twins that differ in number, polarity or environment.
func plant(n int) planted {
	var p planted
	add := func(i int, topic, content string) {
		p.items = append(p.items, record.ProposeFact{
			Caller: record.Caller{Agent: fmt.Sprintf("agent-%d", i%8)}, Domain: fmt.Sprintf("domain %d", i%5), Topic: topic, Content: content, Veracity: "stated",
		})
	}
	base := n * 8 / 10
	for i := range base {
		topic := fmt.Sprintf("%s %d", scaleNouns[i%15], i/20)
		minutes := 60 * (1 + i%7)
		add(i, topic, scaleFact(i, "production", minutes, "sends"))
		switch i % 8 {
		case 0:
			p.duplicates++
			same := scaleFact(i, "production", minutes, "sends")
			switch i / 8 % 4 {
			case 0:
				same = strings.ToUpper(same[:4]) + strings.TrimSuffix(same[4:], ".")
			case 1:
				same = strings.Replace(same, fmt.Sprintf("%d minutes", minutes), fmt.Sprintf("%d h", minutes/60), 1)
			case 2:
				same = strings.Replace(same, "in production", "in prod", 1)
			case 3:
				same = strings.Replace(same, "The ", "the  ", 1) + "!"
			}
			add(i, "copies "+topic, same)
		case 1:
			twin := ""
			switch i / 8 % 3 {
			case 0:
				twin = scaleFact(i, "production", minutes+30, "sends")
			case 1:
				twin = scaleFact(i, "production", minutes, "never sends")
			case 2:
				twin = scaleFact(i, "staging", minutes, "sends")
			}
			p.twins = append(p.twins, twin)
			add(i, "notes "+topic, twin)
		}
	}
	return p
}

func importAll(tb testing.TB, s *Store, items []record.ProposeFact) {
	tb.Helper()
	page := 0
	for chunk := range slices.Chunk(items, 500) {
		res, err := s.ImportFactsPage(context.Background(), record.ImportFacts{Caller: record.Caller{Workspace: "w", Key: fmt.Sprintf("page-%d", page)}, Source: "scale", Page: page, Items: chunk})
		if err != nil || len(res.Failed) > 0 {
			tb.Fatalf("import: %v %v", res.Failed, err)
		}
		page++
	}
}

func consolidatePages(t *testing.T, s *Store, round string, limit int) (total record.ConsolidationReport, longest time.Duration) {
	t.Helper()
	for _, phase := range record.ConsolidationPhases() {
		for cursor := ""; ; {
			began := time.Now()
			page, err := s.ConsolidatePage(t.Context(), record.MaintenancePage{Caller: record.Caller{Workspace: "w", Key: round + phase + cursor}, Phase: phase, Cursor: cursor, Limit: limit})
			if err != nil {
				t.Fatal(err)
			}
			longest = max(longest, time.Since(began))
			total.Add(page.Report)
			if cursor = page.Next; cursor == "" {
				break
			}
		}
	}
	return total, longest
}

// processTime is how long this process has used a core: on a shared machine it
// tells more than the clock.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// retired returns those of the statements that are not active.
func retired(t *testing.T, s *Store, contents []string) (lost []string) {
	t.Helper()
	active := map[string]bool{}
	mustView(t, s, func(v *View) error {
		rows, err := v.query("SELECT f.content FROM facts f WHERE " + current)
		all, err := collect(rows, err, scanOne[string])
		for _, c := range all {
			active[c] = true
		}
		return err
	})
	for _, c := range contents {
		if !active[c] {
			lost = append(lost, c)
		}
	}
	return lost
}

func TestStore_Consolidate_scale(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	p := plant(scale(t, 600))
	importAll(t, s, p.items)
	began, cpu := time.Now(), processTime()
	report, longest := consolidatePages(t, s, "one", 200)
	t.Logf("%d facts, %d duplicates planted: %d merged in %v, %v of them on a core, longest page %v", len(p.items), p.duplicates, report.Merged,
		time.Since(began).Round(time.Millisecond), (processTime() - cpu).Round(time.Millisecond), longest.Round(time.Millisecond))
	if report.Merged*100 < p.duplicates*95 || report.Merged > p.duplicates {
		t.Errorf("%d merged of %d", report.Merged, p.duplicates)
	}
	if lost := retired(t, s, p.twins); len(lost) > 0 {
		t.Errorf("%d near-twins were retired, like %s", len(lost), lost[0])
	}
	before := dump(t, s)
	again, _ := consolidatePages(t, s, "two", 200)
	if again.Merged+again.Archived+again.Promoted+again.Expired > 0 || before != dump(t, s) {
		t.Errorf("the second run changed something: %+v", again)
	}
}

// TestStore_Harmonize_scale plants agreements, contradictions and near-twins
// between ten agents.
func TestStore_Harmonize_scale(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	n := scale(t, 600)
	var items []record.ProposeFact
	add := func(agent, i int, topic, content string) string {
		items = append(items, record.ProposeFact{
			Caller: record.Caller{Agent: fmt.Sprintf("agent-%d", agent%10)}, Domain: fmt.Sprintf("domain %d", i%5), Topic: topic, Content: content, Veracity: "stated",
		})
		return content
	}
	agreed, opposed := map[string]bool{}, map[string]bool{}
	for i := range n * 8 / 10 {
		topic, minutes := fmt.Sprintf("%s %d", scaleNouns[i%15], i/20), 60*(1+i%7)
		first := add(i, i, topic, scaleFact(i, "production", minutes, "sends"))
		switch i % 12 {
		case 0:
			add(i+1, i, "seen "+topic, strings.ToLower(scaleFact(i, "prod", minutes, "sends")))
			agreed[first] = true
		case 1:
			opposed[add(i+1, i, "seen "+topic, scaleFact(i, "production", minutes+25, "sends"))] = true
		case 2:
			add(i+1, i, "seen "+topic, scaleFact(i, "staging", minutes, "sends"))
		}
	}
	importAll(t, s, items)
	began := time.Now()
	report := harmonizePages(t, s, "one")
	t.Logf("%d facts, %d agreements and %d contradictions planted: %d beliefs, %d rows in %v", len(items), len(agreed), len(opposed), report.BeliefsCreated, report.ConflictsOpened, time.Since(began).Round(time.Millisecond))
	found, wrong := 0, 0
	mustView(t, s, func(v *View) error {
		beliefs, err := v.Beliefs(Scope{})
		for _, b := range beliefs {
			if agreed[b.Statement] && len(b.Agents) == 2 {
				found++
			} else {
				wrong++
			}
		}
		return err
	})
	if found*100 < len(agreed)*95 || wrong*100 > len(agreed) {
		t.Errorf("%d of %d agreements found, %d false", found, len(agreed), wrong)
	}
	found, wrong = 0, 0
	mustView(t, s, func(v *View) error {
		rows, err := v.query("SELECT " + conflictColumns + fromConflicts + "WHERE c.open = 1 AND c.kind = 'cross_agent'")
		all, err := collect(rows, err, scanConflict)
		for _, c := range all {
			if opposed[c.ContentA] || opposed[c.ContentB] {
				found++
			} else {
				wrong++
			}
		}
		return err
	})
	if found*100 < len(opposed)*95 || wrong*100 > len(opposed) {
		t.Errorf("%d of %d contradictions found, %d false", found, len(opposed), wrong)
	}
	before := dump(t, s)
	if again := harmonizePages(t, s, "two"); again.BeliefsCreated+again.BeliefsUpdated+again.BeliefsRemoved+again.ConflictsOpened > 0 || before != dump(t, s) {
		t.Errorf("the second run changed something: %+v", again)
	}
}

func harmonizePages(t *testing.T, s *Store, round string) (total record.HarmonizationReport) {
	t.Helper()
	for _, phase := range record.HarmonizationPhases() {
		for cursor := ""; ; {
			page, err := s.HarmonizePage(t.Context(), record.MaintenancePage{Caller: record.Caller{Workspace: "w", Key: round + phase + cursor}, Phase: phase, Cursor: cursor, Limit: 200})
			if err != nil {
				t.Fatal(err)
			}
			total.Add(page.Report)
			if cursor = page.Next; cursor == "" {
				break
			}
		}
	}
	return total
}

// A dry run lists what the run then does, and changes nothing.
func TestStore_maintenance_dryRun(t *testing.T) {
	t.Parallel()
	s, clock := mustOpen(t)
	p := plant(60)
	importAll(t, s, p.items)
	weak := 0.2
	faded := req("rumour", "somebody saw a ghost in the cellar")
	faded.Confidence, faded.MemoryType = &weak, "event"
	mustPropose(t, s, faded)
	if _, err := s.Remember(t.Context(), record.Remember{Caller: record.Caller{Workspace: "w", Agent: "a"}, SessionID: "monday", Content: "The lobby has a piano."}); err != nil {
		t.Fatal(err)
	}
	clock.Advance(60 * 24 * time.Hour)
	before := dump(t, s)
	run := func(round string, dry bool) (c record.ConsolidationReport, h record.HarmonizationReport) {
		for _, phase := range record.ConsolidationPhases() {
			page, err := s.ConsolidatePage(t.Context(), record.MaintenancePage{Caller: record.Caller{Workspace: "w", Key: round + "-c-" + phase}, Phase: phase, Limit: 1000, DryRun: dry})
			if err != nil {
				t.Fatal(err)
			}
			c.Add(page.Report)
		}
		for _, phase := range record.HarmonizationPhases() {
			page, err := s.HarmonizePage(t.Context(), record.MaintenancePage{Caller: record.Caller{Workspace: "w", Key: round + "-h-" + phase}, Phase: phase, Limit: 1000, DryRun: dry})
			if err != nil {
				t.Fatal(err)
			}
			h.Add(page.Report)
		}
		return c, h
	}
	c, h := run("dry", true)
	if dump(t, s) != before {
		t.Error("the dry run changed something")
	}
	if got := c.Promoted + c.ReMentioned + c.Merged + c.Archived + c.Expired; got != len(c.Would) || c.Merged == 0 || c.Archived != 1 || c.Promoted != 1 {
		t.Errorf("%d of %d listed: %+v", len(c.Would), got, c)
	}
	if got := h.BeliefsCreated + h.ConflictsOpened; got != len(h.Would) {
		t.Errorf("%d of %d listed: %+v", len(h.Would), got, h)
	}
	done, _ := run("real", false)
	if done.Merged != c.Merged || done.Archived != c.Archived || done.Promoted != c.Promoted || len(done.Would) > 0 {
		t.Errorf("the run did %+v, the dry run promised %+v", done, c)
	}
}
