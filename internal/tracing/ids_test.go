// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"
	. "github.com/onsi/gomega"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestWhatTheWorkTracesHangsBelowTheWorkOfItsAttempt(t *testing.T) {
	g := NewWithT(t)
	tracer, exporter := inMemory(t, 1)
	r := retried(ended(batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded, 45, 60))
	header := tracer.Traceparent(retried())
	g.Expect(tracer.Traceparent(r)).To(Equal(header), "it is the same at any time")
	tracer.RunChanged(retried(), r)
	spans := exporter.GetSpans()
	work := spans[slices.IndexFunc(spans, func(s tracetest.SpanStub) bool { return s.Name == kindWork })].SpanContext

	read := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": header})
	got := trace.SpanContextFromContext(read)

	g.Expect(got.IsValid()).To(BeTrue())
	g.Expect(got.TraceID()).To(Equal(work.TraceID()))
	g.Expect(got.SpanID()).To(Equal(work.SpanID()))
	g.Expect(got.IsSampled()).To(BeTrue())
}

func TestWithoutTracesTheWorkIsToldNothing(t *testing.T) {
	var none *Tracer
	g := NewWithT(t)
	g.Expect(none.Traceparent(nightly())).To(BeEmpty())
	g.Expect(none.SetupWithManager(nil)).To(Succeed())
	none.Shutdown(t.Context())
}

func TestEveryUIDHasATraceOfItsOwnWhateverItLooksLike(t *testing.T) {
	g := NewWithT(t)
	g.Expect(traceID(rootUID).String()).To(Equal(rootHex))
	g.Expect(traceID("not-a-uuid").IsValid()).To(BeTrue())
	g.Expect(traceID("not-a-uuid")).NotTo(Equal(traceID("nor-is-this")))
	g.Expect(spanID(rootUID, kindWork, 0)).NotTo(Equal(spanID(rootUID, kindWork, 1)))
	g.Expect(spanID(rootUID, kindWork, 0)).NotTo(Equal(spanID(rootUID, kindWait, 0)))
}

func TestThePartOfTheTracesThatIsToldIsWhatWasAskedForAndWholeTraces(t *testing.T) {
	g := NewWithT(t)
	const traces = 4000
	taken := map[sampler]int{}
	for i := range traces {
		id := trace.TraceID(uuid.NewSHA1(uuid.NameSpaceOID, []byte{byte(i), byte(i >> 8)}))
		for _, p := range []sampler{0, 0.1, 0.5, 1} {
			if p.takes(id) {
				taken[p]++
			}
		}
	}
	g.Expect(taken[0]).To(BeZero())
	g.Expect(taken[1]).To(Equal(traces))
	g.Expect(taken[0.1]).To(BeNumerically("~", traces/10, traces/40))
	g.Expect(taken[0.5]).To(BeNumerically("~", traces/2, traces/20))

	tracer, exporter := inMemory(t, 0)
	tracer.RunChanged(nightly(), nightly(ended(batchv1alpha1.JobRunCompleted, "", 10, 30)))
	g.Expect(exporter.GetSpans()).To(BeEmpty())
	g.Expect(tracer.Traceparent(nightly())).To(HaveSuffix("-00"), "nor is the work asked to tell its part")
}
