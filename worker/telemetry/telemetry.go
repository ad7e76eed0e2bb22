// Package telemetry tells operators what a worker does: traces from a call
// through workflow and activity to the store, metrics of Temporal's library and
// ours, and a log line for every failure that is not a refusal.
//
// Names, ids and numbers are told, never what a memory says.
package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"

	"github.com/polyphony-memory/polyphony/memory/record"
)

// scope names our instruments and spans.
const scope = "github.com/polyphony-memory/polyphony"

// OpenTelemetry's own environment variables that ask for something to be sent;
// its library reads all others.
const (
	envDisabled = "OTEL_SDK_DISABLED"
	envEndpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envTraces   = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	envMetrics  = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
	envProtocol = "OTEL_EXPORTER_OTLP_PROTOCOL"
	envService  = "OTEL_SERVICE_NAME"
)

// Options are the settings.
type Options struct {
	// Lookup reads the environment.
	Lookup func(string) (string, bool)
	// Version is the program's.
	Version string
	Log     *slog.Logger
}

// Telemetry is what a worker tells. Without an endpoint in the environment
// nothing leaves the process; the metrics can be gathered from Registry.
type Telemetry struct {
	// Registry has the metrics in Prometheus's form.
	Registry *prometheus.Registry

	log     *slog.Logger
	meter   metric.Meter
	tracer  trace.Tracer
	tracing bool
	metrics *metrics
	stop    []func(context.Context) error
}

// Start makes the telemetry and connects it to the endpoints that the
// environment names: OTEL_EXPORTER_OTLP_ENDPOINT, or the one of traces or
// metrics, over gRPC.
//
// Errors: InvalidArgument (a protocol other than grpc), Unavailable.
func Start(ctx context.Context, opts Options) (*Telemetry, error) {
	t := &Telemetry{Registry: prometheus.NewRegistry(), log: opts.Log, tracer: noop.NewTracerProvider().Tracer(scope)}
	env := func(name string) string {
		v, _ := opts.Lookup(name)
		return v
	}
	sends := func(own string) bool {
		return env(envDisabled) != "true" && (env(own) != "" || env(envEndpoint) != "")
	}
	if p := env(envProtocol); p != "" && p != "grpc" && (sends(envTraces) || sends(envMetrics)) {
		return nil, record.Errorf(record.InvalidArgument, envProtocol, "telemetry is sent over grpc only")
	}
	service := env(envService)
	if service == "" {
		service = "polyphony-worker"
	}
	// Nothing of the machine or the command line: only who this is.
	res := resource.NewSchemaless(semconv.ServiceName(service), semconv.ServiceVersion(opts.Version))
	if err := errors.Join(t.startTraces(ctx, res, sends(envTraces)), t.startMetrics(ctx, res, sends(envMetrics))); err != nil {
		return nil, record.Wrap(record.Unavailable, errors.Join(err, t.Stop(ctx)), "the telemetry cannot be started")
	}
	return t, nil
}

func (t *Telemetry) startTraces(ctx context.Context, res *resource.Resource, sends bool) error {
	if !sends {
		return nil
	}
	exporter, err := otlptracegrpc.New(ctx)
	if err != nil {
		return err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithBatcher(exporter))
	t.stop = append(t.stop, provider.Shutdown)
	t.tracer, t.tracing = provider.Tracer(scope), true
	t.log.Info("traces are sent over OTLP")
	return nil
}

func (t *Telemetry) startMetrics(ctx context.Context, res *resource.Resource, sends bool) error {
	reader, err := otelprometheus.New(otelprometheus.WithRegisterer(t.Registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo())
	if err != nil {
		return err
	}
	readers := []sdkmetric.Option{sdkmetric.WithResource(res), sdkmetric.WithReader(reader)}
	if sends {
		exporter, err := otlpmetricgrpc.New(ctx)
		if err != nil {
			return err
		}
		readers = append(readers, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter)))
		t.log.Info("metrics are sent over OTLP")
	}
	provider := sdkmetric.NewMeterProvider(readers...)
	t.stop = append(t.stop, provider.Shutdown)
	t.meter = provider.Meter(scope)
	t.metrics, err = newMetrics(t.meter)
	return err
}

// Configure has a connection to Temporal tell its metrics and, when traces are
// sent, join the traces of callers, workflows and activities. What callers put
// into a trace's baggage is dropped.
func (t *Telemetry) Configure(opts *client.Options) error {
	opts.MetricsHandler = opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
		Meter: t.meter, UseMonotonicCounters: true,
		OnError: func(err error) { t.log.Warn("a metric of Temporal's library is left out", "error", err) },
	})
	if !t.tracing {
		return nil
	}
	tracing, err := opentelemetry.NewTracingInterceptor(opentelemetry.TracerOptions{
		Tracer: t.tracer, DisableBaggage: true, AllowInvalidParentSpans: true,
	})
	if err != nil {
		return record.Wrap(record.Unavailable, err, "traces cannot be joined")
	}
	opts.Interceptors = append(opts.Interceptors, tracing)
	return nil
}

// Tracer begins the spans of the gateway's calls; it makes none that is kept
// when no traces are sent.
func (t *Telemetry) Tracer() trace.Tracer { return t.tracer }

// Stop sends what is left and ends.
func (t *Telemetry) Stop(ctx context.Context) error {
	var err error
	for _, stop := range t.stop {
		err = errors.Join(err, stop(ctx))
	}
	if err != nil {
		// What could not be sent is no reason to stop badly.
		t.log.Warn("some telemetry was not sent", "error", err)
	}
	return nil
}

// outcome names how something ended: ok, or the error's name.
func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	return string(record.ErrorCode(err))
}

// since is a duration in seconds, as metrics have it.
func since(began time.Time) float64 { return time.Since(began).Seconds() }
