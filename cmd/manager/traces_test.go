// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// traces is a receiver of OTLP.
type traces struct {
	collector.UnimplementedTraceServiceServer
	address string
	mu      sync.Mutex
	all     []*otlp.Span
}

func newTraces(t *testing.T) *traces {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &traces{address: listener.Addr().String()}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, r)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { server.Stop(); serving.Wait() })
	return r
}

func (r *traces) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range request.ResourceSpans {
		for _, scope := range of.ScopeSpans {
			r.all = append(r.all, scope.Spans...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// names of the spans of a trace.
func (r *traces) names(id string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, s := range r.all {
		if hex.EncodeToString(s.TraceId) == id {
			names = append(names, s.Name)
		}
	}
	return names
}

func TestATickAndAllThatCameOfItAreOneTraceWhichTheCallsJoin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := newTraces(t)
	parents := make(chan string, 10)
	fails := true
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		parents <- r.Header.Get("traceparent")
		if fails {
			rw.WriteHeader(http.StatusInternalServerError)
		}
		fails = false
	}))
	t.Cleanup(s.Close)
	w.leads(w.runAs(plane.Kubeconfig(), []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + r.address, "OTEL_BSP_SCHEDULE_DELAY=100"}, "--leader-elect=false"))
	sj := &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "report"}}
	sj.Spec.RunAt = ptr.To(metav1.NewTime(time.Now().Truncate(time.Second)))
	sj.Spec.RunTemplate = &w.httpRun("", s.URL).Spec.JobRunTemplateSpec
	w.create(sj)
	root := fmt.Sprintf("report-%d", sj.Spec.RunAt.Unix())
	w.eventually(root, batchv1alpha1.JobRunFailed)
	w.eventually(root+"-r1", batchv1alpha1.JobRunCompleted)
	id := strings.ReplaceAll(string(w.get(root).UID), "-", "")
	for range 2 {
		w.Expect(<-parents).To(And(HavePrefix("00-"+id+"-"), HaveSuffix("-01")))
	}
	w.Eventually(func() []string { return r.names(id) }).Should(ContainElements("chain", "tick", "attempt", "wait", "work", "attempt", "wait", "work"))
}

func TestATraceReceiverThatIsAwayCostsTheManagerNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t)
	p := w.leads(w.runAs(plane.Kubeconfig(), []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + address(t), "OTEL_BSP_SCHEDULE_DELAY=100"}, "--leader-elect=false"))
	w.create(w.httpRun("report", s.URL))
	w.eventually("report", batchv1alpha1.JobRunCompleted)
	code, _ := p.terminate()
	w.Expect(code).To(BeZero())
	w.Expect(p.log.String()).To(ContainSubstring("traces cannot be sent"))
}
