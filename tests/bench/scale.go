package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/tests/bench/corpus"
	"github.com/polyphony-memory/polyphony/tests/bench/load"
)

const (
	// openLimit is how many workspaces a worker keeps open: memory's own bound.
	openLimit = 256
	// calibrated is how many workspaces the costs are taken from, factsEach how
	// many facts they get.
	calibrated, factsEach = 48, 50
	// accesses is how many calls at random the simulation makes.
	accesses = 1500
)

// costs are what the model of docs/scale.md is made of, measured on few
// workspaces.
type costs struct {
	file, fact float64 // Bytes of an empty workspace, and of each fact.
	// create is making a workspace with its first fact and bulk a further fact,
	// with 64 callers; open is opening a workspace for a fact and write a fact
	// into an open one, with one caller; end is closing one. All are time of a
	// core, which other programs on the machine do not change much.
	create, bulk, open, write, end time.Duration
	// Resident memory and file descriptors of an open workspace.
	openBytes, openFiles float64
}

// benchScale measures the costs of few workspaces, says by the model what many
// must cost, makes the many, and prints both.
func benchScale(ctx context.Context, dir string, workspaces, facts int) error {
	if workspaces <= openLimit || facts < workspaces {
		return fmt.Errorf("a simulation needs more than %d workspaces and a fact for each", openLimit)
	}
	c, err := calibrate(ctx, filepath.Join(dir, "few"))
	if err != nil {
		return err
	}
	fmt.Printf("measured on %d workspaces of %d facts:\n\n| | |\n| --- | --- |\n", calibrated, factsEach)
	for _, row := range [][2]string{
		{"bytes of an empty workspace", fmt.Sprintf("%.0f", c.file)}, {"bytes of a fact", fmt.Sprintf("%.0f", c.fact)},
		{"core ms to make one, 64 callers", load.MS(c.create)}, {"core ms of a fact, 64 callers", load.MS(c.bulk)},
		{"core ms to open one and write a fact", load.MS(c.open)}, {"core ms to write a fact", load.MS(c.write)}, {"core ms to close one", load.MS(c.end)},
		{"MB of memory while open", fmt.Sprintf("%.2f", c.openBytes/(1<<20))}, {"file descriptors while open", fmt.Sprintf("%.1f", c.openFiles)},
	} {
		fmt.Printf("| %s | %s |\n", row[0], row[1])
	}
	fmt.Println()
	return simulate(ctx, filepath.Join(dir, "many"), c, workspaces, facts)
}

func calibrate(ctx context.Context, dir string) (c costs, err error) {
	w, err := memory.NewWorkspaces(dir, memory.Options{})
	if err != nil {
		return c, err
	}
	words := corpus.New(11)
	// each is the core's time of f for each of the workspaces.
	each := func(f func() error) time.Duration {
		start := heldBy("self").cpu
		if err == nil {
			err = f()
		}
		return (heldBy("self").cpu - start) / calibrated
	}
	rounds := func(from, to int) error {
		for n := from; n < to; n++ {
			for i := range calibrated {
				if err := propose(ctx, w, words, i, n, factsEach); err != nil {
					return err
				}
			}
		}
		return nil
	}
	var small, full int64
	var before, after holding
	c.create = each(func() error { return fillMany(ctx, w, words, calibrated, 0, 1) })
	c.end = each(w.Close)
	if err == nil {
		small, err = bytesBelow(dir)
	}
	before = held()
	if err == nil {
		w, err = memory.NewWorkspaces(dir, memory.Options{})
	}
	c.open = each(func() error { return rounds(1, 2) })
	c.write = each(func() error { return rounds(2, 6) }) / 4
	c.bulk = each(func() error { return fillMany(ctx, w, words, calibrated, 6, factsEach) }) / (factsEach - 6)
	after = held()
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		full, err = bytesBelow(dir)
	}
	c.openBytes = float64(after.bytes-before.bytes) / calibrated
	c.openFiles = float64(after.files-before.files) / calibrated
	c.fact = float64(full-small) / (calibrated * (factsEach - 1))
	c.file = float64(small)/calibrated - c.fact
	return c, err
}

