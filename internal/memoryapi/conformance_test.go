// SPDX-License-Identifier: Apache-2.0

package memoryapi_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/controlplane"
	"reprise.dev/reprise/internal/memoryapi"
	"reprise.dev/reprise/internal/memoryapi/conformance"
)

// crdDir has the definitions that are installed on clusters.
const crdDir = "config/crd/bases"

var scheme = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, batchv1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// bare is a real API server without controllers, gathered one with those of a cluster.
var bare, gathered *controlplane.Plane

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	options := controlplane.Options{CRDDirs: []string{crdDir}}
	os.Exit(controlplane.RunTests(m, controlplane.Start, options, func(ctx context.Context, p *controlplane.Plane) (func(), error) {
		bare = p
		options.ControllerManager = true
		var err error
		if gathered, err = controlplane.Start(ctx, options); err != nil {
			return nil, err
		}
		return func() { _ = gathered.Stop() }, nil
	}))
}

var namespaces atomic.Int64

// inNamespace makes a namespace that nobody else uses.
func inNamespace(t *testing.T, c client.Client) (client.Client, string) {
	t.Helper()
	name := fmt.Sprintf("sentence-%d", namespaces.Add(1))
	NewWithT(t).Expect(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	return c, name
}

// actually returns namespaces of a real API server.
func actually(plane *controlplane.Plane) conformance.Begin {
	return func(t *testing.T) (client.Client, string) {
		t.Helper()
		c, err := client.New(plane.Config(), client.Options{Scheme: scheme})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return inNamespace(t, c)
	}
}

// inMemory returns namespaces of one server in memory.
func inMemory(t *testing.T) (conformance.Begin, *memoryapi.Server) {
	t.Helper()
	s, err := memoryapi.New(memoryapi.Options{Scheme: scheme})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return func(t *testing.T) (client.Client, string) { t.Helper(); return inNamespace(t, s.Client(nil)) }, s
}

func TestTheServerInMemoryAnswersAsARealOne(t *testing.T) {
	var memory, actual conformance.Answers
	t.Run("in memory", func(t *testing.T) {
		begin, _ := inMemory(t)
		memory = conformance.Suite(t, begin)
	})
	t.Run("a real API server", func(t *testing.T) { actual = conformance.Suite(t, actually(bare)) })
	t.Run("the answers are the same", func(t *testing.T) { conformance.Same(t, memory, actual) })
}

func TestTheGarbageCollectorInMemoryDoesAsARealOne(t *testing.T) {
	var memory, actual conformance.Answers
	t.Run("in memory", func(t *testing.T) {
		begin, s := inMemory(t)
		memory = conformance.Garbage(t, begin, func(t *testing.T, done func() bool) {
			t.Helper()
			for s.CollectGarbage() > 0 {
			}
			NewWithT(t).Expect(done()).To(BeTrue())
		})
	})
	t.Run("a real API server", func(t *testing.T) {
		actual = conformance.Garbage(t, actually(gathered), func(t *testing.T, done func() bool) {
			t.Helper()
			NewWithT(t).Eventually(done).WithTimeout(time.Minute).WithPolling(20 * time.Millisecond).Should(BeTrue())
		})
	})
	t.Run("the answers are the same", func(t *testing.T) { conformance.Same(t, memory, actual) })
}

func TestRandomRequestsAreAnsweredAsARealServerDoes(t *testing.T) {
	const requests = 150
	begin, _ := inMemory(t)
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			conformance.Same(t, conformance.Random(t, begin, seed, requests), conformance.Random(t, actually(bare), seed, requests))
		})
	}
}
