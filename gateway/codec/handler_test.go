package codec

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/polyphony-memory/polyphony/workflows/seal"
)

const (
	text = "the harbour gate opens at dusk"
	ui   = "http://127.0.0.1:8233"
)

// endpoint is a served handler, its log, a reader's token and a sealed payload.
type endpoint struct {
	url, token string
	log        *bytes.Buffer
	sealed     *commonpb.Payload
}

func serve(t *testing.T) *endpoint {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.json")
	ring := seal.Edit(path, nil)
	if _, err := ring.Rotate(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	token, _, err := ring.AddReader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e := &endpoint{token: token, log: &bytes.Buffer{}}
	c := seal.NewCodec(ring).WithSerializationContext(converter.WorkflowSerializationContext{WorkflowID: "a/demo/1"})
	plain, err := converter.GetDefaultDataConverter().ToPayload(text)
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Encode([]*commonpb.Payload{plain})
	if err != nil {
		t.Fatal(err)
	}
	e.sealed = out[0]
	mux := http.NewServeMux()
	mux.Handle("/codec/", NewHandler(Options{Ring: ring, Origins: []string{ui}, Log: slog.New(slog.NewTextHandler(e.log, nil))}))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	e.url = s.URL + "/codec/decode"
	return e
}

// body is the payload as the Web UI sends it.
func (e *endpoint) body(t *testing.T) string { return request(t, e.sealed) }

func request(t *testing.T, p *commonpb.Payload) string {
	t.Helper()
	raw, err := protojson.Marshal(&commonpb.Payloads{Payloads: []*commonpb.Payload{p}})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func do(t *testing.T, method, url, body string, head ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(head); i += 2 {
		r.Header.Set(head[i], head[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(raw)
}

func TestHandler(t *testing.T) {
	t.Parallel()
	e := serve(t)
	basic := func(password string) string {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.SetBasicAuth("me", password)
		return r.Header.Get("Authorization")
	}
	tampered := request(t, &commonpb.Payload{Metadata: e.sealed.Metadata, Data: append([]byte{0}, e.sealed.Data...)})
	encode := strings.TrimSuffix(e.url, "decode") + "encode"
	cases := []struct {
		name, method, url, body string
		head                    []string
		want                    int
	}{
		{"a token", "POST", e.url, e.body(t), []string{"Authorization", "Bearer " + e.token}, 200},
		{"a token as a browser sends it", "POST", e.url, e.body(t), []string{"Authorization", basic(e.token), "Origin", ui}, 200},
		{"no token", "POST", e.url, e.body(t), nil, 401},
		{"no token, from the Web UI", "POST", e.url, e.body(t), []string{"Origin", ui}, 401},
		{"another token", "POST", e.url, e.body(t), []string{"Authorization", "Bearer plk_" + strings.Repeat("A", 43)}, 401},
		{"an empty password", "POST", e.url, e.body(t), []string{"Authorization", basic("")}, 401},
		{"another origin", "POST", e.url, e.body(t), []string{"Authorization", "Bearer " + e.token, "Origin", "http://127.0.0.1:8234"}, 403},
		{"an opaque origin", "POST", e.url, e.body(t), []string{"Authorization", "Bearer " + e.token, "Origin", "null"}, 403},
		{"a preflight of another origin", "OPTIONS", e.url, "", []string{"Origin", "https://example.com"}, 403},
		{"a preflight without origin", "OPTIONS", e.url, "", nil, 401},
		{"encoding", "POST", encode, e.body(t), []string{"Authorization", "Bearer " + e.token}, 404},
		{"not JSON", "POST", e.url, "x", []string{"Authorization", "Bearer " + e.token}, 400},
		{"a changed payload", "POST", e.url, tampered, []string{"Authorization", "Bearer " + e.token}, 422},
		{"too large", "POST", e.url, strings.Repeat(" ", maxBodyBytes+1), []string{"Authorization", "Bearer " + e.token}, 413},
		{"signing in without a token", "GET", e.url, "", nil, 401},
		{"signing in", "GET", e.url, "", []string{"Authorization", basic(e.token)}, 200},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			res, body := do(t, c.method, c.url, c.body, c.head...)
			if res.StatusCode != c.want {
				t.Fatalf("status %d, want %d: %s", res.StatusCode, c.want, body)
			}
			// The decoded payload is the text in base64, as protobuf has it.
			opened := false
			if c.want == 200 && c.method == "POST" {
				var out commonpb.Payloads
				if err := protojson.Unmarshal([]byte(body), &out); err != nil {
					t.Fatal(err)
				}
				opened = strings.Contains(string(out.Payloads[0].Data), text)
			}
			if opened != (c.want == 200 && c.method == "POST") {
				t.Errorf("opened: %v", opened)
			}
			if allowed := res.Header.Get("Access-Control-Allow-Origin"); allowed != "" && allowed != ui {
				t.Errorf("allowed origin %q", allowed)
			}
		})
	}
	if log := e.log.String(); strings.Contains(log, e.token) || strings.Contains(log, text) || !strings.Contains(log, "status=401") {
		t.Errorf("the log:\n%s", log)
	}
}

func TestHandler_preflight(t *testing.T) {
	t.Parallel()
	e := serve(t)
	res, _ := do(t, http.MethodOptions, e.url, "", "Origin", ui, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type,x-namespace")
	if res.StatusCode != http.StatusNoContent || res.Header.Get("Access-Control-Allow-Origin") != ui || res.Header.Get("Access-Control-Allow-Credentials") != "true" ||
		res.Header.Get("Access-Control-Allow-Methods") != "POST" || !strings.Contains(res.Header.Get("Access-Control-Allow-Headers"), "X-Namespace") {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	res, _ = do(t, http.MethodPost, e.url, e.body(t), "Authorization", "Bearer "+e.token)
	if got := res.Header.Get("Access-Control-Allow-Origin"); got != "" {
		t.Errorf("without an origin the answer allows %q", got)
	}
}

// TestHandler_speaksTheProtocol uses the SDK's own client of codec servers.
func TestHandler_speaksTheProtocol(t *testing.T) {
	t.Parallel()
	e := serve(t)
	remote := converter.NewRemotePayloadCodec(converter.RemotePayloadCodecOptions{
		Endpoint:      strings.TrimSuffix(e.url, "/decode"),
		ModifyRequest: func(r *http.Request) error { r.Header.Set("Authorization", "Bearer "+e.token); return nil },
	})
	out, err := remote.Decode([]*commonpb.Payload{e.sealed})
	if err != nil {
		t.Fatal(err)
	}
	var got string
	if err := converter.GetDefaultDataConverter().FromPayload(out[0], &got); err != nil || got != text {
		t.Errorf("%q, %v", got, err)
	}
}
