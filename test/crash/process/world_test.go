// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"reprise.dev/reprise/internal/operator"
)

const (
	// patience bounds every wait. It is long because the machine may be busy; a wait ends as soon as it can.
	patience = 2 * time.Minute
	// poll is the pause between two looks.
	poll = 50 * time.Millisecond
	// requestTimeout bounds one request of the test, since an API server that stands still answers none.
	requestTimeout = 3 * time.Second
)

// world is a namespace and the test's access to it.
type world struct {
	t      *testing.T
	client client.WithWatch
	ns     string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c, err := client.NewWithWatch(untroubled(plane.Config()), client.Options{Scheme: operator.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, client: c}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "process-"}}
	w.create(ns)
	w.ns = ns.Name
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		defer cancel()
		_ = c.Delete(ctx, ns)
	})
	return w
}

// untroubled is a configuration whose warnings go nowhere.
func untroubled(config *rest.Config) *rest.Config {
	config.WarningHandler = rest.NoWarnings{}
	return config
}

func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		if err := w.client.Create(w.t.Context(), o); err != nil {
			w.t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
		}
	}
}

// eventually waits until something holds, and fails the test at once if it does not.
func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	if !within(patience, holds) {
		w.t.Fatalf("it does not come true that %s", what)
	}
}

// within waits for a while until something holds, and reports whether it did.
func within(length time.Duration, holds func() bool) bool {
	over := time.After(length)
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-over:
			return holds()
		case <-ticker.C:
		}
	}
	return true
}
