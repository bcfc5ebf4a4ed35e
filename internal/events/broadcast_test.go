// SPDX-License-Identifier: Apache-2.0

package events

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

func TestWhatIsOnItsWayAtTheEndIsNotCutOff(t *testing.T) {
	g := NewWithT(t)
	arrived, ended, whole := make(chan struct{}), make(chan struct{}), make(chan bool)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		close(arrived)
		<-ended
		_, wrote := rw.Write(body)
		whole <- err == nil && wrote == nil && r.Context().Err() == nil
	}))
	defer server.Close()
	recorder, end, err := Broadcast(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, server.Client(), scheme.Scheme, logr.Discard())
	g.Expect(err).NotTo(HaveOccurred())
	recorder.Eventf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a"}}, nil, corev1.EventTypeNormal, "Completed", "End", "it is %s", "done")
	<-arrived
	end()
	close(ended)
	g.Expect(<-whole).To(BeTrue())
}
