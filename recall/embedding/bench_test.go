package embedding

import (
	"runtime"
	"slices"
	"testing"
	"time"
)

// durations collects how long single steps took.
type durations struct {
	began time.Time
	all   []time.Duration
}

func newDurations() *durations { return &durations{} }

func (d *durations) start() { d.began = time.Now() }
func (d *durations) stop()  { d.all = append(d.all, time.Since(d.began)) }

func (d *durations) report(b *testing.B) {
	slices.Sort(d.all)
	ms := func(p int) float64 { return d.all[(len(d.all)-1)*p/100].Seconds() * 1000 }
	b.ReportMetric(ms(50), "p50-ms")
	b.ReportMetric(ms(95), "p95-ms")
}

// heap returns the megabytes in use once garbage is gone.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1e6
}
