// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestTheCreationOfAJobIsSentOnceAndEverythingElseUntilItIsAnswered(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "x"}
	for name, c := range map[string]struct {
		ask  func(client.Client) error
		sent int
	}{
		"a Job":    {func(api client.Client) error { return api.Create(t.Context(), &batchv1.Job{ObjectMeta: meta}) }, 1},
		"an Event": {func(api client.Client) error { return api.Create(t.Context(), &corev1.Event{ObjectMeta: meta}) }, 2},
		"the change of a Job": {func(api client.Client) error {
			return api.Patch(t.Context(), &batchv1.Job{ObjectMeta: meta}, client.RawPatch(types.MergePatchType, []byte("{}")))
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var sent atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if sent.Add(1) == 1 {
					w.Header().Set("Retry-After", "0")
				}
				w.WriteHeader(http.StatusServiceUnavailable)
			}))
			defer server.Close()
			config := workConfig(&rest.Config{Host: server.URL})
			api, err := client.New(config, client.Options{Scheme: Scheme(), Mapper: testrestmapper.TestOnlyStaticRESTMapper(Scheme())})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.ask(api)).NotTo(Succeed())
			g.Expect(sent.Load()).To(BeEquivalentTo(c.sent))
		})
	}
}
