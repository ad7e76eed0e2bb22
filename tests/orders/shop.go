package orders

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync"
)

// keyHeader carries the idempotency key of a request that has an effect.
const keyHeader = "Idempotency-Key"

// Effect is one thing that the shop did.
type Effect struct {
	ID string `json:"id"`
	// Reference is the key that the request came with. The shop keeps it with
	// what it did, whether or not it honours it.
	Reference string `json:"reference"`
	What      string `json:"what"`
}

// Shop is the outside system. POST /effects does something and GET
// /effects?reference= tells what was done under a key.
type Shop struct {
	// Honours says whether a repeated key repeats the answer and not the effect.
	Honours bool

	mu      sync.Mutex
	effects []Effect
}

// Effects returns what the shop did, in order.
func (s *Shop) Effects() []Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Effect{}, s.effects...)
}

// Handler serves the shop.
func (s *Shop) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /effects", func(w http.ResponseWriter, r *http.Request) {
		var in Effect
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&in); err != nil {
			http.Error(w, "the body is no effect", http.StatusBadRequest)
			return
		}
		reply(w, s.do(r.Header.Get(keyHeader), in.What))
	})
	mux.HandleFunc("GET /effects", func(w http.ResponseWriter, r *http.Request) {
		reply(w, s.under(r.URL.Query().Get("reference")))
	})
	return mux
}

func (s *Shop) do(key, what string) Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.effects {
		if s.Honours && e.Reference == key {
			return e
		}
	}
	e := Effect{ID: fmt.Sprintf("%s-%d", what, len(s.effects)+1), Reference: key, What: what}
	s.effects = append(s.effects, e)
	return e
}

func (s *Shop) under(key string) []Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []Effect{}
	for _, e := range s.effects {
		if e.Reference == key {
			found = append(found, e)
		}
	}
	return found
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	// A client that went away is not told.
	_ = json.NewEncoder(w).Encode(v)
}

// Counter is the agents' side of the shop.
type Counter struct {
	// URL is where the shop is served.
	URL    string
	Client *http.Client
}

// Do has the effect done under a key.
func (c Counter) Do(ctx context.Context, key, what string) (Effect, error) {
	var out Effect
	body, err := json.Marshal(Effect{What: what})
	if err != nil {
		return out, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+"/effects", bytes.NewReader(body))
	if err != nil {
		return out, err
	}
	req.Header.Set(keyHeader, key)
	return out, c.send(req, &out)
}

// Under asks what was done under a key.
func (c Counter) Under(ctx context.Context, key string) ([]Effect, error) {
	var out []Effect
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+"/effects?"+url.Values{"reference": {key}}.Encode(), nil)
	if err != nil {
		return nil, err
	}
	err = c.send(req, &out)
	return out, err
}

func (c Counter) send(req *http.Request, out any) error {
	res, err := c.Client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the shop answers %s", res.Status)
	}
	return json.NewDecoder(res.Body).Decode(out)
}
