package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
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
	file, fact   float64       // Bytes of an empty workspace, and of each fact.
	create, open time.Duration // Making a workspace with its first fact, opening one for a fact.
	write        time.Duration // A fact into an open workspace, one caller.
	perOpenBytes float64       // Resident memory of an open workspace.
	perOpenFiles float64       // File descriptors of one.
	bulk         time.Duration // A fact out of many, 64 callers.
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
	fmt.Printf("measured on %d workspaces of %d facts: %.0f bytes a workspace and %.0f a fact; %s ms to make one, %s ms to open one and write, %s ms to write; "+
		"%.2f MB and %.1f descriptors while open; %.2f ms a fact in bulk\n\n", calibrated, factsEach, c.file, c.fact, ms(c.create), ms(c.open), ms(c.write),
		c.perOpenBytes/(1<<20), c.perOpenFiles, float64(c.bulk.Microseconds())/1000)
	return simulate(ctx, filepath.Join(dir, "many"), c, workspaces, facts)
}

func calibrate(ctx context.Context, dir string) (c costs, err error) {
	w, err := memory.NewWorkspaces(dir, memory.Options{})
	if err != nil {
		return c, err
	}
	words := newCorpus(11)
	before := held()
	start := time.Now()
	for i := range calibrated {
		if err := propose(ctx, w, words, i, 0, factsEach); err != nil {
			return c, err
		}
	}
	c.create = time.Since(start) / calibrated
	// More facts into each, one caller: what a fact costs in time and space.
	if err := w.Close(); err != nil {
		return c, err
	}
	small, err := bytesBelow(dir)
	if err != nil {
		return c, err
	}
	if w, err = memory.NewWorkspaces(dir, memory.Options{}); err != nil {
		return c, err
	}
	start = time.Now()
	for i := range calibrated {
		if err := propose(ctx, w, words, i, 1, factsEach); err != nil {
			return c, err
		}
	}
	c.open = time.Since(start) / calibrated
	after := held()
	c.perOpenBytes = float64(after.bytes-before.bytes) / calibrated
	c.perOpenFiles = float64(after.files-before.files) / calibrated
	start = time.Now()
	for n := 2; n < 6; n++ {
		for i := range calibrated {
			if err := propose(ctx, w, words, i, n, factsEach); err != nil {
				return c, err
			}
		}
	}
	c.write = time.Since(start) / (4 * calibrated)
	start = time.Now()
	if err := fillMany(ctx, w, words, calibrated, 6, factsEach); err != nil {
		return c, err
	}
	c.bulk = time.Since(start) / (calibrated * (factsEach - 6))
	if err := w.Close(); err != nil {
		return c, err
	}
	full, err := bytesBelow(dir)
	if err != nil {
		return c, err
	}
	c.fact = float64(full-small) / (calibrated * (factsEach - 1))
	c.file = float64(small)/calibrated - c.fact
	return c, nil
}

func simulate(ctx context.Context, dir string, c costs, workspaces, facts int) error {
	w, err := memory.NewWorkspaces(dir, memory.Options{})
	if err != nil {
		return err
	}
	words := newCorpus(12)
	each := facts / workspaces
	before := held()
	start := time.Now()
	if err := fillMany(ctx, w, words, workspaces, 0, each); err != nil {
		return err
	}
	filling := time.Since(start)
	rng := rand.New(rand.NewPCG(13, 13))
	start = time.Now()
	for n := range accesses {
		if err := propose(ctx, w, words, rng.IntN(workspaces), each+n, each); err != nil {
			return err
		}
	}
	access := time.Since(start) / accesses
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
	row("filling, facts a second", 1/(c.bulk.Seconds()+c.create.Seconds()/float64(each)), float64(workspaces*each)/filling.Seconds(), 0)
	row("a fact into a workspace at random, ms", 1000*(hit*c.write.Seconds()+(1-hit)*c.open.Seconds()), 1000*access.Seconds(), 2)
	row("memory of the open workspaces, MB", openLimit*c.perOpenBytes/(1<<20), float64(now.bytes-before.bytes)/(1<<20), 0)
	row("file descriptors", openLimit*c.perOpenFiles, float64(now.files-before.files), 0)
	return nil
}

// propose writes the n-th fact of the i-th workspace, which gets about of.
func propose(ctx context.Context, w *memory.Workspaces, words *corpus, i, n, of int) error {
	return put(ctx, w, words.proposal(fmt.Sprintf("scale-%d", i), n, of))
}

func put(ctx context.Context, w *memory.Workspaces, p record.ProposeFact) error {
	return w.Use(ctx, p.Workspace, func(s *memory.Store) error {
		_, err := s.ProposeFact(ctx, p)
		return err
	})
}

// fillMany writes the facts from to of into each workspace, one workspace after
// the other, 64 callers at once.
func fillMany(ctx context.Context, w *memory.Workspaces, words *corpus, workspaces, from, of int) error {
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
			next <- words.proposal(fmt.Sprintf("scale-%d", i), n, of)
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
}

func held() holding { return heldBy("self") }

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
