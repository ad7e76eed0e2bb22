package endtoend

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
)

// modelName is the hub name of the model.
const modelName = "sentence-transformers/all-MiniLM-L6-v2"

// modelFolder returns the folder of the real model, or skips the test.
func modelFolder(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("POLYPHONY_MODEL_DIR")
	if dir == "" {
		t.Skip("POLYPHONY_MODEL_DIR is not set: no weights (recall/embedding/fetch-model.sh makes the folder)")
	}
	return dir
}

// hub serves the model as its hub does. The first request for the weights gets
// half of them and then nothing, and half is closed; those that come later get
// all once open is closed.
func hub(t testing.TB, dir string) (url string, half, open chan struct{}) {
	t.Helper()
	half, open = make(chan struct{}), make(chan struct{})
	over := make(chan struct{})
	first := make(chan struct{}, 1)
	first <- struct{}{}
	mux := http.NewServeMux()
	base := "GET /" + modelName + "/resolve/main/"
	mux.HandleFunc(base+"tokenizer.json", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join(dir, "tokenizer.json"))
	})
	mux.HandleFunc(base+"model.onnx", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-first:
		default:
			select {
			case <-open:
				http.ServeFile(w, r, filepath.Join(dir, "model.onnx"))
			case <-r.Context().Done():
			case <-over:
			}
			return
		}
		f, err := os.Open(filepath.Join(dir, "model.onnx"))
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = f.Close() }()
		info, err := f.Stat()
		if err != nil {
			t.Error(err)
			return
		}
		w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
		_, _ = io.CopyN(w, f, info.Size()/2)
		w.(http.Flusher).Flush()
		close(half)
		select {
		case <-r.Context().Done():
		case <-over:
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(over) })
	return server.URL, half, open
}

