package seal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// fixed is the time of every test, which may move it.
var fixed = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// ring is a key file with one key.
func ring(t *testing.T, now func() time.Time) *Ring {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.json")
	if _, err := Edit(path, now).Rotate(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	r, err := Open(path, now)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func still() time.Time { return fixed }

// bind is the converter of a connection, for the payloads of one workflow.
func bind(r *Ring, workflow string) converter.DataConverter {
	var opts client.Options
	Configure(&opts, r)
	return converter.WithDataConverterSerializationContext(opts.DataConverter, converter.WorkflowSerializationContext{Namespace: "default", WorkflowID: workflow})
}

func sealed(t *testing.T, dc converter.DataConverter, v any) *commonpb.Payload {
	t.Helper()
	p, err := dc.ToPayload(v)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const secret = "سدِّ کوهستانِ آبی در پاییز باز می‌شود"

func TestCodec_roundTrip(t *testing.T) {
	t.Parallel()
	r := ring(t, still)
	for name, v := range map[string]string{"Persian": secret, "empty": "", "large": strings.Repeat("x", record.MaxRequestBytes)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dc := bind(r, "propose-fact/demo/1")
			p := sealed(t, dc, v)
			if v != "" && bytes.Contains(p.Data, []byte(v)) {
				t.Error("the payload holds the text")
			}
			if again := sealed(t, dc, v); bytes.Equal(again.Data, p.Data) {
				t.Error("the same text is sealed to the same bytes twice")
			}
			var got string
			if err := dc.FromPayload(p, &got); err != nil || got != v {
				t.Errorf("opened %d bytes, %v; want %d", len(got), err, len(v))
			}
			// What an activity returns is of the same workflow.
			activity := converter.WithDataConverterSerializationContext(bind(r, "other"), converter.ActivitySerializationContext{WorkflowID: "propose-fact/demo/1", IsLocal: true})
			if err := activity.FromPayload(p, &got); err != nil {
				t.Error(err)
			}
			if grown := proto.Size(p) - len(v); grown > 200 {
				t.Errorf("sealing adds %d bytes", grown)
			}
		})
	}
}

func TestCodec_refuses(t *testing.T) {
	t.Parallel()
	r := ring(t, still)
	dc := bind(r, "a/demo/1")
	cases := map[string]func(p *commonpb.Payload){
		"changed text":  func(p *commonpb.Payload) { p.Data[len(p.Data)-1] ^= 1 },
		"changed nonce": func(p *commonpb.Payload) { p.Data[0] ^= 1 },
		"cut off":       func(p *commonpb.Payload) { p.Data = p.Data[:5] },
		"nothing":       func(p *commonpb.Payload) { p.Data = nil },
		"of another workflow": func(p *commonpb.Payload) {
			o := sealed(t, bind(r, "a/demo/2"), "x")
			p.Data, p.Metadata = o.Data, o.Metadata
		},
		"another workflow's claim": func(p *commonpb.Payload) { p.Metadata[metadataWorkflow] = []byte("a/demo/2") },
		"another's, renamed": func(p *commonpb.Payload) {
			o := sealed(t, bind(r, "a/demo/2"), "x")
			p.Data = o.Data
		},
		"unknown key": func(p *commonpb.Payload) { p.Metadata[metadataKey] = []byte("none") },
		"no key":      func(p *commonpb.Payload) { delete(p.Metadata, metadataKey) },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sealed(t, dc, secret)
			change(p)
			var got string
			err := dc.FromPayload(p, &got)
			if record.ErrorCode(err) != record.Unavailable || !errors.Is(err, errSealed) || got != "" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	t.Run("another file's key under the same name", func(t *testing.T) {
		t.Parallel()
		other := ring(t, still)
		p := sealed(t, dc, secret)
		p.Metadata[metadataKey] = []byte(other.sealing().ID)
		if err := bind(other, "a/demo/1").FromPayload(p, new(string)); !errors.Is(err, errSealed) {
			t.Error(err)
		}
	})
	t.Run("a program without keys", func(t *testing.T) {
		t.Parallel()
		none, err := Open("", nil)
		if err != nil {
			t.Fatal(err)
		}
		err = bind(none, "a/demo/1").FromPayload(sealed(t, dc, secret), new(string))
		if !errors.Is(err, errSealed) || !strings.Contains(err.Error(), "key file") {
			t.Error(err)
		}
		plain := sealed(t, bind(none, "a/demo/1"), secret)
		if !bytes.Contains(plain.Data, []byte(secret)) {
			t.Error("sealed without a key")
		}
		// Runs that began without a key go on with one.
		var got string
		if err := dc.FromPayload(plain, &got); err != nil || got != secret {
			t.Error(got, err)
		}
	})
}

// TestCodec_inWorkflow shows that workflow code is stopped, not told: an error
// would end its run.
func TestCodec_inWorkflow(t *testing.T) {
	t.Parallel()
	dc := bind(ring(t, still), "a/demo/1")
	p := sealed(t, dc, secret)
	p.Data[20] ^= 1
	if err := dc.FromPayload(p, new(string)); err == nil {
		t.Fatal("the payload was not changed")
	}
	defer func() {
		err, ok := recover().(error)
		if !ok || !errors.Is(err, errSealed) {
			t.Errorf("panicked with %v", err)
		}
	}()
	err := dc.(workflow.ContextAware).WithWorkflowContext(nil).FromPayload(p, new(string))
	t.Errorf("workflow code was told: %v", err)
}

func TestFailures_areSealed(t *testing.T) {
	t.Parallel()
	var opts client.Options
	Configure(&opts, ring(t, still))
	ctx := converter.ActivitySerializationContext{WorkflowID: "a/demo/1"}
	fc := converter.WithFailureConverterSerializationContext(opts.FailureConverter, ctx)
	f := fc.ErrorToFailure(temporal.NewNonRetryableApplicationError(secret, string(record.NotFound), nil, record.Error{Code: record.NotFound, Message: secret}))
	raw, err := proto.Marshal(f)
	if err != nil || bytes.Contains(raw, []byte(secret)) {
		t.Errorf("the failure holds its text: %v", err)
	}
	var app *temporal.ApplicationError
	if back := fc.FailureToError(f); !errors.As(back, &app) || app.Message() != secret || app.Type() != string(record.NotFound) {
		t.Errorf("came back as %v", back)
	}
}

func TestRing_rotate(t *testing.T) {
	t.Parallel()
	now := fixed
	var mu sync.Mutex
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	r := ring(t, clock)
	old := sealed(t, bind(r, "w"), secret)
	first := r.sealing().ID

	// Another process adds a key that waits.
	second, err := Edit(r.path, clock).Rotate(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.sealing().ID; got != first {
		t.Errorf("%s seals before its time", got)
	}
	if r.opening(second.ID) == nil {
		t.Error("the waiting key does not open")
	}
	mu.Lock()
	now = now.Add(time.Hour)
	mu.Unlock()
	fresh := sealed(t, bind(r, "w"), secret)
	if got := string(fresh.Metadata[metadataKey]); got != second.ID {
		t.Errorf("%s seals, want the newest, %s", got, second.ID)
	}
	for _, p := range []*commonpb.Payload{old, fresh} {
		var got string
		if err := bind(r, "w").FromPayload(p, &got); err != nil || got != secret {
			t.Error(got, err)
		}
	}

	if err := r.Remove(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if err := bind(r, "w").FromPayload(old, new(string)); !errors.Is(err, errSealed) {
		t.Errorf("a removed key opens: %v", err)
	}
	if err := r.Remove(t.Context(), first); record.ErrorCode(err) != record.NotFound {
		t.Error(err)
	}
	if err := r.Remove(t.Context(), second.ID); record.ErrorCode(err) != record.InvalidArgument {
		t.Errorf("the last key was removed: %v", err)
	}
	if _, err := r.Rotate(t.Context(), -1); record.ErrorCode(err) != record.InvalidArgument {
		t.Error(err)
	}

	// A file that vanishes leaves the keys that were read.
	if err := os.Remove(r.path); err != nil {
		t.Fatal(err)
	}
	if err := bind(r, "w").FromPayload(fresh, new(string)); err != nil {
		t.Error(err)
	}
}

func TestRing_rotateAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "keys.json")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := Edit(path, still).Rotate(t.Context(), 0); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	r, err := Open(path, still)
	if err != nil {
		t.Fatal(err)
	}
	if keys, _, err := r.List(); err != nil || len(keys) != 8 {
		t.Errorf("%d keys of 8, %v", len(keys), err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestRing_readers(t *testing.T) {
	t.Parallel()
	r := ring(t, still)
	token, reader, err := r.AddReader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(r.path)
	if err != nil || bytes.Contains(raw, []byte(token)) {
		t.Errorf("the file holds the token: %v", err)
	}
	for text, want := range map[string]bool{token: true, "": false, token + "x": false, token[:len(token)-1]: false, reader.ID: false} {
		if got := r.May(text); got != want {
			t.Errorf("May(%q) = %v", text, got)
		}
	}
	if err := r.Remove(t.Context(), reader.ID); err != nil {
		t.Fatal(err)
	}
	if r.May(token) {
		t.Error("a removed reader may still read")
	}
}

func TestOpen_refuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"not JSON": "secret", "no keys": `{"keys":[]}`, "short key": `{"keys":[{"id":"a","secret":"AAAA"}]}`,
		"no id": `{"keys":[{"secret":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}]}`,
	} {
		path := filepath.Join(t.TempDir(), "keys.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, nil); record.ErrorCode(err) != record.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		} else if strings.Contains(err.Error(), path) {
			t.Errorf("%s: the message tells the path: %v", name, err)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none"), nil); record.ErrorCode(err) != record.InvalidArgument {
		t.Error(err)
	}
}
