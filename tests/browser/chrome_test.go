package browser

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience bounds a wait for a page; only a broken page uses it up.
const patience = 60 * time.Second

// findChromium returns a Chromium to test with. Without one the tests are
// skipped, or fail where POLYPHONY_NEED_CHROMIUM is set.
func findChromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("POLYPHONY_NEED_CHROMIUM") != "" {
		t.Fatal("no Chromium on this machine")
	}
	t.Skip("no Chromium on this machine; install the package chromium")
	return ""
}

// startChromium starts one for the test; tabs are opened in it.
func startChromium(t *testing.T) context.Context {
	t.Helper()
	path := findChromium(t)
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(1280, 860), chromedp.Flag("lang", "en"))...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	// The first action starts it, which must not end with its time limit.
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// tab is one page of the browser; an error on its console fails the test.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	problems []string
	// expected are parts of console errors that the test provokes.
	expected []string
}

func newTab(t *testing.T, chromium context.Context) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(chromium)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	err := chromedp.Listen(ctx, func(ev any) {
		switch e := ev.(type) {
		case *runtime.EventExceptionThrown:
			b.complain("exception: " + e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.ConsoleAPICalledTypeError {
				b.complain("console: " + described(e.Args))
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError {
				b.complain("log: " + e.Entry.Text + " " + e.Entry.URL)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, p := range b.problems {
			t.Error(p)
		}
	})
	b.do(call(log.Enable, cdp.Empty{}), chromedp.EmulateViewport(1280, 860))
	b.scheme("light")
	return b
}

// action is a step that gives nothing.
type action = chromedp.Action[chromedp.Void]

// call is a command of the protocol as an action.
func call[P, R any](command cdp.Command[P, R], params P) action {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}

func described(args []*runtime.RemoteObject) string {
	var all []string
	for _, a := range args {
		all = append(all, string(a.Value)+a.Description)
	}
	return strings.Join(all, " ")
}

func (b *tab) complain(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.expected {
		if strings.Contains(text, e) {
			return
		}
	}
	b.problems = append(b.problems, text)
}

// expect lets console errors with the text pass from now on.
func (b *tab) expect(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, text)
}

// do runs actions, each of which waits for what it needs.
func (b *tab) do(actions ...action) {
	b.t.Helper()
	// What was swapped in is only a plain link until the scripts have seen it;
	// a program is quick enough to click on it before.
	b.until(`!document.querySelector(".htmx-added, .htmx-swapping, .htmx-settling")`)
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// give runs an action that gives something.
func give[T any](b *tab, a chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	out, err := chromedp.Run(ctx, a)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// open goes to an address and waits until it is there.
func (b *tab) open(address string) {
	b.t.Helper()
	b.do(chromedp.Navigate(address), chromedp.WaitReady("#main"))
}

// eval returns what an expression gives, awaited.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	return give(b, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// until waits until an expression holds, also over a change of pages, during
// which there may be nothing to ask.
func (b *tab) until(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if err == nil && ok {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			shown, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
			b.t.Fatalf("it never held that %s (%v); the page says:\n%s", expression, err, shown)
		}
	}
}

// shows waits until the text is on the page, as a reader sees it.
func (b *tab) shows(text string) {
	b.t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		b.t.Fatal(err)
	}
	b.until("document.body.innerText.includes(" + string(quoted) + ")")
}

// text returns what a reader sees.
func (b *tab) text() string {
	b.t.Helper()
	return eval[string](b, "document.body.innerText")
}

// press sends keys to what has the focus.
func (b *tab) press(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// scheme makes the browser prefer light or dark.
func (b *tab) scheme(name string) {
	b.t.Helper()
	b.do(call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}}))
}

// accessible runs axe over the page and reports what is serious.
func (b *tab) accessible() {
	b.t.Helper()
	source, err := os.ReadFile(filepath.Join("..", "..", "gateway", "browser", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		if os.Getenv("POLYPHONY_NEED_CHROMIUM") != "" {
			b.t.Fatal("axe-core is missing; run: npm ci --prefix gateway/browser")
		}
		b.t.Log("axe-core is missing, so pages are not checked; run: npm ci --prefix gateway/browser")
		return
	}
	b.do(chromedp.Evaluate[chromedp.Void](string(source) + ";true"))
	type violation struct {
		ID, Impact, Help string
		Nodes            []struct{ HTML string }
	}
	found := eval[[]violation](b, `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.map(v => ({ID: v.id, Impact: v.impact, Help: v.help, Nodes: v.nodes.map(n => ({HTML: n.html + " " + n.failureSummary}))})))`)
	for _, v := range found {
		if v.Impact == "serious" || v.Impact == "critical" {
			b.t.Errorf("%s: %s (%s): %+v", v.Impact, v.ID, v.Help, v.Nodes[0])
		} else {
			b.t.Logf("%s: %s (%s)", v.Impact, v.ID, v.Help)
		}
	}
}

// picture writes a screenshot for the documentation, when asked to.
func (b *tab) picture(name string) {
	b.t.Helper()
	folder := os.Getenv("POLYPHONY_SCREENSHOTS")
	if folder == "" {
		return
	}
	png := give(b, chromedp.CaptureScreenshot())
	if err := os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
