package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"time"

	"github.com/polyphony-memory/polyphony/recall/embedding"
)

const (
	// headerTimeout is how long a hub may take to begin its answer, and
	// stallTimeout how long the answer may stand still.
	headerTimeout = 30 * time.Second
	stallTimeout  = time.Minute
)

// newDownload returns how models are downloaded: over HTTP, through the proxy
// that the environment names.
func newDownload() embedding.Getter {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = headerTimeout
	// The sizes that the hub names are those of the files.
	transport.DisableCompression = true
	return download(&http.Client{Transport: transport, CheckRedirect: staySecure}, stallTimeout)
}

// staySecure follows at most ten redirections, none of which leaves TLS.
func staySecure(next *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("too many redirections")
	}
	if via[0].URL.Scheme == "https" && next.URL.Scheme != "https" {
		return errors.New("a redirection leads away from TLS")
	}
	return nil
}

// download is a Getter over client that gives up on an answer that stands still
// for stall.
func download(client *http.Client, stall time.Duration) embedding.Getter {
	return func(ctx context.Context, url string) (io.ReadCloser, int64, error) {
		ctx, cancel := context.WithCancelCause(ctx)
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			cancel(nil)
			return nil, 0, err
		}
		response, err := client.Do(request)
		if err != nil {
			cancel(nil)
			return nil, 0, err
		}
		if response.StatusCode != http.StatusOK {
			err = fmt.Errorf("status %d", response.StatusCode)
			// What one may not see a hub answers as if it asked for a login.
			switch response.StatusCode {
			case http.StatusNotFound, http.StatusGone, http.StatusUnauthorized:
				err = fmt.Errorf("%w: %w", err, fs.ErrNotExist)
			}
			err = errors.Join(err, response.Body.Close())
			cancel(nil)
			return nil, 0, err
		}
		b := &watchedBody{ReadCloser: response.Body, ctx: ctx, cancel: cancel, stall: stall}
		b.timer = time.AfterFunc(stall, func() { cancel(errStalled) })
		return b, response.ContentLength, nil
	}
}

var errStalled = errors.New("the download stands still")

// watchedBody is a body that ends when it stands still.
type watchedBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	stall  time.Duration
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.timer.Reset(b.stall)
	if err != nil && errors.Is(context.Cause(b.ctx), errStalled) {
		err = errStalled
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.timer.Stop()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
