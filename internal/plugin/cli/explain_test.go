// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// factory makes one without a terminal, whose API server is at the URL.
func factory(url string) (*Factory, *genericiooptions.IOStreams) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	f := NewFactory(streams)
	*f.Flags.APIServer = url
	*f.Flags.Namespace = "ns"
	return f, &streams
}

func TestADenialNamesTheRightThatIsMissing(t *testing.T) {
	f, _ := factory("")
	for _, c := range []struct{ denial, means string }{
		{
			`jobruns.batch.reprise.dev "x" is forbidden: User "ada" cannot get resource "jobruns" in API group "batch.reprise.dev" in the namespace "n"`,
			"user \"ada\" may not get jobruns.batch.reprise.dev in namespace \"n\"\nask who administers it for the role view there; see: kubectl auth can-i get jobruns.batch.reprise.dev -n n",
		}, {
			`jobqueues.batch.reprise.dev "x" is forbidden: User "ada" cannot patch resource "jobqueues" in API group "batch.reprise.dev" in the namespace "n"`,
			"user \"ada\" may not patch jobqueues.batch.reprise.dev in namespace \"n\"\nask who administers it for the role admin there; see: kubectl auth can-i patch jobqueues.batch.reprise.dev -n n",
		}, {
			`pods "x" is forbidden: User "ada" cannot get resource "pods/log" in API group "" in the namespace "n"`,
			"user \"ada\" may not get pods/log in namespace \"n\"\nask who administers it for the role view there; see: kubectl auth can-i get pods -n n --subresource=log",
		}, {
			`jobruns.batch.reprise.dev is forbidden: User "ada" cannot create resource "jobruns" in API group "batch.reprise.dev" in the namespace "n"`,
			"user \"ada\" may not create jobruns.batch.reprise.dev in namespace \"n\"\nask who administers it for the role edit there; see: kubectl auth can-i create jobruns.batch.reprise.dev -n n",
		}, {
			`namespaces is forbidden: User "ada" cannot list resource "namespaces" in API group "" at the cluster scope`,
			"user \"ada\" may not list namespaces in the whole cluster\nask who administers it for the role view there; see: kubectl auth can-i list namespaces",
		},
		{`pods "x" is forbidden: exceeded quota: few`, `pods "x" is forbidden: exceeded quota: few`},
	} {
		err := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: c.denial}}
		NewWithT(t).Expect(f.Explain(fmt.Errorf("asked in vain: %w", err))).To(HaveSuffix(c.means))
	}
}

func TestWhatTheAPIServerRefusesIsToldFieldByField(t *testing.T) {
	f, _ := factory("")
	refused := apierrors.NewInvalid(schema.GroupKind{Kind: "JobRun"}, "x", nil)
	refused.ErrStatus.Details.Causes = []metav1.StatusCause{{Field: "spec.queue", Message: "bad"}, {Field: "", Message: "worse"}}
	NewWithT(t).Expect(f.Explain(refused)).To(Equal("JobRun \"x\" is not accepted:\n  spec.queue: bad\n  worse"))
}

func TestWhatAServerThatIsNoneOfOursAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		means  string
	}{
		"without the kinds": {http.NotFound, "the cluster does not know Reprise's kinds (batch.reprise.dev/v1alpha1)"},
		"without a welcome": {func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`)
		}, "does not accept your credentials\nlog in again"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server := httptest.NewServer(c.answer)
			defer server.Close()
			f, _ := factory(server.URL)
			api, namespace, err := f.Connect()
			g.Expect(err).NotTo(HaveOccurred())
			err = Get(t.Context(), api, namespace, "x", &batchv1alpha1.JobRun{})
			g.Expect(f.Explain(err)).To(ContainSubstring(c.means))
		})
	}
}

func TestACertificateOfAnUnknownAuthority(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	f, _ := factory(server.URL)
	api, namespace, err := f.Connect()
	g.Expect(err).NotTo(HaveOccurred())
	err = api.List(t.Context(), &batchv1alpha1.JobRunList{}, client.InNamespace(namespace))
	g.Expect(f.Explain(err)).To(HavePrefix("the API server " + server.URL + " has a certificate of an unknown authority"))
}

func TestAnyOtherErrorIsToldAsItIs(t *testing.T) {
	f, _ := factory("")
	NewWithT(t).Expect(f.Explain(errors.New("so it is"))).To(Equal("so it is"))
}
