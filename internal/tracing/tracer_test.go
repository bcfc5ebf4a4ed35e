// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	clocktesting "k8s.io/utils/clock/testing"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// backend is a receiver of traces as others run it.
type backend struct {
	collector.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans []*otlp.Span
	about map[string]string
}

func (b *backend) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, of := range request.ResourceSpans {
		for _, a := range of.Resource.Attributes {
			b.about[a.Key] = a.Value.GetStringValue()
		}
		for _, scope := range of.ScopeSpans {
			b.spans = append(b.spans, scope.Spans...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// listen starts the receiver, and returns its address.
func (b *backend) listen(t *testing.T) string {
	b.about = map[string]string{}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, b)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { server.Stop(); serving.Wait() })
	return "http://" + listener.Addr().String()
}

func TestAReceiverOfOTLPGetsTheTrace(t *testing.T) {
	g := NewWithT(t)
	b := &backend{}
	t.Setenv(envEndpoint, b.listen(t))
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=staging")
	tracer, err := FromEnv(t.Context(), os.Getenv, "manager-0", logr.Discard())
	g.Expect(err).NotTo(HaveOccurred())

	tracer.RunChanged(nightly(), nightly(ended(batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded, 10, 30), over(batchv1alpha1.ConditionComplete, "Succeeded", 30, 1)))
	tracer.Shutdown(t.Context())

	names := map[string]*otlp.Span{}
	for _, s := range b.spans {
		names[s.Name] = s
		g.Expect(s.TraceId).To(Equal(traceIDBytes()))
	}
	g.Expect(names).To(And(HaveLen(5), HaveKey("chain"), HaveKey("tick"), HaveKey("attempt"), HaveKey("wait"), HaveKey("work")))
	g.Expect(names["chain"].ParentSpanId).To(BeEmpty())
	g.Expect(names["attempt"].ParentSpanId).To(Equal(names["chain"].SpanId))
	g.Expect(names["work"].ParentSpanId).To(Equal(names["attempt"].SpanId))
	g.Expect(names["work"].StartTimeUnixNano).To(BeEquivalentTo(midnight.Add(10 * time.Second).UnixNano()))
	g.Expect(b.about).To(And(HaveKeyWithValue("service.name", "reprise"), HaveKeyWithValue("service.instance.id", "manager-0"),
		HaveKeyWithValue("deployment.environment.name", "staging")))
}

func traceIDBytes() []byte {
	id := traceID(rootUID)
	return id[:]
}

func TestAReceiverThatIsAwayDelaysNobody(t *testing.T) {
	g := NewWithT(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = listener.Close() }()
	t.Setenv(envEndpoint, "http://"+listener.Addr().String()) // accepts, and never answers
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "16")
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "200")
	tracer, err := FromEnv(t.Context(), os.Getenv, "m", logr.Discard())
	g.Expect(err).NotTo(HaveOccurred())
	told := make(chan struct{})
	go func() {
		defer close(told)
		for range 500 {
			tracer.RunChanged(nightly(), nightly(ended(batchv1alpha1.JobRunCompleted, "", 10, 30)))
		}
	}()
	g.Eventually(told, 30*time.Second).Should(BeClosed())
	tracer.Shutdown(t.Context())
}

func TestTheLogSaysThatTracesCannotBeSentAtMostOnceAMinute(t *testing.T) {
	g := NewWithT(t)
	var lines []string
	clock := clocktesting.NewFakePassiveClock(midnight)
	c := &complaints{clock: clock, log: funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})}
	for range 100 {
		c.Handle(errors.New("connection refused"))
	}
	g.Expect(lines).To(HaveLen(1))
	clock.SetTime(midnight.Add(complainEvery))
	c.Handle(errors.New("connection refused"))
	g.Expect(lines).To(HaveLen(2))
	g.Expect(lines[1]).To(And(ContainSubstring("connection refused"), ContainSubstring(`"notToldSince"=99`)))
}
