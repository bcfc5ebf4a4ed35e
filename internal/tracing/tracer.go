// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/utils/clock"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
	"reprise.dev/reprise/internal/version"
)

// shutdownTimeout is how long the end of the process waits for the last spans.
const shutdownTimeout = 3 * time.Second

// Tracer tells of runs and groups that end. A nil Tracer is one that tells nothing.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	sampler  sampler
}

// FromEnv returns the Tracer that the OTEL_… variables ask for, nil if they ask for none; id names this process. Spans wait in a
// queue of 2,048 (OTEL_BSP_MAX_QUEUE_SIZE) for a receiver that is slow or away, beyond which they are dropped; log says so, at
// most once a minute. The error names the variable that cannot be meant.
func FromEnv(ctx context.Context, env func(string) string, id string, log logr.Logger) (*Tracer, error) {
	on, err := enabled(env)
	if err != nil || !on {
		return nil, err
	}
	part, err := portion(env)
	if err != nil {
		return nil, err
	}
	exporter, err := otlptracegrpc.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("preparing the exporter of traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "reprise"),
		attribute.String("service.version", version.String()),
		attribute.String("service.instance.id", id),
	), resource.WithFromEnv())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES or OTEL_SERVICE_NAME: %w", err), exporter.Shutdown(ctx))
	}
	otel.SetErrorHandler(&complaints{log: log, clock: clock.RealClock{}})
	return newTracer(sampler(part), sdktrace.WithBatcher(exporter), sdktrace.WithResource(about)), nil
}

func newTracer(s sampler, options ...sdktrace.TracerProviderOption) *Tracer {
	provider := sdktrace.NewTracerProvider(append(options, sdktrace.WithIDGenerator(chosen{}), sdktrace.WithSampler(s))...)
	return &Tracer{provider: provider, tracer: provider.Tracer("reprise.dev/reprise"), sampler: s}
}

// Traceparent is what the work of the run is to be told, so that what it traces itself becomes a part of the run's trace: the
// value of the header traceparent of W3C Trace Context. It is "" without traces, and the same whenever it is asked for.
func (t *Tracer) Traceparent(r *batchv1alpha1.JobRun) string {
	if t == nil {
		return ""
	}
	return traceparent(r, t.sampler.takes(traceID(run.ChainUID(r))))
}

// RunChanged tells what the step from one state of a run to the next ends. It does not block.
func (t *Tracer) RunChanged(old, now *batchv1alpha1.JobRun) { t.tell(ofRun(old, now)) }

// GroupChanged tells what the step from one state of a group to the next ends. It does not block.
func (t *Tracer) GroupChanged(old, now *batchv1alpha1.JobGroup) { t.tell(ofGroup(old, now)) }

func (t *Tracer) tell(spans []span) {
	for i := range spans {
		s := &spans[i]
		ctx := choose(context.Background(), s.context())
		if s.parent != "" {
			ctx = trace.ContextWithSpanContext(ctx, s.parentOf())
		}
		var links []trace.Link
		for _, l := range s.links {
			links = append(links, trace.Link{SpanContext: l})
		}
		_, told := t.tracer.Start(ctx, s.kind, trace.WithTimestamp(s.from), trace.WithAttributes(s.attributes...), trace.WithLinks(links...))
		if s.failed != "" {
			told.SetStatus(codes.Error, s.failed)
		}
		told.End(trace.WithTimestamp(s.to))
	}
}

// Shutdown sends what is left, for 3 s at most, and ends the Tracer. Call it when the process has given its lease up: nobody
// else should wait for it.
func (t *Tracer) Shutdown(ctx context.Context) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		otel.Handle(err)
	}
}
