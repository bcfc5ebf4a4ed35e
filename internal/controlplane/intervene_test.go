// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// unreported fails the test if the control plane reports that one of its processes has ended.
func unreported(t *testing.T, p *Plane) {
	t.Helper()
	select {
	case <-p.Ended():
		t.Error("Ended is closed, although nothing ended by itself")
	default:
	}
	if err := p.Err(); err != nil {
		t.Errorf("Err reports %v", err)
	}
}

// short bounds one request, since a process that stands still answers none.
func short(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// writer creates objects until it is stopped, and remembers those that the API server has acknowledged.
type writer struct {
	client       client.Client
	stop         context.CancelFunc
	done         chan struct{}
	count        atomic.Int64
	acknowledged []string
}

func startWriter(t *testing.T, c client.Client) *writer {
	ctx, stop := context.WithCancel(t.Context())
	w := &writer{client: c, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for i := 0; ctx.Err() == nil; i++ {
			o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("written-%d", i)}}
			if w.client.Create(ctx, o) == nil {
				w.acknowledged = append(w.acknowledged, o.Name)
				w.count.Add(1)
			}
		}
	}()
	return w
}

// reaches waits until so many more objects were acknowledged.
func (w *writer) reaches(t *testing.T, more int64) {
	t.Helper()
	want := w.count.Load() + more
	eventually(t, "objects are written", func(context.Context) (bool, error) { return w.count.Load() >= want, nil })
}

func TestWhatWasAcknowledgedSurvivesSIGKILLOfEtcdAndOfTheAPIServer(t *testing.T) {
	plane := start(t, Options{Fsync: true})
	c := clientOf(t, plane)
	host := plane.Config().Host
	w := startWriter(t, c)
	for _, name := range []string{Etcd, APIServer, Etcd} {
		w.reaches(t, 50)
		if err := plane.Kill(name); err != nil {
			t.Fatal(err)
		}
		if err := plane.Kill(name); err != nil {
			t.Errorf("killing %s again: %v", name, err)
		}
		unreported(t, plane)
		if err := plane.Restart(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	w.reaches(t, 50)
	w.stop()
	<-w.done
	unreported(t, plane)
	if plane.Config().Host != host {
		t.Errorf("the API server is at %s now, not at %s", plane.Config().Host, host)
	}
	var kept corev1.ConfigMapList
	if err := c.List(t.Context(), &kept, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for i := range kept.Items {
		names[kept.Items[i].Name] = true
	}
	for _, name := range w.acknowledged {
		if !names[name] {
			t.Errorf("%s was acknowledged, and is lost", name)
		}
	}
}

func TestAProcessOfThePlaneStandsStillUntilItMayGoOn(t *testing.T) {
	plane := start(t, Options{ControllerManager: true})
	c := clientOf(t, plane)
	if err := c.List(t.Context(), &corev1.ConfigMapList{}); err != nil { // the client knows the kind before anything stands still
		t.Fatal(err)
	}
	for i, name := range []string{APIServer, Etcd} {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("late-%d", i)}}
		if err := plane.Pause(name); err != nil {
			t.Fatal(err)
		}
		if err := c.Create(short(t), o.DeepCopy()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while %s stands still: %v, want no answer", name, err)
		}
		if err := plane.Continue(name); err != nil {
			t.Fatal(err)
		}
		if err := c.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Errorf("after %s went on: %v", name, err)
		}
	}

	// Without the controller manager a Job gets no pod; the one that is started again makes it.
	if err := plane.Pause(ControllerManager); err != nil {
		t.Fatal(err)
	}
	if err := plane.Kill(ControllerManager); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), sleepJob()); err != nil {
		t.Fatal(err)
	}
	if err := plane.Restart(t.Context(), ControllerManager); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Job controller makes a pod", func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := c.List(ctx, &pods, client.InNamespace("default"))
		return len(pods.Items) == 1, err
	})
	unreported(t, plane)
}

func TestAProcessThatEndsByItselfAfterARestartIsReported(t *testing.T) {
	plane := start(t, Options{})
	if err := plane.Restart(t.Context(), Etcd); err != nil {
		t.Fatal(err)
	}
	if err := plane.processes[0].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-plane.Ended()
	if err := plane.Err(); err == nil || !strings.Contains(err.Error(), Etcd) {
		t.Errorf("error %v does not name the process", err)
	}
	if err := plane.Kill(Etcd); err == nil {
		t.Error("the kill of what ended by itself says that it was the cause")
	}
}

func TestOnlyARunningProcessOfThePlaneCanBePausedOrContinued(t *testing.T) {
	plane := start(t, Options{})
	if err := plane.Pause(ControllerManager); err == nil {
		t.Error("a process that was never started was paused")
	}
	if err := plane.Kill(APIServer); err != nil {
		t.Fatal(err)
	}
	if err := plane.Continue(APIServer); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("continuing what is dead: %v", err)
	}
	if err := plane.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := plane.Restart(t.Context(), APIServer); err == nil {
		t.Error("a process of a plane that was stopped was started")
	}
	<-plane.Ended()
}

func TestTheLastWordsAreThoseOfTheLastStart(t *testing.T) {
	dir := t.TempDir()
	for _, word := range []string{"first", "second"} {
		child, err := startProcess(dir, "sh", "/bin/sh", []string{"-c", "echo " + word})
		if err != nil {
			t.Fatal(err)
		}
		<-child.done
		if got := child.lastWords(); got != word {
			t.Errorf("last words %q, want %q", got, word)
		}
	}
	data, err := os.ReadFile(dir + "/sh.log")
	if err != nil || string(data) != "first\nsecond\n" {
		t.Errorf("the log holds %q (%v)", data, err)
	}
}

func TestAChildWhosePortIsTakenIsKnown(t *testing.T) {
	child := shell(t, "echo bind: address already in use")
	_ = waitFor(t.Context(), child, func(context.Context) error { return io.EOF })
	if !child.portTaken() {
		t.Error("it is not known")
	}
}
