// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestTheDefaultsAreValid(t *testing.T) {
	o := DefaultOptions()
	NewWithT(t).Expect(o.Validate()).To(Succeed())
}

func TestOptionsThatCannotWorkAreRefusedAndTheErrorSaysWhich(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		says   string
	}{
		"a recovery policy that is none":                     {func(o *Options) { o.RecoveryPolicy = "Restart" }, `the recovery policy is "Restart"; use Fail or Adopt`},
		"no recovery policy":                                 {func(o *Options) { o.RecoveryPolicy = "" }, "use Fail or Adopt"},
		"a lease that ends before it is given up":            {func(o *Options) { o.LeaseDuration = o.RenewDeadline }, "the lease duration (10s) must be longer"},
		"a renewal that is given up before it is tried":      {func(o *Options) { o.RetryPeriod = o.RenewDeadline }, "longer than the retry period (10s)"},
		"calls that time out before they begin":              {func(o *Options) { o.HTTPTimeout = 999 * time.Millisecond }, "the default HTTP timeout is 999ms"},
		"a drain that is over before it begins":              {func(o *Options) { o.DrainTimeout = -time.Second }, "the drain timeout is -1s"},
		"a lease that lies nowhere":                          {func(o *Options) { o.LeaseNamespace = "" }, "the namespace of the leader lease is empty"},
		"several mistakes, of which each is named: the last": {func(o *Options) { o.RecoveryPolicy, o.LeaseNamespace = "", "" }, "the namespace of the leader lease is empty"},
		"several mistakes, of which each is named: one more": {func(o *Options) { o.RecoveryPolicy, o.LeaseNamespace = "", "" }, "the recovery policy"},
	} {
		t.Run(name, func(t *testing.T) {
			o := DefaultOptions()
			c.change(&o)
			NewWithT(t).Expect(o.Validate()).To(MatchError(ContainSubstring(c.says)))
		})
	}
}

func TestOptionsAtTheirLimitsAreTaken(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"orphans adopted by default":        func(o *Options) { o.RecoveryPolicy = batchv1alpha1.RecoveryAdopt },
		"calls of a second":                 func(o *Options) { o.HTTPTimeout = time.Second },
		"calls aborted without any drain":   func(o *Options) { o.DrainTimeout = 0 },
		"a lease just longer than renewals": func(o *Options) { o.LeaseDuration = o.RenewDeadline + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			o := DefaultOptions()
			change(&o)
			NewWithT(t).Expect(o.Validate()).To(Succeed())
		})
	}
}

func TestNoManagerIsMadeOfOptionsThatCannotWork(t *testing.T) {
	o := DefaultOptions()
	o.LeaseNamespace = ""
	op, err := New(t.Context(), &rest.Config{}, o)
	g := NewWithT(t)
	g.Expect(op).To(BeNil())
	g.Expect(err).To(MatchError(ContainSubstring("the namespace of the leader lease is empty")))
}

func TestAProcessThatStartsAgainIsAnotherOne(t *testing.T) {
	NewWithT(t).Expect(processID()).NotTo(Equal(processID()))
}

func TestTheIdentityOfThePodIsWhatTheContainerIsTold(t *testing.T) {
	g := NewWithT(t)
	told := map[string]string{"POD_NAME": "reprise-0", "POD_NAMESPACE": "reprise-system", "POD_UID": "uid"}
	for name, value := range told {
		t.Setenv(name, value)
	}
	pod := podFromEnv(noon)
	g.Expect(pod.Name).To(Equal("reprise-0"))
	g.Expect(pod.Namespace).To(Equal("reprise-system"))
	g.Expect(pod.UID).To(BeEquivalentTo("uid"))
	g.Expect(pod.StartedAt.Time).To(Equal(noon))

	for name, value := range told {
		t.Setenv(name, "")
		g.Expect(podFromEnv(noon)).To(BeNil(), "without %s", name)
		t.Setenv(name, value)
	}
}

func TestTheLeaseHasOneNameWhateverTheOptions(t *testing.T) {
	o := DefaultOptions()
	o.LeaseNamespace = "elsewhere"
	NewWithT(t).Expect(o.lease().String()).To(Equal("elsewhere/reprise-manager"))
}
