package cli

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

// bar shows on standard error how far long work is. A nil bar, of a command
// that is not on a terminal, shows nothing.
type bar struct {
	*progressbar.ProgressBar
	title  string
	phases []string
}

func (a *app) newBar(title string, total int64) *bar {
	if !a.terminal(a.stderr) {
		return nil
	}
	return &bar{title: title, ProgressBar: progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(a.stderr), progressbar.OptionSetDescription(title), progressbar.OptionShowCount(),
		progressbar.OptionSetWidth(30), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetPredictTime(total > 0), progressbar.OptionUseANSICodes(a.colour(a.stderr)),
	)}
}

func (a *app) phaseBar(title string, phases []string) *bar {
	b := a.newBar(title, int64(len(phases)))
	if b != nil {
		b.phases = phases
	}
	return b
}

// A bar that cannot be drawn must not stop the work: its errors are dropped.

func (b *bar) add(n int) {
	if b != nil {
		_ = b.Add(n)
	}
}

func (b *bar) set(n int, description string) {
	if b != nil {
		b.Describe(description)
		_ = b.Set(n)
	}
}

// reach sets how far it is, and of how much when that is known.
func (b *bar) reach(done, total int64) {
	if b == nil {
		return
	}
	if total > 0 && total != b.GetMax64() {
		b.ChangeMax64(total)
	}
	_ = b.Set64(done)
}

// close takes the bar off the terminal.
func (b *bar) close() {
	if b != nil {
		_ = b.Clear()
		_ = b.Exit()
	}
}

func (b *bar) describe(title string) {
	if b != nil {
		b.Describe(title)
	}
}
