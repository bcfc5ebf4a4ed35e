// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin/cli"
	"reprise.dev/reprise/internal/plugin/reserve/guard"
	"reprise.dev/reprise/internal/reservation"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

type change func(*batchv1alpha1.DirectReservation)

// reserved is a reservation of the holder of these tests.
func reserved(changes ...change) *batchv1alpha1.DirectReservation {
	d := &batchv1alpha1.DirectReservation{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "shell", UID: "uid-shell", CreationTimestamp: metav1.NewTime(noon),
		Annotations: map[string]string{batchv1alpha1.AnnotationFront: "sign"},
	}}
	d.Spec.Queue, d.Spec.LeaseDurationSeconds = "agents", 60
	d.Status.Phase = batchv1alpha1.ReservationPending
	for _, c := range changes {
		c(d)
	}
	return d
}

func in(phase batchv1alpha1.DirectReservationPhase) change {
	return func(d *batchv1alpha1.DirectReservation) { d.Status.Phase = phase }
}

func called(name string) change {
	return func(d *batchv1alpha1.DirectReservation) { d.Name, d.UID = name, types.UID("uid-"+name) }
}

func madeAt(seconds int) change {
	return func(d *batchv1alpha1.DirectReservation) { d.CreationTimestamp = metav1.NewTime(at(seconds)) }
}

func version9(d *batchv1alpha1.DirectReservation) { d.ResourceVersion = "1000000" }

// holding is a slot whose API has those objects and answers through the interceptor.
func holding(through interceptor.Funcs, objects ...client.Object) *slot {
	api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(cli.Scheme()).WithStatusSubresource(&batchv1alpha1.DirectReservation{}).
		WithObjects(objects...).Build(), through)
	c := clocktesting.NewFakeClock(noon)
	return &slot{
		api: api, clock: c, times: &times{clock: c}, lease: time.Minute,
		plan: guard.Plan{Namespace: "ns", Name: "shell", Nonce: "sign"},
	}
}

// TestNobodyElseHasTheSlotBeforeARenewalIsOver plays the time of renewals against the rule of the manager, whatever the clocks of
// the holder and of its view of the cluster are.
func TestNobodyElseHasTheSlotBeforeARenewalIsOver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lease := time.Duration(rapid.IntRange(10, 600).Draw(t, "lease")) * time.Second
		sent := noon.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "sent"))) // by the clock of the cluster
		took := time.Duration(rapid.Int64Range(0, int64(10*time.Second)).Draw(t, "took"))
		believed := sent.Add(time.Duration(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "off")))
		stamp, date := believed.Truncate(time.Second), sent.Add(took).Truncate(time.Second)
		counts := stamp // the manager takes what is in the future for the time at which it sees it, which is later than the sending
		if counts.After(sent) {
			counts = sent.Truncate(time.Second)
		}
		free := counts.Add(lease + reservation.ClockAllowance)
		if end := sent.Add(lasts(lease, stamp, date)); end.After(free) {
			t.Fatalf("the holder goes on until %s, and the slot is free at %s", end, free)
		}
	})
}

func TestARenewalLastsForNearlyALeaseIfTheTimeOfTheClusterIsKnown(t *testing.T) {
	g := NewWithT(t)
	g.Expect(lasts(time.Minute, at(0), at(0))).To(Equal(59*time.Second), "the clock of the cluster may show the end of the second")
	g.Expect(lasts(time.Minute, at(5), at(0))).To(Equal(time.Minute), "a stamp that is ahead prolongs nothing")
	g.Expect(lasts(time.Minute, at(0), time.Time{})).To(Equal(59*time.Second), "nobody told the time")
	g.Expect(lasts(time.Minute, at(-100), at(0))).To(BeNumerically("<", 0), "the clock was behind by more than a lease")
}

func TestTheTimeOfTheClusterIsReadFromItsAnswers(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Date", at(3600).Format(http.TimeFormat))
	}))
	t.Cleanup(server.Close)
	k := &times{clock: clocktesting.NewFakeClock(noon)}
	g.Expect(k.now()).To(Equal(noon))
	ctx, d := dating(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	g.Expect(err).NotTo(HaveOccurred())
	answer, err := k.through(http.DefaultTransport).RoundTrip(request)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer.Body.Close()).To(Succeed())
	g.Expect(d.date).To(BeTemporally("==", at(3600)))
	g.Expect(k.now()).To(BeTemporally("==", at(3600)))
}

