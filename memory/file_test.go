package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/polyphony-memory/polyphony/memory/record"
)

func raw(tb testing.TB, path string, statements ...string) {
	tb.Helper()
	db, err := sql.Open(driverName, path)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, st := range statements {
		if _, err := db.Exec(st); err != nil {
			tb.Fatalf("%s: %v", st, err)
		}
	}
}

func TestOpen_refuses(t *testing.T) {
	t.Parallel()
	open := func(dir string) error {
		s, err := Open(context.Background(), dir, "w", Options{})
		if err == nil {
			_ = s.Close()
		}
		return err
	}
	t.Run("newer", func(t *testing.T) {
		dir := t.TempDir()
		if err := open(dir); err != nil {
			t.Fatal(err)
		}
		raw(t, filepath.Join(dir, FileName), fmt.Sprintf("PRAGMA user_version = %d", len(migrations)+1))
		wantCode(t, open(dir), record.StoreNewer)
	})
	t.Run("foreign", func(t *testing.T) {
		dir := t.TempDir()
		raw(t, filepath.Join(dir, FileName), "CREATE TABLE theirs (x)", "PRAGMA application_id = 77")
		wantCode(t, open(dir), record.StoreCorrupt)
	})
	t.Run("not a database", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, FileName), []byte(strings.Repeat("not a database ", 500)), 0o600); err != nil {
			t.Fatal(err)
		}
		wantCode(t, open(dir), record.StoreCorrupt)
	})
	t.Run("link", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Symlink(t.TempDir(), filepath.Join(dir, "w")); err != nil {
			t.Fatal(err)
		}
		wantCode(t, open(filepath.Join(dir, "w")), record.WorkspaceInvalid)
	})
	t.Run("damaged page", func(t *testing.T) {
		dir := t.TempDir()
		s, err := Open(context.Background(), dir, "w", Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 200 {
			mustPropose(t, s, req(fmt.Sprint(i), fmt.Sprintf("statement number %d about a thing", i)))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(filepath.Join(dir, FileName), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		for at := int64(8192); at+512 < info.Size(); at += 4096 {
			if _, err := f.WriteAt([]byte(strings.Repeat("\xa5", 512)), at); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		// Whichever call meets the damage names it; none answers as if empty.
		s, err = Open(context.Background(), dir, "w", Options{})
		if err == nil {
			err = s.View(context.Background(), func(v *View) error {
				_, err := v.Facts(Scope{}, true, 0, 1000)
				return err
			})
			_ = s.Close()
		}
		wantCode(t, err, record.StoreCorrupt)
	})
}

func TestOpen_permissions(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "w")
	s, err := Open(context.Background(), dir, "w", Options{})
	if err != nil {
		t.Fatal(err)
	}
	mustPropose(t, s, req("t", "private words"))
	for name, want := range map[string]os.FileMode{"": 0o700, FileName: 0o600, FileName + "-wal": 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%q has mode %v, %v; want %v", name, info.Mode().Perm(), err, want)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ProposeFact(context.Background(), req("t", "late")); record.ErrorCode(err) != record.Unavailable {
		t.Errorf("a write after Close: %v", err)
	}
	if err := s.View(context.Background(), func(*View) error { return nil }); record.ErrorCode(err) != record.Unavailable {
		t.Errorf("a read after Close: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

func TestOpen_manyAtOnce(t *testing.T) {
	t.Parallel()
	for range 5 {
		dir := t.TempDir()
		var wg sync.WaitGroup
		errs := make(chan error, 16)
		for i := range 16 {
			wg.Go(func() {
				s, err := Open(context.Background(), dir, "w", Options{})
				if err == nil {
					for j := range 5 {
						_, err2 := s.ProposeFact(context.Background(), req(fmt.Sprint(i), fmt.Sprintf("opener %d writes %d", i, j)))
						err = errors.Join(err, err2)
					}
					err = errors.Join(err, s.Close())
				}
				errs <- err
			})
		}
		wg.Wait()
		close(errs)
		for err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
		s := mustReopen(t, dir)
		var total, migrated int
		mustView(t, s, func(v *View) error {
			return errors.Join(v.row("SELECT count(*) FROM facts").Scan(&total), v.row("SELECT count(*) FROM index_stats").Scan(&migrated))
		})
		if total < 16 || migrated != 1 {
			t.Errorf("%d facts, %d migrations", total, migrated)
		}
	}
}

func mustReopen(tb testing.TB, dir string) *Store {
	tb.Helper()
	s, err := Open(context.Background(), dir, "w", Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func openHandles(tb testing.TB) int {
	tb.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		tb.Skip("no /proc here to count handles in")
	}
	return len(entries)
}

func TestWorkspaces_handlesAreReturned(t *testing.T) {
	data := t.TempDir()
	cycle := func(n int) {
		for range n {
			w, err := NewWorkspaces(data, Options{})
			if err != nil {
				t.Fatal(err)
			}
			err = w.Use(t.Context(), "w", func(s *Store) error {
				return s.View(t.Context(), func(v *View) error {
					_, err := v.Stats()
					return err
				})
			})
			if err := errors.Join(err, w.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	cycle(5)
	handles, routines := openHandles(t), runtime.NumGoroutine()
	cycle(150)
	deadline := time.Now().Add(10 * time.Second)
	for openHandles(t) > handles+4 || runtime.NumGoroutine() > routines+4 {
		if time.Now().After(deadline) {
			t.Fatalf("%d handles and %d goroutines after 150 openings, %d and %d before", openHandles(t), runtime.NumGoroutine(), handles, routines)
		}
		runtime.Gosched()
	}
}

func TestWorkspaces_ids(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	w, err := NewWorkspaces(data, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	for _, id := range []string{"../x", `..\x`, "/etc/passwd", "a/../../b", "%2e%2e/", ".", "..", "", strings.Repeat("a", 65), strings.Repeat("a", 5000), "a\x00b", "CON", "con", "nul.x", "com1", "A", "ü", "-a", "_a", "a b", "a.", "a..b", "a\n"} {
		err := w.Use(t.Context(), id, func(*Store) error { return nil })
		if record.ErrorCode(err) != record.WorkspaceInvalid {
			t.Errorf("workspace %.20q: %v", id, err)
		}
	}
	if entries, _ := os.ReadDir(data); len(entries) != 0 {
		t.Errorf("refused ids made %v", entries)
	}
	for _, id := range []string{"a", "0", "a-b_c.d", strings.Repeat("a", 64), "conv-26"} {
		if err := w.Use(t.Context(), id, func(*Store) error { return nil }); err != nil {
			t.Errorf("workspace %q: %v", id, err)
		}
	}
	if ids, err := w.List(); err != nil || len(ids) != 5 {
		t.Errorf("list = %v, %v", ids, err)
	}
}

func TestStore_walIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := mustReopen(t, dir)
	release, started := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = s.View(context.Background(), func(v *View) error {
			if _, err := v.Stats(); err != nil {
				return err
			}
			close(started)
			<-release
			return nil
		})
	})
	<-started
	for i := range 300 {
		mustPropose(t, s, req(fmt.Sprint(i), fmt.Sprintf("while a read is open, %d: %s", i, strings.Repeat("x", 2000))))
	}
	close(release)
	wg.Wait()
	for i := range 50 {
		mustPropose(t, s, req(fmt.Sprint("after", i), fmt.Sprintf("after the read, %d", i)))
	}
	if size := fileSize(filepath.Join(dir, FileName+"-wal")); size > walWarning {
		t.Errorf("the write-ahead log has %d bytes after the read ended", size)
	}
}

func TestStore_indexStaysInStep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	clock := newTestClock()
	s, err := Open(context.Background(), dir, "w", Options{Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	words := strings.Fields("alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu")
	var ids []string
	for i := range 600 {
		clock.Advance(time.Minute)
		pick := func() string { return words[rng.IntN(len(words))] }
		switch rng.IntN(6) {
		case 0, 1, 2:
			r := req(fmt.Sprint("t", rng.IntN(30)), fmt.Sprintf("the %s %s has %s number %d", pick(), pick(), pick(), rng.IntN(50)))
			if rng.IntN(5) == 0 {
				r.ValidUntil = record.At(clock.Now().Add(time.Duration(rng.IntN(100)) * time.Minute))
			}
			ids = append(ids, mustPropose(t, s, r).FactID)
		case 3:
			if len(ids) > 1 {
				_, _ = s.SupersedeFact(t.Context(), record.SupersedeFact{Caller: caller, Old: ids[rng.IntN(len(ids))], New: ids[rng.IntN(len(ids))]})
			}
		case 4:
			if len(ids) > 0 {
				_, _ = s.RestoreFact(t.Context(), record.RestoreFact{Caller: caller, FactID: ids[rng.IntN(len(ids))]})
			}
		case 5:
			if i%50 == 0 {
				consolidate(t, s, "")
			}
		}
	}
	mustView(t, s, func(v *View) error {
		h, err := v.Health(true)
		if !h.OK {
			t.Errorf("health = %+v", h)
		}
		var missing, stray, wrong int
		err = errors.Join(err,
			v.row("SELECT count(*) FROM facts WHERE seq NOT IN (SELECT id FROM fact_index_docsize)").Scan(&missing),
			v.row("SELECT count(*) FROM fact_index_docsize WHERE id NOT IN (SELECT seq FROM facts)").Scan(&stray))
		if missing+stray > 0 {
			t.Errorf("%d facts are not indexed, %d rows have no fact", missing, stray)
		}
		// Every term's frequency is what the index itself counts.
		rows, err2 := v.query("SELECT term, df FROM terms")
		type pair struct {
			term string
			df   int
		}
		terms, err2 := collect(rows, err2, func(r scanner) (p pair, err error) { return p, r.Scan(&p.term, &p.df) })
		for _, p := range terms {
			found, err := v.Postings(p.term, 0, 100000)
			if err != nil {
				return err
			}
			if len(found) != p.df {
				wrong++
			}
		}
		if wrong > 0 {
			t.Errorf("%d of %d terms have a wrong frequency", wrong, len(terms))
		}
		return errors.Join(err, err2)
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	raw(t, filepath.Join(dir, FileName), "INSERT INTO fact_index(fact_index) VALUES('integrity-check')", "PRAGMA integrity_check", "PRAGMA foreign_key_check")
}

// TestStore_batchingChangesNothing writes the same proposals alone and
// together: what came out must not depend on which shared a transaction.
func TestStore_batchingChangesNothing(t *testing.T) {
	t.Parallel()
	var dumps []string
	for _, batch := range []int{1, 256} {
		s, err := Open(context.Background(), t.TempDir(), "w", Options{Now: newTestClock().Now, MaxBatch: batch})
		if err != nil {
			t.Fatal(err)
		}
		page := record.ImportFacts{Caller: caller, Source: "x"}
		for i := range 90 {
			r := req(fmt.Sprint("t", i%7), fmt.Sprintf("the quagga subsystem %d talks to the okapi gateway %d", i%13, i%11))
			if batch == 1 {
				mustPropose(t, s, r)
			}
			page.Items = append(page.Items, r)
		}
		if batch != 1 {
			if report, err := s.ImportFactsPage(t.Context(), page); err != nil || len(report.Failed) != 0 {
				t.Fatal(report, err)
			}
		}
		var b strings.Builder
		mustView(t, s, func(v *View) error {
			rows, err := v.query(`SELECT 'fact ' || f.seq || ' ' || f.content || ' ' || f.mention_count || ' ' || f.superseded_kind FROM facts f
				UNION ALL SELECT 'edge ' || a.seq || ' ' || b.seq || ' ' || e.kind || ' ' || round(e.weight, 9) FROM edges e JOIN facts a ON a.seq = e.source JOIN facts b ON b.seq = e.target
				UNION ALL SELECT 'term ' || term || ' ' || df FROM terms UNION ALL SELECT 'stats ' || docs || ' ' || tokens FROM index_stats ORDER BY 1`)
			lines, err := collect(rows, err, scanOne[string])
			b.WriteString(strings.Join(lines, "\n"))
			return err
		})
		dumps = append(dumps, b.String())
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if dumps[0] != dumps[1] || !strings.Contains(dumps[0], "edge ") {
		t.Errorf("alone:\n%s\n\ntogether:\n%s", dumps[0], dumps[1])
	}
}

// TestLedger_model runs random calls with few keys against a model of the
// ledger: the first request under a key decides its answer for ever.
func TestLedger_model(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s, err := Open(context.Background(), filepath.Join(t.TempDir(), fmt.Sprint(time.Now().UnixNano())), "w", Options{})
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		type entry struct{ content, answer string }
		model := map[string]entry{}
		facts := map[string]bool{}
		for range rapid.IntRange(1, 25).Draw(rt, "calls") {
			key := rapid.SampledFrom([]string{"", "k1", "k2", "k3"}).Draw(rt, "key")
			content := rapid.SampledFrom([]string{"apples are red", "bears sleep long", "  ", "cats see well"}).Draw(rt, "content")
			r := req("t", content)
			r.Key = key
			res, err := s.ProposeFact(context.Background(), r)
			answer := fmt.Sprint(res)
			known, used := model[key]
			switch {
			case strings.TrimSpace(content) == "":
				if record.ErrorCode(err) != record.ContentEmpty {
					rt.Fatalf("blank content: %v", err)
				}
			case key != "" && used && known.content != content:
				if record.ErrorCode(err) != record.IdempotencyKeyReused {
					rt.Fatalf("key %s with other content: %v", key, err)
				}
			case err != nil:
				rt.Fatal(err)
			case key != "" && used:
				if answer != known.answer {
					rt.Fatalf("key %s answers %s, first %s", key, answer, known.answer)
				}
			default:
				if (res.Status == record.StatusReMentioned) != facts[content] {
					rt.Fatalf("%q known %v gives %s", content, facts[content], res.Status)
				}
				facts[content] = true
				if key != "" {
					model[key] = entry{content, answer}
				}
			}
		}
		var active int
		if err := s.View(context.Background(), func(v *View) error { return v.row("SELECT count(*) FROM facts").Scan(&active) }); err != nil || active != len(facts) {
			rt.Fatalf("%d facts, %v; the model has %d", active, err, len(facts))
		}
	})
}

func TestStore_gaveUp(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	r := req("t", "written late or not at all")
	r.Key = "patience"
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.ProposeFact(ctx, r); record.ErrorCode(err) != record.Unavailable {
		t.Errorf("a caller that gave up: %v", err)
	}
	// Whatever became of it, asking again with the key makes one.
	for range 3 {
		mustPropose(t, s, r)
	}
	if got := activeContents(t, s); len(got) != 1 {
		t.Errorf("active = %q", got)
	}
}

func TestStore_writesDoNotStopReads(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	mustPropose(t, s, req("t", "something to read"))
	entered, leave := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		_, err := apply(context.Background(), s, "test", caller, func(*tx) (struct{}, error) {
			close(entered)
			<-leave
			return struct{}{}, nil
		})
		done <- err
	}()
	<-entered
	if got := activeContents(t, s); len(got) != 1 {
		t.Errorf("read beside a long write: %q", got)
	}
	close(leave)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestStore_panicIsContained(t *testing.T) {
	t.Parallel()
	s, _ := mustOpen(t)
	var log strings.Builder
	s.log = slog.New(slog.NewTextHandler(&log, nil))
	_, err := apply(t.Context(), s, "test", caller, func(x *tx) (struct{}, error) {
		if err := x.exec("INSERT INTO meta (key, value) VALUES ('half', 'done')"); err != nil {
			t.Error(err)
		}
		panic("a bug")
	})
	wantCode(t, err, record.Unavailable)
	if !strings.Contains(log.String(), `kind=test workspace=w agent=a panic="a bug"`) {
		t.Errorf("the log says %q", log.String())
	}
	mustPropose(t, s, req("t", "the store goes on"))
	mustView(t, s, func(v *View) error {
		var n int
		err := v.row("SELECT count(*) FROM meta WHERE key = 'half'").Scan(&n)
		if n != 0 {
			t.Error("half a write stayed")
		}
		return err
	})
}
