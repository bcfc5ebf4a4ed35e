// SPDX-License-Identifier: Apache-2.0

package httpwork

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// broker is a receiver made with the CloudEvents SDK.
func broker(t *testing.T) (string, <-chan cloudevents.Event) {
	t.Helper()
	events := make(chan cloudevents.Event, 4)
	protocol, err := cloudevents.NewHTTP()
	if err != nil {
		t.Fatal(err)
	}
	handler, err := cloudevents.NewHTTPReceiveHandler(t.Context(), protocol, func(_ context.Context, e cloudevents.Event) { events <- e })
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, handler.ServeHTTP).URL, events
}

func TestAPayloadReachesItsTopicBehindACloudEventsBroker(t *testing.T) {
	url, events := broker(t)
	r := claimed("wakeup-1793707200", batchv1alpha1.HTTPWork{
		URL:        url,
		Body:       ptr.To(`{"agent": "agent-7", "budget": 12345678901234567890}`),
		CloudEvent: &batchv1alpha1.CloudEvent{Type: "agent.wakeup", Source: "/schedules/wakeup", Subject: "agent:agent-7:scheduled"},
		// The envelope's own content type cannot be replaced.
		Headers: inClear("Content-Type", "text/plain"),
	})
	r.Spec.ScheduledTime = &metav1.Time{Time: start.Add(-time.Second)}
	if o := newBench(t, loopback).outcome(r); o.Phase != batchv1alpha1.JobRunCompleted {
		t.Fatalf("%+v", o)
	}
	e := <-events
	if err := e.Validate(); err != nil {
		t.Error(err)
	}
	if e.Subject() != "agent:agent-7:scheduled" || e.Type() != "agent.wakeup" || e.Source() != "/schedules/wakeup" {
		t.Errorf("subject %q, type %q, source %q", e.Subject(), e.Type(), e.Source())
	}
	if e.ID() != string(r.UID) || !e.Time().Equal(start.Add(-time.Second)) {
		t.Errorf("id %q, time %s", e.ID(), e.Time())
	}
	var data struct {
		Agent  string
		Budget json.Number
	}
	if err := e.DataAs(&data); err != nil || data.Agent != "agent-7" || data.Budget != "12345678901234567890" {
		t.Errorf("data %+v, %v", data, err)
	}
}

func TestAnEventWithoutMoreThanATypeHasSensibleAttributes(t *testing.T) {
	url, events := broker(t)
	r := claimed("wakeup-r1", batchv1alpha1.HTTPWork{URL: url, CloudEvent: &batchv1alpha1.CloudEvent{Type: "agent.wakeup"}})
	r.Spec.RetryOf, r.Spec.Attempt = "wakeup", 1
	r.Spec.Chain = &batchv1alpha1.Chain{RootName: "wakeup", RootUID: "root", IdempotencyKey: "the-key"}
	if o := newBench(t, loopback).outcome(r); o.Phase != batchv1alpha1.JobRunCompleted {
		t.Fatalf("%+v", o)
	}
	e := <-events
	if e.ID() != "the-key" || e.Source() != "/apis/batch.reprise.dev/v1alpha1/namespaces/shop/jobruns/wakeup" {
		t.Errorf("id %q, source %q", e.ID(), e.Source())
	}
	if e.Subject() != "" || !e.Time().Equal(r.CreationTimestamp.Time) || e.Data() != nil {
		t.Errorf("subject %q, time %s, data %q", e.Subject(), e.Time(), e.Data())
	}
}

func TestDataThatIsNotJSONTravelsAsText(t *testing.T) {
	url, events := broker(t)
	r := claimed("a", batchv1alpha1.HTTPWork{
		URL: url, Body: ptr.To("<a>\"ü\"\n</a>"), CloudEvent: &batchv1alpha1.CloudEvent{Type: "x", DataContentType: "application/xml"},
	})
	if o := newBench(t, loopback).outcome(r); o.Phase != batchv1alpha1.JobRunCompleted {
		t.Fatalf("%+v", o)
	}
	if e := <-events; string(e.Data()) != *r.Spec.Work.HTTP.Body || e.DataContentType() != "application/xml" {
		t.Errorf("data %q of type %q", e.Data(), e.DataContentType())
	}
}

func TestAnEventThatCannotBeMadeFailsTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		event batchv1alpha1.CloudEvent
		body  string
		text  string
	}{
		"the body is not the JSON that is the default": {batchv1alpha1.CloudEvent{Type: "x"}, "{", "work.http.body is not valid JSON, as the event's dataContentType application/json says"},
		"the body is not the JSON that its type names": {batchv1alpha1.CloudEvent{Type: "x", DataContentType: "text/json; charset=utf-8"}, "hi", "work.http.body is not valid JSON"},
		"an empty body is no JSON":                     {batchv1alpha1.CloudEvent{Type: "x"}, "", "work.http.body is not valid JSON"},
		"the source is no URI reference":               {batchv1alpha1.CloudEvent{Type: "x", Source: "%zz"}, "1", "work.http.cloudEvent is not valid: "},
		"the content type is none":                     {batchv1alpha1.CloudEvent{Type: "x", DataContentType: "a b/c"}, "1", "work.http.cloudEvent is not valid: "},
	} {
		t.Run(name, func(t *testing.T) {
			o := newBench(t, loopback).outcome(claimed("a", batchv1alpha1.HTTPWork{URL: "http://127.0.0.1:1", Body: &c.body, CloudEvent: &c.event}))
			if o.Phase != batchv1alpha1.JobRunFailed || o.Reason != batchv1alpha1.ReasonInvalidWork || !strings.HasPrefix(o.Message, c.text) {
				t.Errorf("%s/%s %q", o.Phase, o.Reason, o.Message)
			}
		})
	}
}
