package topology

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/polyphony-memory/polyphony/workflows"
	"github.com/polyphony-memory/polyphony/workflows/locate"
)

// shards is what docker-compose.yml sets.
const shards = 16

// patience bounds what a loaded machine may need for one step.
const patience = 3 * time.Minute

// cluster is PostgreSQL with a Temporal server on it, and a client of that.
type cluster struct {
	t               *testing.T // Of the whole: processes outlive the part that starts them.
	folder, address string
	worker          string // The worker's program.
	temporal        client.Client
}

// client is the typed client that other programs use.
func (c *cluster) client() *workflows.Client { return workflows.NewClient(c.temporal, shards) }

// startCluster skips the test where PostgreSQL is missing.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	programs := postgresPrograms(t)
	folder, err := os.MkdirTemp("", "polyphony-topology-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	c := &cluster{t: t, folder: folder, worker: filepath.Join(folder, "worker")}
	engine := filepath.Join(folder, "engine")
	build(t, c.worker, "-tags=cluster", "./worker")
	build(t, engine, "./tests/topology/engine")

	database := startPostgres(t, programs, folder)
	if out, err := exec.CommandContext(t.Context(), engine, "--database", database, "--set-up").CombinedOutput(); err != nil {
		t.Fatalf("the schemas: %v\n%s", err, out)
	}
	server := spawn(t, "engine", exec.Command(engine, "--database", database))
	eventually(t, "the Temporal server listens", func() bool {
		server.mustRun(t)
		return strings.HasSuffix(server.stdout.String(), "\n")
	})
	c.address = strings.TrimSpace(server.stdout.String())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c.temporal, _, err = locate.Connect(ctx, folder, c.lookup, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.temporal.Close)
	return c
}

// lookup is the environment of callers and workers.
func (c *cluster) lookup(name string) (string, bool) {
	v, ok := map[string]string{"TEMPORAL_ADDRESS": c.address, locate.EnvShards: strconv.Itoa(shards)}[name]
	return v, ok
}

// spawnWorker runs a worker of the shards without waiting for it.
func (c *cluster) spawnWorker(name, own string) *process {
	c.t.Helper()
	cmd := exec.Command(c.worker, "--data", c.data(name), "--shards", strconv.Itoa(shards), "--own", own)
	cmd.Env = append(cleanEnvironment(), "TEMPORAL_ADDRESS="+c.address)
	return spawn(c.t, name, cmd)
}

// startWorker runs a worker and returns once every shard of it answers.
func (c *cluster) startWorker(t *testing.T, name, own string) *process {
	t.Helper()
	p := c.spawnWorker(name, own)
	c.awaitShards(t, p, own)
	return p
}

func (c *cluster) awaitShards(t *testing.T, p *process, own string) {
	t.Helper()
	asked, err := locate.ParseShards("own", own, shards)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the shards "+own+" answer", func() bool {
		p.mustRun(t)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err = c.client().CheckShards(ctx, asked)
		return err == nil
	})
}

// data is a worker's data folder: its volume.
func (c *cluster) data(name string) string { return filepath.Join(c.folder, name) }

// postgresPrograms returns the folder of PostgreSQL's programs.
func postgresPrograms(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("PostgreSQL is started as Debian installs it")
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Skip("PostgreSQL is not installed; on Debian: apt-get install postgresql")
	}
	return filepath.Dir(slices.Max(found))
}

// startPostgres makes a database server on loopback and returns its address.
// PostgreSQL refuses to run as root, so root lends it Debian's own user.
func startPostgres(t *testing.T, programs, folder string) string {
	t.Helper()
	data := filepath.Join(folder, "postgres")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	as := func(cmd *exec.Cmd) *exec.Cmd {
		cmd.Dir = data
		return cmd
	}
	if os.Getuid() == 0 {
		postgres, err := user.Lookup("postgres")
		if err != nil {
			t.Skip("PostgreSQL does not run as root, and there is no user postgres")
		}
		uid, errUID := strconv.ParseUint(postgres.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(postgres.Gid, 10, 32)
		if err := errors.Join(errUID, errGID, os.Chmod(folder, 0o711), os.Chown(data, int(uid), int(gid))); err != nil {
			t.Fatal(err)
		}
		as = func(cmd *exec.Cmd) *exec.Cmd {
			cmd.Dir = data
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
			return cmd
		}
	}
	files := filepath.Join(data, "files")
	if out, err := as(exec.Command(filepath.Join(programs, "initdb"), "-D", files, "-U", "temporal", "--auth=trust")).CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	address := freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	p := spawn(t, "postgres", as(exec.Command(filepath.Join(programs, "postgres"), "-D", files,
		"-c", "listen_addresses=127.0.0.1", "-c", "port="+port, "-c", "unix_socket_directories=", "-c", "max_connections=200")))
	eventually(t, "PostgreSQL is ready", func() bool {
		p.mustRun(t)
		return strings.Contains(p.stderr.String(), "ready to accept connections")
	})
	return address
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func build(t *testing.T, out string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"build", "-buildvcs=false", "-o", out}, args...)...)
	cmd.Dir = filepath.Join("..", "..")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %v: %v\n%s", args, err, text)
	}
}

// cleanEnvironment is ours without what would lead a worker elsewhere.
func cleanEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "TEMPORAL_") || strings.HasPrefix(v, "POLYPHONY_")
	})
}

// process is one run of a program.
type process struct {
	name           string
	cmd            *exec.Cmd
	stdout, stderr *output
	exited         chan struct{}
}

func spawn(t *testing.T, name string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{name: name, cmd: cmd, stdout: &output{}, stderr: &output{}, exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.stdout, p.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s says at the end:\n%s", name, tail(p.stderr.String(), 20))
		}
	})
	return p
}

// mustRun ends the test when the process ended.
func (p *process) mustRun(t *testing.T) {
	t.Helper()
	select {
	case <-p.exited:
		t.Fatalf("%s ended with %d:\n%s", p.name, p.cmd.ProcessState.ExitCode(), tail(p.stderr.String(), 20))
	default:
	}
}

// kill ends the process with SIGKILL, at once.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// terminate ends the process with SIGTERM, in order.
func (p *process) terminate(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.exited:
	case <-time.After(patience):
		t.Fatalf("%s did not end", p.name)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("%s ended with %d", p.name, code)
	}
}

// output is what a process printed; it may be read while the process writes.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// eventually waits until cond holds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func tail(s string, lines int) string {
	all := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// without returns the shards from first to last but one, as --own takes them.
func without(first, last, but int) string {
	var own []string
	for s := first; s <= last; s++ {
		if s != but {
			own = append(own, fmt.Sprint(s))
		}
	}
	return strings.Join(own, ",")
}