func TestWhereAReservationStands(t *testing.T) {
	grantedTo := func(holder string) change {
		return func(d *batchv1alpha1.DirectReservation) {
			d.Status.Phase, d.Spec.HolderIdentity = batchv1alpha1.ReservationGranted, holder
		}
	}
	held := func(name, queue string) batchv1alpha1.JobRun {
		r := batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Name: name}}
		r.Status.Queue, r.Status.Slot = queue, batchv1alpha1.SlotHeld
		return r
	}
	stalled := func(d *batchv1alpha1.DirectReservation) {
		reservation.Hold(d, batchv1alpha1.ReasonQueueNotFound, "JobQueue agents does not exist", noon)
	}
	for want, c := range map[string]struct {
		own    *batchv1alpha1.DirectReservation
		others []*batchv1alpha1.DirectReservation
		runs   []batchv1alpha1.JobRun
		now    int
	}{
		"waits for its turn": {reserved(), []*batchv1alpha1.DirectReservation{reserved(), reserved(called("later"), madeAt(1))}, nil, 1},
		"waits for its turn: 1 reservation is before it": {
			reserved(), []*batchv1alpha1.DirectReservation{
				reserved(called("earlier"), madeAt(-1)), reserved(called("over"), madeAt(-1), in(batchv1alpha1.ReservationReleased)),
				reserved(called("another"), madeAt(-1), func(d *batchv1alpha1.DirectReservation) { d.Spec.Queue = "others" }),
			}, nil, 1,
		},
		"waits for its turn: 2 reservations are before it": {
			reserved(), []*batchv1alpha1.DirectReservation{reserved(called("a"), madeAt(-1)), reserved(called("b"), madeAt(-2))}, nil, 1,
		},
		"is next in line: the slots are held by run a, reservation b of ada": {
			reserved(in(batchv1alpha1.ReservationActive)), []*batchv1alpha1.DirectReservation{reserved(called("b"), grantedTo("ada"))},
			[]batchv1alpha1.JobRun{held("a", "agents"), held("z", "others")}, 1,
		},
		"is next in line: the slots are held by run a, run b, run c, and 1 more": {
			reserved(in(batchv1alpha1.ReservationActive)), nil,
			[]batchv1alpha1.JobRun{held("a", "agents"), held("b", "agents"), held("c", "agents"), held("d", "agents")}, 1,
		},
		"is next in line": {reserved(in(batchv1alpha1.ReservationActive)), nil, nil, 1},
		"cannot be served as things are: JobQueue agents does not exist": {reserved(stalled), nil, nil, 1},
		"was not looked at yet: is the manager of Reprise running?": {
			reserved(func(d *batchv1alpha1.DirectReservation) { d.Status.ObservedGeneration = -1 }), nil, nil, 11,
		},
	} {
		t.Run(want, func(t *testing.T) {
			var others []batchv1alpha1.DirectReservation
			for _, o := range c.others {
				others = append(others, *o)
			}
			NewWithT(t).Expect(standing(c.own, others, c.runs, at(c.now))).To(Equal(want))
		})
	}
}

func TestACreationWithoutAnAnswerIsRecognisedByTheSignOfItsHolder(t *testing.T) {
	g := NewWithT(t)
	lose := interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if err := c.Create(ctx, o, opts...); err != nil {
			return err
		}
		return &url.Error{Op: "Post", URL: "https://api", Err: errors.New("connection reset by peer")}
	}}
	s := holding(lose)
	made := make(chan error, 1)
	want := reserved()
	want.UID = ""
	go func() { made <- s.create(t.Context(), want) }()
	fakeClock := s.clock.(*clocktesting.FakeClock)
	g.Eventually(fakeClock.HasWaiters).Should(BeTrue())
	fakeClock.Step(retryPause)
	g.Eventually(made).Should(Receive(BeNil()))
	g.Expect(s.current.Name).To(Equal("shell"))
	g.Expect(s.current.Spec.RenewTime).NotTo(BeNil(), "one whose holder dies while it waits expires")
}

func TestAReservationOfTheSameNameThatIsAnothersIsNotTaken(t *testing.T) {
	g := NewWithT(t)
	theirs := reserved(func(d *batchv1alpha1.DirectReservation) {
		d.Annotations, d.Spec.HolderIdentity = nil, "ada"
	})
	s := holding(interceptor.Funcs{}, theirs)
	want := reserved()
	want.UID = ""
	g.Expect(s.create(t.Context(), want)).To(MatchError(ContainSubstring("it is Pending, for ada")))
	g.Expect(giveBack(t.Context(), s.api, s.clock, s.plan)).To(Succeed())
	g.Expect(s.api.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs)).To(Succeed())
	g.Expect(theirs.Spec.Release).To(BeFalse())
}

func TestARenewalAlwaysMovesForwardAndAcknowledgesAGrant(t *testing.T) {
	g := NewWithT(t)
	future := metav1.NewTime(at(100))
	s := holding(interceptor.Funcs{}, reserved(in(batchv1alpha1.ReservationGranted), func(d *batchv1alpha1.DirectReservation) { d.Spec.RenewTime = &future }))
	s.current = &batchv1alpha1.DirectReservation{}
	g.Expect(s.api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "shell"}, s.current)).To(Succeed())
	s.renew(t.Context())
	g.Expect(s.granted).To(BeFalse(), "it was not answered")
	var r renewal
	g.Eventually(s.underway).Should(Receive(&r))
	g.Expect(r.err).NotTo(HaveOccurred())
	s.learn(r)
	g.Expect(s.granted).To(BeTrue())
	g.Expect(s.current.Spec.RenewTime.Time).To(BeTemporally("==", at(101)))
	g.Expect(s.next).To(Equal(noon.Add(10*time.Second)), "a sixth of the lease")
	g.Expect(s.sure.Left(noon)).To(Equal(59 * time.Second))

	s.renew(t.Context())
	g.Expect(s.underway).To(BeNil(), "the next one is not due")
}

