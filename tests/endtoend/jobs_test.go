package endtoend

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/polyphony-memory/polyphony/memory"
	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows"
	"github.com/polyphony-memory/polyphony/workflows/locate"
)

// This file is the test binary as another process: with envJob set it does not
// test but works. A job says "ready", waits for its standard input to close,
// works, and prints a line for each write that was acknowledged.

const (
	envJob       = "POLYPHONY_TEST_JOB"
	envFolder    = "POLYPHONY_TEST_FOLDER"
	envWorkspace = "POLYPHONY_TEST_WORKSPACE"
	envNumber    = "POLYPHONY_TEST_NUMBER"
	envWrites    = "POLYPHONY_TEST_WRITES"

	// jobPropose writes through the worker of a data folder, jobOpen with the
	// store into a workspace's folder.
	jobPropose = "propose"
	jobOpen    = "open"
)

// written is one acknowledged write of a job.
type written struct {
	FactID string `json:"fact_id"`
	Topic  string `json:"topic"`
	Status string `json:"status"`
}

func runJob(name string) int {
	jobs := map[string]func(context.Context, int, int) error{jobPropose: propose, jobOpen: openAndWrite}
	number, errNumber := strconv.Atoi(os.Getenv(envNumber))
	writes, errWrites := strconv.Atoi(os.Getenv(envWrites))
	if jobs[name] == nil || errNumber != nil || errWrites != nil {
		fmt.Fprintln(os.Stderr, "no such job")
		return 2
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if err := jobs[name](ctx, number, writes); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// ready waits until all jobs may begin together.
func ready() {
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// jobFact is the nth write of a job: every one has a topic of its own.
func jobFact(job, n int) record.ProposeFact {
	return record.ProposeFact{
		Caller: record.Caller{Workspace: os.Getenv(envWorkspace), Agent: fmt.Sprintf("agent-%d", job), Role: "coder", Key: fmt.Sprintf("write-%d-%d", job, n)},
		Domain: "harbour", Topic: fmt.Sprintf("berth %d of pier %d", n, job), Content: fmt.Sprintf("Berth %d of pier %d takes the ferry", n, job),
	}
}

func propose(ctx context.Context, job, writes int) error {
	t, shards, err := locate.Connect(ctx, os.Getenv(envFolder), noEnvironment, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer t.Close()
	c := workflows.NewClient(t, shards)
	ready()
	return writeAll(job, writes, func(f record.ProposeFact) (record.ProposeFactResult, error) { return c.ProposeFact(ctx, f) })
}

func openAndWrite(ctx context.Context, job, writes int) error {
	ready()
	s, err := memory.Open(ctx, os.Getenv(envFolder), os.Getenv(envWorkspace), memory.Options{})
	if err != nil {
		return fmt.Errorf("open: %w", withCause(err))
	}
	err = writeAll(job, writes, func(f record.ProposeFact) (record.ProposeFactResult, error) { return s.ProposeFact(ctx, f) })
	if err != nil {
		return withCause(err)
	}
	return s.Close()
}

// withCause shows what lies under the store's error, which for callers it
// keeps to itself.
func withCause(err error) error {
	if e, ok := err.(*record.Error); ok && e.Err != nil {
		return fmt.Errorf("%w, because: %w", err, e.Err)
	}
	return err
}

func writeAll(job, writes int, write func(record.ProposeFact) (record.ProposeFactResult, error)) error {
	out := json.NewEncoder(os.Stdout)
	for n := range writes {
		f := jobFact(job, n)
		res, err := write(f)
		if err == nil {
			err = out.Encode(written{FactID: res.FactID, Topic: f.Topic, Status: string(res.Status)})
		}
		if err != nil {
			return fmt.Errorf("write %d of %d: %w", n, job, err)
		}
	}
	return nil
}

// runJobs runs a job in n processes at once and returns what each
// acknowledged, and the time from their common start to the last end. A
// process that fails fails the test.
func runJobs(t *testing.T, n int, job, folder, workspace string, writes int) ([][]written, time.Duration) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := make([][]written, n)
	var standing, done sync.WaitGroup
	begin := make([]io.Closer, n)
	for i := range n {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = environment(envJob+"="+job, envFolder+"="+folder, envWorkspace+"="+workspace, envNumber+"="+strconv.Itoa(i), envWrites+"="+strconv.Itoa(writes))
		stderr := &output{}
		cmd.Stderr = stderr
		stdin, errIn := cmd.StdinPipe()
		stdout, errOut := cmd.StdoutPipe()
		if errIn != nil || errOut != nil {
			t.Fatal(errIn, errOut)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		begin[i] = stdin
		standing.Add(1)
		done.Go(func() {
			lines := bufio.NewScanner(stdout)
			lines.Scan()
			standing.Done()
			for lines.Scan() {
				var w written
				if err := json.Unmarshal(lines.Bytes(), &w); err != nil {
					t.Errorf("process %d prints %q", i, lines.Text())
					continue
				}
				acknowledged[i] = append(acknowledged[i], w)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("process %d: %v: %s", i, err, strings.TrimSpace(stderr.String()))
			}
		})
	}
	standing.Wait()
	began := time.Now()
	for _, b := range begin {
		_ = b.Close()
	}
	done.Wait()
	return acknowledged, time.Since(began)
}