// TestEmbedding takes facts without a model, installs one by its name on the
// hub, gives the facts their vectors and finds one by its meaning. The worker is
// killed in the middle of the download and in the middle of the backfill.
func TestEmbedding(t *testing.T) {
	t.Parallel()
	weights := modelFolder(t)
	url, half, open := hub(t, weights)
	data := t.TempDir()
	folder := workspaceFolder(data, "yard")
	args := []string{"--model-hub", url}
	p := start(t, data, args...)
	pages := importPages(3, 400)
	pages[2].Items = append(pages[2].Items, record.ProposeFact{Domain: "engineering", Topic: "storage", Content: "The team settled on PostgreSQL.", Veracity: "imported"})
	importAll(t, p.client(), "yard", pages)
	total, err := strconv.Atoi(one(t, folder, "SELECT count(*) FROM facts"))
	if err != nil {
		t.Fatal(err)
	}
	ids := rows(t, folder, "SELECT seq, id FROM facts ORDER BY seq")
	who := caller("yard")

	if e := wantCode(t, second(p.client().BackfillEmbeddings(timed(t), record.Backfill{Caller: who}, nil)), record.Unavailable); e.Field != "model" {
		t.Errorf("a backfill without a model: %v", e)
	}
	if m := must[record.EmbeddingModel](t)(p.client().EmbeddingModel(timed(t), who)); m.Installed || m.InUse {
		t.Errorf("before: %+v", m)
	}
	ask := func() record.SearchResult {
		t.Helper()
		return must[record.SearchResult](t)(p.client().SearchMemory(timed(t), record.Search{Caller: who, Query: "Which database was chosen?"}))
	}
	if res := ask(); len(res.Facts) > 0 && strings.Contains(res.Facts[0].Content, "PostgreSQL") || len(res.Degraded) != 1 {
		t.Errorf("without a model: %s", asJSON(t, res))
	}

	// The download is cut off by a kill, and comes to its end after the restart.
	install := record.InstallModel{Caller: who, Source: modelName}
	inBackground(t, p, func(ctx context.Context, c *workflows.Client) { _, _ = c.InstallModel(ctx, install, nil) }, func() bool {
		select {
		case <-half:
			return true
		default:
			return false
		}
	})
	p = start(t, data, args...)
	if m := must[record.EmbeddingModel](t)(p.client().EmbeddingModel(timed(t), who)); m.Installed {
		t.Errorf("half a download counts as a model: %+v", m)
	}
	// Another change of the model is not mistaken for the one under way.
	other := make(chan error, 1)
	go func() {
		looks, opened := 0, false
		_, err := p.client().InstallModel(timed(t), record.InstallModel{Caller: who, Source: weights}, func(progress record.InstallProgress) {
			// The weights come once this call has joined and seen bytes arrive.
			if looks++; looks >= 2 && progress.Done > 0 && !opened {
				opened = true
				close(open)
			}
		})
		other <- err
	}()
	m := must[record.EmbeddingModel](t)(p.client().InstallModel(timed(t), install, nil))
	if !m.Installed || !m.InUse || m.ID == "" {
		t.Fatalf("installed: %+v", m)
	}
	if e := wantCode(t, <-other, record.Unavailable); e.Field != "model" {
		t.Errorf("another installation at the same time: %v", e)
	}
	if got := one(t, folder, "SELECT count(*) FROM embeddings"); got != "0" {
		t.Errorf("%s facts have vectors that nobody asked for", got)
	}

	// A new fact gets its vector by itself; earlier ones when somebody asks.
	must[record.ProposeFactResult](t)(p.client().ProposeFact(timed(t), record.ProposeFact{Caller: who, Domain: "engineering", Topic: "tea", Content: "The kettle boils at noon."}))
	eventually(t, time.Minute, "the new fact has its vector", func() bool { return one(t, folder, "SELECT count(*) FROM embeddings") == "1" })

	began := time.Now()
	embedded := func() int {
		n, err := strconv.Atoi(one(t, folder, "SELECT count(*) FROM embeddings"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	inBackground(t, p, func(ctx context.Context, c *workflows.Client) {
		_, _ = c.BackfillEmbeddings(ctx, record.Backfill{Caller: who}, nil)
	}, func() bool { return embedded() > 300 })
	done := embedded()
	p = start(t, data, args...)
	report := must[record.BackfillReport](t)(p.client().BackfillEmbeddings(timed(t), record.Backfill{Caller: who}, nil))
	t.Logf("killed with %d of %d facts embedded, complete after %v", done, total, time.Since(began).Round(time.Millisecond))
	if done >= total {
		t.Error("the kill came too late; give it more facts")
	}
	if want := (record.BackfillReport{Considered: total, Embedded: total}); report != want {
		t.Errorf("the joined run reports %+v, want %+v", report, want)
	}
	if got := one(t, folder, "SELECT count(*) || ' ' || count(DISTINCT model) FROM embeddings"); got != fmt.Sprintf("%d 1", total+1) {
		t.Errorf("vectors and models are %s, want %d 1", got, total+1)
	}
	sameDump(t, "after the backfill", ids, rows(t, folder, "SELECT seq, id FROM facts WHERE content <> 'The kettle boils at noon.' ORDER BY seq"))
	if report := must[record.BackfillReport](t)(p.client().BackfillEmbeddings(timed(t), record.Backfill{Caller: who}, nil)); report != (record.BackfillReport{}) {
		t.Errorf("the second backfill reports %+v", report)
	}
	if res := ask(); len(res.Facts) == 0 || !strings.Contains(res.Facts[0].Content, "PostgreSQL") || res.Facts[0].Voices["semantic"] != 1 || len(res.Degraded) != 0 {
		t.Errorf("by meaning: %s", asJSON(t, res))
	}

	// Without the model words go on finding, and vectors wait for it.
	must[record.EmbeddingModel](t)(p.client().RemoveModel(timed(t), record.RemoveModel{Caller: who}))
	wantCode(t, second(p.client().RemoveModel(timed(t), record.RemoveModel{Caller: who})), record.NotFound)
	if res := ask(); len(res.Degraded) != 1 {
		t.Errorf("after the removal: %s", asJSON(t, res))
	}
	// From a folder this time.
	if back := must[record.EmbeddingModel](t)(p.client().InstallModel(timed(t), record.InstallModel{Caller: who, Source: weights}, nil)); back.ID != m.ID || !back.InUse {
		t.Errorf("the same model from a folder: %+v, want %s", back, m.ID)
	}
	if res := ask(); len(res.Facts) == 0 || res.Facts[0].Voices["semantic"] != 1 {
		t.Errorf("with the model back: %s", asJSON(t, res))
	}
	p.kill()
	wantSound(t, folder, "yard")
}

// inBackground makes a call, kills the worker once the condition holds, and
// waits for the call to end.
func inBackground(t *testing.T, p *process, call func(context.Context, *workflows.Client), until func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(timed(t))
	done := make(chan struct{})
	go func() {
		defer close(done)
		call(ctx, p.client())
	}()
	eventually(t, time.Minute, "the call is half done", until)
	p.kill()
	cancel()
	<-done
}

func second[T any](_ T, err error) error { return err }