func TestARenewalOfOneThatWaitsAcknowledgesNothing(t *testing.T) {
	g := NewWithT(t)
	s := holding(interceptor.Funcs{})
	s.current = reserved()
	s.learn(renewal{sent: noon, stamp: noon, date: noon, got: reserved(version9)})
	g.Expect(s.granted).To(BeFalse())
	g.Expect(s.next).To(Equal(noon.Add(20*time.Second)), "a third of the lease")
	s.see(reserved(version9, in(batchv1alpha1.ReservationGranted), func(d *batchv1alpha1.DirectReservation) { d.ResourceVersion = "1000001" }), false)
	g.Expect(s.granted).To(BeFalse())
	g.Expect(s.next.IsZero()).To(BeTrue(), "but it is acknowledged at once")
}

func TestWhatEndsAReservation(t *testing.T) {
	for name, c := range map[string]struct {
		seen    *batchv1alpha1.DirectReservation
		deleted bool
		says    string
	}{
		"nothing":                      {reserved(version9), false, ""},
		"its deletion":                 {reserved(version9), true, "was deleted"},
		"the deletion of another":      {reserved(version9, func(d *batchv1alpha1.DirectReservation) { d.UID = "other" }), true, ""},
		"another in its place":         {reserved(version9, func(d *batchv1alpha1.DirectReservation) { d.UID = "other" }), false, "was deleted"},
		"its expiry":                   {reserved(version9, in(batchv1alpha1.ReservationExpired), func(d *batchv1alpha1.DirectReservation) { d.Status.Message = "too late" }), false, "expired: too late"},
		"its release by somebody else": {reserved(version9, func(d *batchv1alpha1.DirectReservation) { d.Spec.Release = true }), false, "was released by somebody else"},
		"an old version":               {reserved(in(batchv1alpha1.ReservationExpired), func(d *batchv1alpha1.DirectReservation) { d.ResourceVersion = "1" }), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := holding(interceptor.Funcs{})
			s.current = reserved(in(batchv1alpha1.ReservationGranted), func(d *batchv1alpha1.DirectReservation) { d.ResourceVersion = "5" })
			s.see(c.seen, c.deleted)
			if c.says == "" {
				g.Expect(s.lost()).To(Succeed())
			} else {
				g.Expect(s.lost()).To(MatchError(ContainSubstring(c.says)))
			}
		})
	}
}

func TestWhatWasGivenBackIsTriedUntilThereIsAnAnswer(t *testing.T) {
	g := NewWithT(t)
	tries := 0
	flaky := interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		if tries++; tries == 1 {
			return apierrors.NewServerTimeout(schema.GroupResource{}, "patch", 1)
		}
		return c.Patch(ctx, o, p, opts...)
	}}
	s := holding(flaky, reserved())
	done := make(chan error, 1)
	go func() { done <- giveBack(t.Context(), s.api, s.clock, s.plan) }()
	fakeClock := s.clock.(*clocktesting.FakeClock)
	g.Eventually(fakeClock.HasWaiters).Should(BeTrue())
	fakeClock.Step(retryPause)
	g.Eventually(done).Should(Receive(BeNil()))
	d := &batchv1alpha1.DirectReservation{}
	g.Expect(s.api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "shell"}, d)).To(Succeed())
	g.Expect(d.Spec.Release).To(BeTrue())
}

func TestClaimsAreReadFromTheFlag(t *testing.T) {
	g := NewWithT(t)
	w := &wish{lease: time.Minute, timeout: time.Minute, claims: []string{"ollama", "remote=2"}}
	g.Expect(w.check()).To(Succeed())
	g.Expect(w.parsed).To(Equal([]batchv1alpha1.ResourceClaim{{Name: "ollama", Count: 1}, {Name: "remote", Count: 2}}))
	for _, bad := range []string{"", "=1", "gpu=0", "gpu=-1", "gpu=x", "gpu=" + strconv.Itoa(1<<40)} {
		g.Expect((&wish{lease: time.Minute, timeout: time.Minute, claims: []string{bad}}).check()).NotTo(Succeed(), bad)
	}
}

func TestEveryReservationHasAnotherNameAndAnotherSign(t *testing.T) {
	g := NewWithT(t)
	w := &wish{}
	a, b := w.planned("ns"), w.planned("ns")
	g.Expect(a.Name).NotTo(Equal(b.Name))
	g.Expect(a.Nonce).NotTo(Equal(b.Nonce))
	w.name = "mine"
	g.Expect(w.planned("ns").Name).To(Equal("mine"))
	g.Expect(w.planned("ns").Nonce).NotTo(Equal(w.planned("ns").Nonce))
}
