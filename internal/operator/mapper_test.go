// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// asked counts what a mapper is asked.
type asked struct {
	*meta.DefaultRESTMapper
	times int
}

func (a *asked) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	a.times++
	return a.DefaultRESTMapper.RESTMapping(kind, versions...)
}

func TestTheResourceOfAKindIsAskedForUntilItIsFound(t *testing.T) {
	g := NewWithT(t)
	all := &asked{DefaultRESTMapper: meta.NewDefaultRESTMapper([]schema.GroupVersion{batchv1alpha1.GroupVersion})}
	m := remembering(all)
	kind := batchv1alpha1.GroupVersion.WithKind("JobRun")
	for range 2 {
		_, err := m.RESTMapping(kind.GroupKind(), kind.Version)
		g.Expect(meta.IsNoMatchError(err)).To(BeTrue(), "the CRD is yet to be installed")
	}
	all.Add(kind, meta.RESTScopeNamespace)
	for range 2 {
		g.Expect(m.RESTMapping(kind.GroupKind(), kind.Version)).To(HaveField("Resource", batchv1alpha1.GroupVersion.WithResource("jobruns")))
	}
	g.Expect(all.times).To(Equal(3))
	_, err := m.RESTMapping(kind.GroupKind(), "v2")
	g.Expect(meta.IsNoMatchError(err)).To(BeTrue(), "of another version nothing is known")
	g.Expect(m.RESTMapping(kind.GroupKind())).To(HaveField("GroupVersionKind", kind), "whichever is preferred")
}
