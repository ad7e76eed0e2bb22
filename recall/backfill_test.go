package recall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
)

// named is a bagModel of another name, whose vectors may have another size and
// which makes none of one text.
type named struct {
	*bagModel
	id   string
	size int
	none string
}

func (m named) ID() string { return m.id }

func (m named) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out, err := m.bagModel.Embed(ctx, texts)
	for i := range out {
		if m.size > 0 {
			out[i] = make([]float32, m.size)
			out[i][0] = 1
		}
		if texts[i] == m.none {
			out[i] = nil
		}
	}
	return out, err
}

// unembedded makes a workspace of n facts without vectors.
func unembedded(t *testing.T, data string, n int) {
	t.Helper()
	s, err := memory.Open(t.Context(), filepath.Join(data, "workspaces", "w"), "w", memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for i := range n {
		rows = append(rows, fmt.Sprintf("heron %d nests by pond %d", i, n-i))
	}
	mustFill(t, s, rows...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func openWith(t *testing.T, data, model string) *memory.Store {
	t.Helper()
	s, err := memory.Open(t.Context(), filepath.Join(data, "workspaces", "w"), "w", memory.Options{Embedding: model})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func page(model, cursor string) record.BackfillPage {
	c := caller
	c.Key = "backfill/w#round/1"
	return record.BackfillPage{Caller: c, Model: model, Cursor: cursor, Limit: 40}
}

func TestBackfill(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	unembedded(t, data, 100)
	m := named{bagModel: &bagModel{}, id: "bag-1", none: "heron 7 nests by pond 93"}
	e, s := NewEmbedder(m, slog.New(slog.DiscardHandler)), openWith(t, data, m.id)
	none := func(record.BackfillResult) {}

	// A page of another model, or of none yet, does nothing but tell.
	for _, other := range []string{"", "bag-0"} {
		out, err := e.Backfill(t.Context(), s, page(other, ""), record.BackfillResult{}, none)
		if want := (record.BackfillResult{Model: "bag-1", Missing: 100}); err != nil || out != want {
			t.Errorf("a page of model %q: %+v, %v", other, out, err)
		}
	}
	// A worker without a model, and one whose model is just being changed.
	if out, err := NewEmbedder(nil, nil).Backfill(t.Context(), s, page("bag-1", ""), record.BackfillResult{}, none); err != nil || out.Model != "" {
		t.Errorf("without a model: %+v, %v", out, err)
	}
	if _, err := NewEmbedder(named{bagModel: &bagModel{}, id: "bag-2"}, nil).Backfill(t.Context(), s, page("bag-2", ""), record.BackfillResult{}, none); record.ErrorCode(err) != record.Unavailable {
		t.Errorf("a store of another model: %v", err)
	}
	if h := health(t, s); h.Embedded != 0 {
		t.Fatalf("%d embedded", h.Embedded)
	}

	// The first page is stopped after its second batch of 16.
	ctx, stop := context.WithCancel(t.Context())
	var told []record.BackfillResult
	_, err := e.Backfill(ctx, s, page("bag-1", ""), record.BackfillResult{}, func(at record.BackfillResult) {
		if told = append(told, at); len(told) == 2 {
			stop()
		}
	})
	if err == nil || len(told) != 2 || told[1].Report.Considered != 32 {
		t.Fatalf("stopped: %+v, %v", told, err)
	}
	want := record.BackfillReport{Considered: 40, Embedded: 39, Skipped: 1}
	var first record.BackfillResult
	// From the last heartbeat, from an earlier one, from none, and once more.
	for i, at := range []record.BackfillResult{told[1], told[0], {}, {}} {
		out, err := e.Backfill(t.Context(), s, page("bag-1", ""), at, none)
		if err != nil || out.Report != want || out.Next == "" || i > 0 && !reflect.DeepEqual(out, first) {
			t.Errorf("attempt %d: %+v, %v; want %+v", i, out, err, want)
		}
		first = out
	}
	if h := health(t, s); h.Embedded != 39 {
		t.Errorf("%d embedded", h.Embedded)
	}
	report := first.Report
	for next := first.Next; next != ""; {
		out, err := e.Backfill(t.Context(), s, page("bag-1", next), record.BackfillResult{}, none)
		if err != nil {
			t.Fatal(err)
		}
		report.Add(out.Report)
		next = out.Next
	}
	if want := (record.BackfillReport{Considered: 100, Embedded: 99, Skipped: 1}); report != want {
		t.Errorf("%+v, want %+v", report, want)
	}
	// Another run finds only what the model makes no vector of.
	again := page("bag-1", "")
	again.Key = "backfill/w#another/1"
	if out, err := e.Backfill(t.Context(), s, again, record.BackfillResult{}, none); err != nil || out.Report != (record.BackfillReport{Considered: 1, Skipped: 1}) || out.Next != "" {
		t.Errorf("the next run: %+v, %v", out, err)
	}
	res, err := NewEngine(m).Search(t.Context(), s, record.Search{Caller: caller, Query: "heron 12 pond 88", Mode: "hybrid"})
	if err != nil || len(res.Facts) == 0 || res.Facts[0].Voices["semantic"] == 0 || len(res.Degraded) != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	// A page that is wrong in itself.
	for _, bad := range []func(*record.BackfillPage){func(p *record.BackfillPage) { p.Cursor = "x" }, func(p *record.BackfillPage) { p.Limit = 1001; p.Cursor = "x" }} {
		p := page("bag-1", "")
		bad(&p)
		if _, err := e.Backfill(t.Context(), s, p, record.BackfillResult{}, none); record.ErrorCode(err) != record.InvalidArgument {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// TestBackfill_failing: what a model that fails half-way did stays, and nothing
// is counted twice.
func TestBackfill_failing(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	unembedded(t, data, 40)
	m := &bagModel{}
	e, s := NewEmbedder(m, slog.New(slog.DiscardHandler)), openWith(t, data, m.ID())
	_, err := e.Backfill(t.Context(), s, page("bag-1", ""), record.BackfillResult{}, func(record.BackfillResult) { m.fail.Store(true) })
	if err == nil {
		t.Fatal("no error of the failing model")
	}
	if h := health(t, s); h.Embedded != 16 {
		t.Errorf("%d embedded, want the first batch", h.Embedded)
	}
	m.fail.Store(false)
	out, err := e.Backfill(t.Context(), s, page("bag-1", ""), record.BackfillResult{}, func(record.BackfillResult) {})
	if want := (record.BackfillReport{Considered: 40, Embedded: 40}); err != nil || out.Report != want {
		t.Errorf("%+v, %v; want %+v", out, err, want)
	}
}

// TestEmbedder_outage: the model fails for fifty stores and comes back.
func TestEmbedder_outage(t *testing.T) {
	t.Parallel()
	data, m := t.TempDir(), &bagModel{}
	m.fail.Store(true)
	e := NewEmbedder(m, slog.New(slog.DiscardHandler))
	e.retry = time.Millisecond
	w, err := memory.NewWorkspaces(data, memory.Options{Embedding: m.ID(), OnQueued: e.Queued})
	if err != nil {
		t.Fatal(err)
	}
	e.Start(w)
	ids := func(s *memory.Store) (ids []string) {
		err := s.View(t.Context(), func(v *memory.View) error {
			for seq := range int64(60) {
				facts, err := v.FactsAt([]int64{seq}, memory.Scope{})
				if err != nil {
					return err
				}
				for _, f := range facts {
					ids = append(ids, f.ID)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	err = w.Use(t.Context(), "w", func(s *memory.Store) error {
		var want []string
		for i := range 50 {
			out, err := s.ProposeFact(t.Context(), record.ProposeFact{Caller: caller, Domain: "yard", Topic: fmt.Sprintf("shelf %d", i), Content: fmt.Sprintf("Shelf %d holds crate %d", i, 100+i)})
			if err != nil {
				return err
			}
			want = append(want, out.FactID)
		}
		if h := health(t, s); h.Embedded != 0 || h.EmbeddingQueue != 50 || h.FactsActive != 50 || !h.OK {
			t.Errorf("during the outage: %+v", h)
		}
		m.fail.Store(false)
		await(t, s, 50, 0)
		if got := ids(s); !slices.Equal(got, want) {
			t.Errorf("the facts are %q, want %q", got, want)
		}
		return nil
	})
	e.Stop()
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestModelChange: other models come and go while the worker runs. Words find
// throughout, and vectors of two models are never compared.
func TestModelChange(t *testing.T) {
	t.Parallel()
	a := named{bagModel: &bagModel{}, id: "bag-a"}
	b := named{bagModel: &bagModel{}, id: "bag-b"}
	wide := named{bagModel: &bagModel{}, id: "bag-768", size: 768}
	e, engine := NewEmbedder(nil, slog.New(slog.DiscardHandler)), NewEngine(nil)
	w, err := memory.NewWorkspaces(t.TempDir(), memory.Options{OnQueued: e.Queued})
	if err != nil {
		t.Fatal(err)
	}
	e.Start(w)
	t.Cleanup(func() {
		e.Stop()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	use := func(f func(*memory.Store)) {
		t.Helper()
		if err := w.Use(t.Context(), "w", func(s *memory.Store) error { f(s); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	change := func(m Model, id string) {
		t.Helper()
		engine.UseModel(m)
		e.UseModel(m)
		if err := w.UseModel(id); err != nil {
			t.Fatal(err)
		}
		e.Queued("w")
	}
	// found searches, and wants the semantic voice to have taken part or not.
	found := func(semantic bool) {
		t.Helper()
		use(func(s *memory.Store) {
			res, err := engine.Search(t.Context(), s, record.Search{Caller: caller, Query: "where does the heron nest", Mode: "hybrid"})
			if err != nil || len(res.Facts) == 0 || res.Facts[0].Content != "the heron nests by the river" {
				t.Errorf("%+v, %v", res, err)
				return
			}
			if ranked := res.Facts[0].Voices["semantic"] > 0; ranked != semantic {
				t.Errorf("the semantic voice ranks the first: %v, want %v (%q)", ranked, semantic, res.Degraded)
			}
		})
	}
	backfill := func(model string, n int) {
		t.Helper()
		use(func(s *memory.Store) {
			p := page(model, "")
			p.Key += model
			out, err := e.Backfill(t.Context(), s, p, record.BackfillResult{}, func(record.BackfillResult) {})
			if err != nil || out.Report.Embedded != n {
				t.Errorf("backfill of %s: %+v, %v; want %d", model, out, err, n)
			}
		})
	}
	use(func(s *memory.Store) { mustFill(t, s, "the heron nests by the river") })
	found(false)

	change(a, a.id)
	found(false)
	backfill(a.id, 1)
	found(true)
	use(func(s *memory.Store) {
		mustFill(t, s, "otters dive for clams")
		await(t, s, 2, 0)
		// The model becomes another under somebody who has the store open.
		change(b, b.id)
		if s.Model() != a.id {
			t.Error("an open store has changed its model")
		}
		res, err := engine.Search(t.Context(), s, record.Search{Caller: caller, Query: "heron", Mode: "hybrid"})
		if err != nil || len(res.Facts) == 0 || len(res.Degraded) != 1 {
			t.Errorf("while it changes: %+v, %v", res, err)
		}
	})
	found(false)
	use(func(s *memory.Store) {
		if h := health(t, s); h.Embedded != 0 || h.Model != b.id {
			t.Errorf("vectors of another model count: %+v", h)
		}
		mustFill(t, s, "the invoice is late")
		await(t, s, 1, 0)
	})
	backfill(b.id, 2)
	found(true)

	// Vectors of another size are none: nothing is stored of them, nothing waits
	// for ever, and nothing that was there is lost.
	change(wide, wide.id)
	found(false)
	use(func(s *memory.Store) {
		mustFill(t, s, "geese fly south")
		await(t, s, 0, 0)
	})
	backfill(wide.id, 0)
	change(b, b.id)
	found(true)
	use(func(s *memory.Store) { await(t, s, 3, 0) })

	// Without a model what waits goes on waiting.
	b.fail.Store(true)
	use(func(s *memory.Store) { mustFill(t, s, "swans hiss") })
	change(nil, "")
	found(false)
	b.fail.Store(false)
	change(b, b.id)
	use(func(s *memory.Store) { await(t, s, 4, 0) })
}
