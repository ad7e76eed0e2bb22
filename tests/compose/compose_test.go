package compose

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/template"
	"github.com/compose-spec/compose-go/v2/types"
	"go.temporal.io/server/common/dynamicconfig"
)

const (
	healthy   = types.ServiceConditionHealthy
	completed = types.ServiceConditionCompletedSuccessfully
)

var workers = []string{"worker-a", "worker-b"}

func TestServices(t *testing.T) {
	t.Parallel()
	project := load(t, nil)
	// Each service, and what must be true of which others before it starts.
	want := map[string]map[string]string{
		"postgres":           {},
		"temporal-schema":    {"postgres": healthy},
		"temporal":           {"postgres": healthy, "temporal-schema": completed},
		"temporal-namespace": {"temporal": healthy},
		"temporal-ui":        {"temporal": healthy},
		"worker-a":           {"temporal": healthy, "temporal-namespace": completed},
		"worker-b":           {"temporal": healthy, "temporal-namespace": completed},
	}
	got := map[string]map[string]string{}
	for name, service := range project.Services {
		got[name] = map[string]string{}
		for on, dependency := range service.DependsOn {
			got[name][on] = dependency.Condition
		}
	}
	for name := range want {
		if !maps.Equal(got[name], want[name]) {
			t.Errorf("%s depends on %v, want %v", name, got[name], want[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("services %v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

func TestHealthAndRestart(t *testing.T) {
	t.Parallel()
	for name, service := range load(t, nil).Services {
		// What runs once ends; its end is what others wait for.
		if name == "temporal-schema" || name == "temporal-namespace" {
			if service.Restart != types.RestartPolicyNo || service.HealthCheck != nil {
				t.Errorf("%s runs once, but restarts %q with health check %v", name, service.Restart, service.HealthCheck)
			}
			continue
		}
		if service.Restart != types.RestartPolicyUnlessStopped {
			t.Errorf("%s restarts %q", name, service.Restart)
		}
		check := service.HealthCheck
		if check == nil || check.Disable || len(check.Test) < 2 {
			t.Errorf("%s has no health check", name)
			continue
		}
		if check.Interval == nil || check.Timeout == nil || check.StartPeriod == nil || check.Retries == nil || *check.Retries == 0 {
			t.Errorf("%s leaves bounds of its health check to chance: %+v", name, check)
		}
		if slices.Contains(workers, name) && (check.Test[0] != "CMD" || check.Test[1] != "/starter") {
			t.Errorf("%s: the image has no shell and no other program for %q", name, check.Test)
		}
	}
}

func TestWorkers(t *testing.T) {
	t.Parallel()
	project := load(t, nil)
	owner := map[int]string{}
	volumes := map[string]string{}
	shards := -1
	for _, name := range workers {
		w, ok := project.Services[name]
		if !ok {
			t.Fatalf("no service %s", name)
		}
		if w.Build == nil || w.Image != "polyphony:dev" {
			t.Errorf("%s: image %q, build %v", name, w.Image, w.Build)
		}
		if got := environment(w, "TEMPORAL_ADDRESS"); got != "temporal:7233" {
			t.Errorf("%s: TEMPORAL_ADDRESS %q", name, got)
		}
		if !w.ReadOnly || !slices.Contains(w.CapDrop, "ALL") {
			t.Errorf("%s may write its image or keeps capabilities", name)
		}
		if w.StopGracePeriod == nil || time.Duration(*w.StopGracePeriod) < 45*time.Second {
			t.Errorf("%s is killed after %v, before its own 45 s to stop", name, w.StopGracePeriod)
		}

		flags := flagsOf(t, w.Command)
		n, err := strconv.Atoi(flags["--shards"])
		if err != nil || n <= 0 || shards >= 0 && n != shards {
			t.Fatalf("%s: --shards %q, %v; the others %d", name, flags["--shards"], err, shards)
		}
		shards = n
		// A worker must not be ill because another is, nor well while one of its
		// own shards is not.
		if want := []string{"CMD", "/starter", "health", "--shards", flags["--own"], "--timeout", "4s"}; w.HealthCheck == nil || !slices.Equal(w.HealthCheck.Test, want) {
			t.Errorf("%s: health check %v, want %q", name, w.HealthCheck, want)
		} else if time.Duration(*w.HealthCheck.Timeout) <= 4*time.Second {
			t.Errorf("%s: the check is killed after %v, before it can say what is wrong", name, w.HealthCheck.Timeout)
		}
		if environment(w, "POLYPHONY_SHARDS") != flags["--shards"] {
			t.Errorf("%s: --shards %s, but the check counts %s", name, flags["--shards"], environment(w, "POLYPHONY_SHARDS"))
		}
		for _, shard := range ownRange(t, flags["--own"]) {
			if other, taken := owner[shard]; taken {
				t.Errorf("shard %d is owned by %s and %s", shard, other, name)
			}
			owner[shard] = name
		}

		if len(w.Volumes) != 1 || w.Volumes[0].Type != types.VolumeTypeVolume || w.Volumes[0].Target != flags["--data"] {
			t.Fatalf("%s: volumes %+v, --data %q", name, w.Volumes, flags["--data"])
		}
		source := w.Volumes[0].Source
		if other, taken := volumes[source]; taken {
			t.Errorf("%s and %s share volume %s", other, name, source)
		}
		volumes[source] = name
		if _, ok := project.Volumes[source]; !ok {
			t.Errorf("volume %s of %s is not declared", source, name)
		}
	}
	for shard := range shards {
		if owner[shard] == "" {
			t.Errorf("nobody owns shard %d", shard)
		}
	}
	if len(owner) != shards {
		t.Errorf("%d shards are owned, of %d", len(owner), shards)
	}
}

func TestPorts_Loopback(t *testing.T) {
	t.Parallel()
	published := map[string]string{}
	for name, service := range load(t, nil).Services {
		if service.NetworkMode != "" || service.Privileged {
			t.Errorf("%s: network_mode %q, privileged %v", name, service.NetworkMode, service.Privileged)
		}
		for _, port := range service.Ports {
			if ip := net.ParseIP(port.HostIP); ip == nil || !ip.IsLoopback() {
				t.Errorf("%s publishes port %s on %q", name, port.Published, port.HostIP)
			}
			if other, taken := published[port.Published]; taken {
				t.Errorf("%s and %s both publish port %s", other, name, port.Published)
			}
			published[port.Published] = name
		}
	}
	if published["7233"] != "temporal" || published["8233"] != "temporal-ui" {
		t.Errorf("published: %v", published)
	}
}

func TestImages_Pinned(t *testing.T) {
	t.Parallel()
	project := load(t, nil)
	for name, service := range project.Services {
		_, tag, _ := strings.Cut(service.Image, ":")
		if tag == "" || tag == "latest" || service.Build == nil && !strings.ContainsAny(tag, "0123456789") {
			t.Errorf("%s: image %q is not pinned", name, service.Image)
		}
	}
	// The cluster runs what the embedded engine runs.
	server := strings.TrimPrefix(moduleVersion(t, "go.temporal.io/server"), "v")
	ui := strings.TrimPrefix(moduleVersion(t, "github.com/temporalio/ui-server/v2"), "v")
	for name, want := range map[string]string{
		"temporal":           "temporalio/server:" + server,
		"temporal-schema":    "temporalio/admin-tools:" + server,
		"temporal-namespace": "temporalio/admin-tools:" + server,
		"temporal-ui":        "temporalio/ui:" + ui,
	} {
		if got := project.Services[name].Image; got != want {
			t.Errorf("%s: image %q, want %q as in go.mod", name, got, want)
		}
	}
}

func TestVariables_Defaulted(t *testing.T) {
	t.Parallel()
	model, err := loader.LoadModelWithContext(t.Context(), details(t, nil), func(o *loader.Options) {
		o.SkipInterpolation = true
		o.SkipNormalization = true
		o.SkipResolveEnvironment = true
		o.SetProjectName("polyphony", true)
	})
	if err != nil {
		t.Fatal(err)
	}
	variables := template.ExtractVariables(model, template.DefaultPattern)
	for name, v := range variables {
		if v.DefaultValue == "" {
			t.Errorf("%s has no default", name)
		}
	}
	for _, name := range []string{"POSTGRES_PASSWORD", "POSTGRES_USER", "TEMPORAL_NAMESPACE", "TEMPORAL_PORT", "TEMPORAL_UI_PORT"} {
		if _, ok := variables[name]; !ok {
			t.Errorf("%s cannot be set", name)
		}
	}

	// A password that is set reaches all who use it, and the default nobody.
	project := load(t, []string{"POSTGRES_PASSWORD=secret"})
	for service, variable := range map[string]string{
		"postgres": "POSTGRES_PASSWORD", "temporal-schema": "SQL_PASSWORD", "temporal": "POSTGRES_PWD",
	} {
		if got := environment(project.Services[service], variable); got != "secret" {
			t.Errorf("%s: %s is %q", service, variable, got)
		}
	}
}

func TestDynamicConfig(t *testing.T) {
	t.Parallel()
	project := load(t, nil)
	temporal := project.Services["temporal"]
	path := environment(temporal, "DYNAMIC_CONFIG_FILE_PATH")
	if len(temporal.Configs) != 1 || temporal.Configs[0].Target != path {
		t.Fatalf("configs %+v, read from %q", temporal.Configs, path)
	}
	content := project.Configs[temporal.Configs[0].Source].Content
	// The server itself says which keys it knows and which values they take.
	loaded := dynamicconfig.LoadYamlFile([]byte(content))
	if err := loaded.Err(); err != nil || len(loaded.Warnings) > 0 {
		t.Fatalf("the server does not take it: %v, %v\n%s", err, loaded.Warnings, content)
	}
	for _, setting := range []interface{ Key() dynamicconfig.Key }{
		dynamicconfig.TransferProcessorMaxPollRPS, dynamicconfig.TimerProcessorMaxPollRPS,
		dynamicconfig.VisibilityProcessorMaxPollRPS, dynamicconfig.OutboundProcessorMaxPollRPS,
	} {
		values := loaded.Map[setting.Key()]
		if len(values) != 1 || values[0].Value != 2000 {
			t.Errorf("%v is %v, want 2000", setting.Key(), values)
		}
	}
}

// TestScripts lets a shell read, and not run, what the one-shot services are given.
func TestScripts(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell here")
	}
	for name, service := range load(t, nil).Services {
		if len(service.Entrypoint) == 0 {
			continue
		}
		if !slices.Equal(service.Entrypoint, []string{"/bin/sh", "-euc"}) || len(service.Command) != 1 {
			t.Errorf("%s runs %q %q", name, service.Entrypoint, service.Command)
			continue
		}
		cmd := exec.CommandContext(t.Context(), shell, "-n")
		// The engine turns $$ into $ when it creates the container.
		cmd.Stdin = strings.NewReader(service.Command[0])
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
	script := load(t, nil).Services["temporal-namespace"].Command[0]
	for _, attribute := range []string{"MemoryWorkspace", "MemoryAgent", "MemoryDomain", "MemoryOutcome"} {
		if !strings.Contains(script, attribute) {
			t.Errorf("search attribute %s is not registered", attribute)
		}
	}
	if retention := 30 * 24 * time.Hour; !strings.Contains(script, fmt.Sprintf("--retention %dh", int(retention.Hours()))) {
		t.Errorf("the namespace does not keep workflows for %v", retention)
	}
}

func TestDockerfile(t *testing.T) {
	t.Parallel()
	content := mustRead(t, filepath.Join(root(t), "Dockerfile"))
	goVersion := regexp.MustCompile(`(?m)^go (\S+)$`).FindSubmatch(mustRead(t, filepath.Join(root(t), "go.mod")))
	if goVersion == nil {
		t.Fatal("go.mod names no version of Go")
	}
	var stages, users []string
	copied := map[string]bool{}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "FROM":
			stages, users = append(stages, fields[1]), nil
		case "USER":
			users = append(users, fields[1])
		case "COPY":
			if !strings.HasPrefix(fields[1], "--") {
				for _, from := range fields[1 : len(fields)-1] {
					copied[from] = true
				}
			}
		}
	}
	if want := []string{"golang:" + string(goVersion[1]) + "-bookworm", "scratch"}; !slices.Equal(stages, want) {
		t.Errorf("stages %v, want %v", stages, want)
	}
	if len(users) != 1 || regexp.MustCompile(`^[1-9]\d*(:[1-9]\d*)?$`).FindString(users[0]) == "" {
		t.Errorf("the image runs as %v, want one number that is not root's", users)
	}
	if !bytes.Contains(content, []byte("CGO_ENABLED=0")) {
		t.Error("the binaries are not static")
	}
	if !bytes.Contains(content, []byte("go build -tags cluster ")) {
		t.Error("the worker is built with the embedded server, which it never starts here")
	}
	// A room that is made but not copied would be missed only when the image is built.
	for _, room := range []string{"memory", "recall", "dispatch", "activities", "workflows", "gateway", "worker", "starter"} {
		if !copied[room] {
			t.Errorf("%s is not copied into the build", room)
		}
	}
}

// load reads docker-compose.yml as an engine would, with nothing in the environment but env.
func load(t *testing.T, env []string) *types.Project {
	t.Helper()
	project, err := loader.LoadWithContext(t.Context(), details(t, env))
	if err != nil {
		t.Fatal(err)
	}
	return project
}

func details(t *testing.T, env []string) types.ConfigDetails {
	t.Helper()
	dir := root(t)
	return types.ConfigDetails{
		WorkingDir:  dir,
		ConfigFiles: types.ToConfigFiles([]string{filepath.Join(dir, "docker-compose.yml")}),
		Environment: types.NewMapping(env),
	}
}

// environment returns a variable of a service, or "".
func environment(service types.ServiceConfig, name string) string {
	if value := service.Environment[name]; value != nil {
		return *value
	}
	return ""
}

func flagsOf(t *testing.T, command []string) map[string]string {
	t.Helper()
	if len(command)%2 != 0 {
		t.Fatalf("command %q", command)
	}
	flags := map[string]string{}
	for pair := range slices.Chunk(command, 2) {
		flags[pair[0]] = pair[1]
	}
	return flags
}

func ownRange(t *testing.T, text string) []int {
	t.Helper()
	from, to, ok := strings.Cut(text, "-")
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	if !ok || err1 != nil || err2 != nil || last < first {
		t.Fatalf("--own %q", text)
	}
	var shards []int
	for shard := first; shard <= last; shard++ {
		shards = append(shards, shard)
	}
	return shards
}

func root(t *testing.T) string {
	t.Helper()
	return goList(t, "-m", "-f", "{{.Dir}}")
}

func moduleVersion(t *testing.T, module string) string {
	t.Helper()
	return goList(t, "-m", "-f", "{{.Version}}", module)
}

func goList(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list %v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