func simulate(ctx context.Context, dir string, c costs, workspaces, facts int) error {
	w, err := memory.NewWorkspaces(dir, memory.Options{})
	if err != nil {
		return err
	}
	words := corpus.New(12)
	each := facts / workspaces
	before := held()
	start := before.cpu
	if err := fillMany(ctx, w, words, workspaces, 0, each); err != nil {
		return err
	}
	filling := heldBy("self").cpu - start
	rng := rand.New(rand.NewPCG(13, 13))
	start = heldBy("self").cpu
	for n := range accesses {
		if err := propose(ctx, w, words, rng.IntN(workspaces), each+n, each); err != nil {
			return err
		}
	}
	access := (heldBy("self").cpu - start) / accesses
	now := held()
	if err := w.Close(); err != nil {
		return err
	}
	size, err := bytesBelow(dir)
	if err != nil {
		return err
	}

	total := float64(workspaces*each + accesses)
	hit := float64(openLimit) / float64(workspaces)
	fmt.Printf("%d workspaces, %d facts in each, then %d facts into workspaces at random:\n\n", workspaces, each, accesses)
	fmt.Println("| | by the model | measured | measured : model |\n| --- | --- | --- | --- |")
	row := func(name string, model, measured float64, digits int) {
		fmt.Printf("| %s | %.*f | %.*f | %.2f |\n", name, digits, model, digits, measured, measured/model)
	}
	row("files, MB", (float64(workspaces)*c.file+total*c.fact)/(1<<20), float64(size)/(1<<20), 0)
	row("filling, core ms a fact", 1000*(float64(each-1)*c.bulk.Seconds()+(c.create+c.end).Seconds())/float64(each), 1000*filling.Seconds()/float64(workspaces*each), 2)
	row("a fact into a workspace at random, core ms", 1000*(hit*c.write.Seconds()+(1-hit)*(c.open+c.end).Seconds()), 1000*access.Seconds(), 2)
	row("memory of the open workspaces, MB", openLimit*c.openBytes/(1<<20), float64(now.bytes-before.bytes)/(1<<20), 0)
	row("file descriptors", openLimit*c.openFiles, float64(now.files-before.files), 0)
	return nil
}

// propose writes the n-th fact of the i-th workspace, which gets about of.
func propose(ctx context.Context, w *memory.Workspaces, words *corpus.Corpus, i, n, of int) error {
	return put(ctx, w, words.Proposal(fmt.Sprintf("scale-%d", i), n, of))
}

func put(ctx context.Context, w *memory.Workspaces, p record.ProposeFact) error {
	return w.Use(ctx, p.Workspace, func(s *memory.Store) error {
		_, err := s.ProposeFact(ctx, p)
		return err
	})
}

// fillMany writes the facts from to of into each workspace, one workspace after
// the other, 64 callers at once.
func fillMany(ctx context.Context, w *memory.Workspaces, words *corpus.Corpus, workspaces, from, of int) error {
	next := make(chan record.ProposeFact)
	var mu sync.Mutex
	var failed error
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for p := range next {
				if err := put(ctx, w, p); err != nil {
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()
				}
			}
		})
	}
	for i := range workspaces {
		for n := from; n < of; n++ {
			next <- words.Proposal(fmt.Sprintf("scale-%d", i), n, of)
		}
	}
	close(next)
	wg.Wait()
	return failed
}

// holding is what a process holds.
type holding struct {
	bytes int64 // Resident.
	files int
	cpu   time.Duration // Of a core, since it began; to 10 ms.
}

func held() holding {
	// What the collector has yet to take is nobody's.
	debug.FreeOSMemory()
	return heldBy("self")
}

// heldBy reads what a process holds from /proc; elsewhere than on Linux it is
// nothing.
func heldBy(pid string) holding {
	var h holding
	status, _ := os.ReadFile("/proc/" + pid + "/status")
	for line := range strings.Lines(string(status)) {
		if kb, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(kb), " kB"), 10, 64)
			h.bytes = n << 10
		}
	}
	// The fields after the name, in parentheses, begin with the third; times are
	// the 14th and 15th, in hundredths of a second.
	stat, _ := os.ReadFile("/proc/" + pid + "/stat")
	if fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])); len(fields) > 12 {
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		h.cpu = time.Duration(user+system) * 10 * time.Millisecond
	}
	files, _ := os.ReadDir("/proc/" + pid + "/fd")
	h.files = len(files)
	return h
}

// bytesBelow is the size of all files below a folder.
func bytesBelow(dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	return sum, err
}
