package main

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestDownload(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("plain")) }))
	t.Cleanup(plain.Close)
	release := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/file", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("weights")) })
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/file", http.StatusFound) })
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, plain.URL, http.StatusFound) })
	mux.HandleFunc("/round", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/round", http.StatusFound) })
	mux.HandleFunc("/login", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	mux.HandleFunc("/down", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	mux.HandleFunc("/stalled", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "7")
		_, _ = w.Write([]byte("wei"))
		w.(http.Flusher).Flush()
		<-release
	})
	hub := httptest.NewTLSServer(mux)
	t.Cleanup(hub.Close)
	t.Cleanup(func() { close(release) })
	client := hub.Client()
	client.CheckRedirect = staySecure
	get := download(client, 50*time.Millisecond)

	for _, path := range []string{"/file", "/moved"} {
		body, size, err := get(t.Context(), hub.URL+path)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(body)
		if string(content) != "weights" || size != 7 || err != nil || body.Close() != nil {
			t.Errorf("%s gives %q of %d bytes, %v", path, content, size, err)
		}
	}
	for path, missing := range map[string]bool{"/nothing": true, "/login": true, "/down": false, "/away": false, "/round": false, ":": false} {
		if _, _, err := get(t.Context(), hub.URL+path); err == nil || errors.Is(err, fs.ErrNotExist) != missing {
			t.Errorf("%s: %v, want missing %v", path, err, missing)
		}
	}
	body, _, err := get(t.Context(), hub.URL+"/stalled")
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(body)
	if string(content) != "wei" || !errors.Is(err, errStalled) {
		t.Errorf("a body that stands still gives %q, %v", content, err)
	}
	if err := body.Close(); err != nil && !strings.Contains(err.Error(), "cancel") {
		t.Error(err)
	}
}
