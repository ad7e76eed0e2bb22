package gateway

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are what the gateway counts, in a registry of its own. Labels are
// names from this program, never what a caller sent: their number is bounded
// and they tell nothing of a workspace.
type Metrics struct {
	registry *prometheus.Registry
	// shown are the registries that Handler answers from.
	shown    prometheus.Gatherers
	requests *prometheus.HistogramVec
	calls    *prometheus.HistogramVec
	refused  *prometheus.CounterVec
}

func newMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "polyphony_http_request_seconds", Help: "Time to answer HTTP requests, by route and status.", Buckets: prometheus.DefBuckets,
		}, []string{"route", "status"}),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "polyphony_call_seconds", Help: "Time of tool calls and operations, by name and outcome (an error's name, or ok).", Buckets: prometheus.DefBuckets,
		}, []string{"surface", "name", "outcome"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "polyphony_denied_total", Help: "Requests that were turned away, by reason.",
		}, []string{"reason"}),
	}
	m.shown = prometheus.Gatherers{m.registry}
	m.registry.MustRegister(m.requests, m.calls, m.refused, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler answers with the metrics in Prometheus's text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(&m.shown, promhttp.HandlerOpts{})
}

// Show adds the metrics of another registry, before the server starts.
func (m *Metrics) Show(g prometheus.Gatherer) { m.shown = append(m.shown, g) }

// Gauge adds a value that is read when the metrics are.
func (m *Metrics) Gauge(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
}

// Call counts one call of a surface (mcp or rpc); name is one of its own names.
func (m *Metrics) Call(surface, name string, began time.Time, err error) {
	m.calls.WithLabelValues(surface, name, Outcome(err)).Observe(time.Since(began).Seconds())
}

func (m *Metrics) denied(reason string) { m.refused.WithLabelValues(reason).Inc() }

// measure times the requests of a route.
func (m *Metrics) measure(route string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, s := time.Now(), &statusWriter{ResponseWriter: w, status: http.StatusOK}
		defer func() {
			m.requests.WithLabelValues(route, strconv.Itoa(s.status)).Observe(time.Since(began).Seconds())
		}()
		h.ServeHTTP(s, r)
	})
}

// statusWriter notes the status; streams reach the writer below through Unwrap.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Flush implements http.Flusher, which streams ask for.
func (w *statusWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Unwrap serves http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
