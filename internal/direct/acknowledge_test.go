// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestARenewalOfOneThatWaitsAcknowledgesNoGrantThatIsSeenLater(t *testing.T) {
	g := NewWithT(t)
	h := newBench(t, pending()).held()
	h.learn(renewal{sent: at(1), of: h.current, got: h.current.DeepCopy()})
	g.Expect(h.acknowledged).To(BeFalse())

	grant := h.current.DeepCopy()
	granted(grant)
	grant.ResourceVersion = "999999"
	h.see(version{reservation: grant})
	g.Expect(h.showsGrant()).To(BeTrue())
	g.Expect(h.acknowledged).To(BeFalse())

	h.learn(renewal{sent: at(2), of: grant, got: grant.DeepCopy()})
	g.Expect(h.acknowledged).To(BeTrue())
}
