// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Typed returns what the rules can read of an object that is unstructured, and any other object as it is. nil: it is of a kind
// that no rule reads. Decode once for each version, not once for each check.
func Typed(o client.Object) (client.Object, error) {
	u, raw := o.(*unstructured.Unstructured)
	if !raw {
		return o, nil
	}
	var typed client.Object
	switch u.GetKind() {
	case "JobRun":
		typed = &batchv1alpha1.JobRun{}
	case "JobGroup":
		typed = &batchv1alpha1.JobGroup{}
	case "ScheduledJob":
		typed = &batchv1alpha1.ScheduledJob{}
	case "JobQueue":
		typed = &batchv1alpha1.JobQueue{}
	case "DirectReservation":
		typed = &batchv1alpha1.DirectReservation{}
	case "QueueLedger":
		typed = &batchv1alpha1.QueueLedger{}
	case "Job":
		typed = &batchv1.Job{}
	case "Pod":
		typed = &corev1.Pod{}
	default:
		return nil, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed); err != nil {
		return nil, fmt.Errorf("reading %s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
	}
	return typed, nil
}

// Watched returns the version that an event of a watch tells of; false for a bookmark, an error, and a kind that no rule reads.
func Watched(at time.Time, e watch.Event) (Version, bool, error) {
	o, ok := e.Object.(client.Object)
	if !ok || (e.Type != watch.Added && e.Type != watch.Modified && e.Type != watch.Deleted) {
		return Version{}, false, nil
	}
	typed, err := Typed(o)
	if err != nil || typed == nil {
		return Version{}, false, err
	}
	return Version{At: at, Type: e.Type, Object: typed}, true, nil
}

// PodAct tells of a pod whose containers began to run, or ended; false if it is no run's. It suits the history of package
// fakekubelet.
func PodAct(at time.Time, began bool, pod *corev1.Pod) (Act, bool) {
	uid := types.UID(pod.Labels[batchv1alpha1.LabelRunUID])
	if uid == "" {
		return Act{}, false
	}
	a := Act{
		At: at, Began: began, Work: Pod, Execution: string(pod.UID), Namespace: pod.Namespace,
		Name: pod.Labels[batchv1alpha1.LabelRun], UID: uid, Attempt: -1,
	}
	for _, c := range pod.Spec.Containers {
		for _, v := range c.Env {
			a.read(v)
		}
	}
	return a, true
}

// read takes what the environment of a container tells.
func (a *Act) read(v corev1.EnvVar) {
	switch v.Name {
	case "REPRISE_IDEMPOTENCY_KEY":
		a.Key = v.Value
	case "REPRISE_ATTEMPT":
		a.Attempt = number(v.Value)
	}
}

// CallAct tells of an HTTP call of a run that began, by the headers of its request. The execution is any text that is unique to
// it, and the manager the process that made it, "" if that is not known.
func CallAct(at time.Time, header http.Header, execution, manager string) (Act, error) {
	namespace, name, ok := strings.Cut(header.Get("Reprise-Run"), "/")
	if !ok {
		return Act{}, fmt.Errorf("the header Reprise-Run is %q", header.Get("Reprise-Run"))
	}
	return Act{
		At: at, Began: true, Work: Call, Execution: execution, Manager: manager, Namespace: namespace, Name: name,
		Key: header.Get("Idempotency-Key"), Attempt: number(header.Get("Reprise-Attempt")),
	}, nil
}

// DirectAct tells of a request that reached the upstream of direct access, by the headers of it. The namespace is that of the
// queue.
func DirectAct(at time.Time, namespace string, header http.Header, execution, manager string) Act {
	return Act{
		At: at, Began: true, Work: Direct, Execution: execution, Manager: manager, Namespace: namespace,
		Name: header.Get("Reprise-Reservation"), Attempt: -1,
	}
}

// End returns the end of what began. Aborted says that the caller broke the connection.
func (a Act) End(at time.Time, aborted bool) Act {
	a.At, a.Began, a.Aborted = at, false, aborted
	return a
}

func number(s string) int32 {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return -1
	}
	return int32(n)
}

// Received reads a CloudEvent that a receiver was sent.
func Received(at time.Time, receiver string, body []byte, accepted bool) (Announcement, error) {
	var e struct {
		Type string `json:"type"`
		Data struct {
			UID types.UID `json:"uid"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return Announcement{}, fmt.Errorf("reading an announcement: %w", err)
	}
	return Announcement{At: at, Receiver: receiver, UID: e.Data.UID, Event: e.Type, Accepted: accepted}, nil
}
