// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin/cli"
)

// patience bounds every wait of these tests; a wait ends as soon as it can.
const patience = 20 * time.Second

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// written is what several goroutines write.
type written struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// desk is a printer over an API in memory, whose containers say what their logs hold.
type desk struct {
	*WithT
	*printer
	out, err *written
	logs     map[string]func() io.ReadCloser // by pod/container
}

func newDesk(t *testing.T, o options, objects ...client.Object) *desk {
	d := &desk{WithT: NewWithT(t), out: &written{}, err: &written{}, logs: map[string]func() io.ReadCloser{}}
	d.SetDefaultEventuallyTimeout(patience)
	f := cli.NewFactory(genericiooptions.IOStreams{In: strings.NewReader(""), Out: d.out, ErrOut: d.err})
	index := func(field string, value func(*batchv1alpha1.JobRun) string) (client.Object, string, client.IndexerFunc) {
		return &batchv1alpha1.JobRun{}, field, func(o client.Object) []string { return []string{value(o.(*batchv1alpha1.JobRun))} }
	}
	api := fake.NewClientBuilder().WithScheme(cli.Scheme()).WithObjects(objects...).
		WithIndex(index("spec.scheduledJobRef.name", func(r *batchv1alpha1.JobRun) string {
			if r.Spec.ScheduledJobRef == nil {
				return ""
			}
			return r.Spec.ScheduledJobRef.Name
		})).
		WithIndex(index("metadata.name", func(r *batchv1alpha1.JobRun) string { return r.Name })).Build()
	d.printer = &printer{f: f, api: api, namespace: "ns", options: &o, lines: &lines{f: f}}
	d.open = func(_ context.Context, pod, container string, _ bool) (stream, error) {
		if log := d.logs[pod+"/"+container]; log != nil {
			return log(), nil
		}
		return nil, errors.New("the node does not answer")
	}
	return d
}

// says gives a container a log.
func (d *desk) says(container, text string) *desk {
	d.logs[container] = func() io.ReadCloser { return io.NopCloser(strings.NewReader(text)) }
	return d
}

func all() options { return options{attempt: -1, tail: -1} }

type change func(*batchv1alpha1.JobRun)

// job is a run with Job work that has failed.
func job(name string, changes ...change) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(noon)}}
	r.Spec.Work = &batchv1alpha1.Work{Job: &batchv1alpha1.JobWork{}}
	r.Status.Phase, r.Status.Reason = batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonWorkFailed
	r.Status.StartedAt = ptr.To(metav1.NewTime(noon))
	r.Spec.RetryPolicy = &batchv1alpha1.RetryPolicy{MaxRetries: ptr.To[int32](0)}
	for _, c := range changes {
		c(r)
	}
	return r
}

func in(phase batchv1alpha1.JobRunPhase) change {
	return func(r *batchv1alpha1.JobRun) {
		if r.Status.Phase = phase; phase == batchv1alpha1.JobRunQueued {
			r.Status.StartedAt = nil
		}
	}
}

// retriedBy records a retry.
func retriedBy(name string) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Status.Retry = &batchv1alpha1.RetryRecord{Name: name, UID: types.UID("uid-" + name)}
	}
}

// retryOf makes it an attempt of a chain.
func retryOf(parent, root string, attempt int32) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Spec.RetryOf, r.Spec.Attempt = parent, attempt
		r.Spec.Chain = &batchv1alpha1.Chain{RootName: root, RootUID: types.UID("uid-" + root), QueuedAt: metav1.NewTime(noon), IdempotencyKey: "k"}
	}
}

// pod works for a run; its containers have begun.
func pod(name, run string, containers ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(noon),
		Labels: map[string]string{batchv1alpha1.LabelRunUID: "uid-" + run},
	}}
	for _, c := range containers {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: c})
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
	}
	return p
}

// threeAttempts is a chain whose runs have a pod each.
func threeAttempts() []client.Object {
	return []client.Object{
		job("a", retriedBy("a-r1")), job("a-r1", retryOf("a", "a", 1), retriedBy("a-r2")), job("a-r2", retryOf("a-r1", "a", 2)),
		pod("p0", "a", "main"), pod("p1", "a-r1", "main"), pod("p2", "a-r2", "main"), pod("other", "b", "main"),
	}
}

func TestWhichAttemptsArePrinted(t *testing.T) {
	with := func(change func(*options)) options {
		o := all()
		change(&o)
		return o
	}
	for name, c := range map[string]struct {
		options options
		of      string
		out     string
		fails   string
	}{
		"all of the chain of its first run":  {all(), "a", "[a] zero\n[a-r1] one\n[a-r2] two\n", ""},
		"all of the chain of a retry":        {all(), "a-r1", "[a] zero\n[a-r1] one\n[a-r2] two\n", ""},
		"one by its number":                  {with(func(o *options) { o.attempt = 1 }), "a", "one\n", ""},
		"the first":                          {with(func(o *options) { o.attempt = 0 }), "a-r2", "zero\n", ""},
		"the one before the latest":          {with(func(o *options) { o.previous = true }), "a", "one\n", ""},
		"one that there is not":              {with(func(o *options) { o.attempt = 7 }), "a", "", "has no attempt 7 any more, or not yet: the latest is 2"},
		"all without the names of their run": {with(func(o *options) { o.prefix = ptr.To(false) }), "a", "zero\none\ntwo\n", ""},
		"one with its name":                  {with(func(o *options) { o.attempt, o.prefix = 2, ptr.To(true) }), "a", "[a-r2] two\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, c.options, threeAttempts()...).says("p0/main", "zero").says("p1/main", "one\n").says("p2/main", "two\n")
			r := &batchv1alpha1.JobRun{}
			d.Expect(d.api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: c.of}, r)).To(Succeed())
			err := d.chain(t.Context(), r)
			if c.fails != "" {
				d.Expect(err).To(MatchError(ContainSubstring(c.fails)))
			} else {
				d.Expect(err).NotTo(HaveOccurred())
			}
			d.Expect(d.out.String()).To(Equal(c.out))
		})
	}
}

func TestAnAttemptThatCannotBePrintedKeepsNoneOfTheOthersFromIt(t *testing.T) {
	d := newDesk(t, all(), threeAttempts()...).says("p0/main", "zero\n").says("p2/main", "two\n")
	d.Expect(d.chain(t.Context(), job("a", retriedBy("a-r1")))).To(MatchError(errIncomplete))
	d.Expect(d.out.String()).To(Equal("[a] zero\n[a-r2] two\n"))
	d.Expect(d.err.String()).To(ContainSubstring("run a-r1: the node does not answer"))
}

func TestAPredecessorThatWasRemovedIsLeftOut(t *testing.T) {
	last := job("a-r2", retryOf("a-r1", "a", 2))
	d := newDesk(t, all(), last, pod("p2", "a-r2", "main")).says("p2/main", "two\n")
	d.Expect(d.chain(t.Context(), last)).To(Succeed())
	d.Expect(d.out.String()).To(Equal("two\n"))
}

func TestContainersAndPodsAreToldApart(t *testing.T) {
	two := job("a", func(r *batchv1alpha1.JobRun) { r.Spec.Work.Job.Template.Spec.Parallelism = ptr.To[int32](2) })
	d := newDesk(t, all(), two, pod("p0", "a", "main", "proxy"), pod("p1", "a", "main")).
		says("p0/main", "1\n").says("p0/proxy", "2\n").says("p1/main", "3\n")
	d.Expect(d.chain(t.Context(), two)).To(Succeed())
	d.Expect(d.out.String()).To(Equal("[a/p0/main] 1\n[a/p0/proxy] 2\n[a/p1] 3\n"))

	d = newDesk(t, options{attempt: -1, tail: -1, container: "proxy"}, job("a"), pod("p0", "a", "main", "proxy")).says("p0/proxy", "2\n")
	d.Expect(d.chain(t.Context(), job("a"))).To(Succeed())
	d.Expect(d.out.String()).To(Equal("2\n"))

	d = newDesk(t, options{attempt: -1, tail: -1, container: "misspelt"}, job("a"), pod("p0", "a", "main"))
	d.Expect(d.chain(t.Context(), job("a"))).To(MatchError(errIncomplete))
	d.Expect(d.err.String()).To(ContainSubstring("no container of it is called misspelt"))
}

func TestWhatHasNoLogsSaysWhy(t *testing.T) {
	http := func(result *batchv1alpha1.WorkResult) change {
		return func(r *batchv1alpha1.JobRun) {
			r.Spec.Work = &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{}}
			r.Status.Result = result
		}
	}
	for name, c := range map[string]struct {
		run      *batchv1alpha1.JobRun
		out, err string
	}{
		"one that waits":                        {job("a", in(batchv1alpha1.JobRunQueued)), "", "run a has not started; see: kubectl reprise why a"},
		"one that was never started":            {job("a", in(batchv1alpha1.JobRunQueued), in(batchv1alpha1.JobRunCancelled)), "", "run a was never started: it is Cancelled"},
		"one whose pods are gone":               {job("a"), "", "run a has no pods any more, and its logs went with them: it is Failed (WorkFailed)"},
		"one whose containers are yet to begin": {job("a", in(batchv1alpha1.JobRunRunning)), "", "run a: no container has begun; see: kubectl reprise why a"},
		"an answer":                             {job("a", http(&batchv1alpha1.WorkResult{HTTPStatus: ptr.To[int32](200), Body: "fine"})), "fine\n", "run a: HTTP 200\n"},
		"the beginning of an answer": {
			job("a", http(&batchv1alpha1.WorkResult{HTTPStatus: ptr.To[int32](500), Body: "long", BodyTruncated: true})), "long\n", "run a: HTTP 500, the first 4 bytes of the answer\n",
		},
		"a call without an answer": {job("a", http(nil)), "", "run a has no answer: it is Failed (WorkFailed)"},
		"a call that is under way": {job("a", in(batchv1alpha1.JobRunRunning), http(nil)), "", "run a: the call is under way"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, all(), c.run)
			d.Expect(d.chain(t.Context(), c.run)).To(Succeed())
			d.Expect(d.out.String()).To(Equal(c.out))
			d.Expect(d.err.String()).To(ContainSubstring(c.err))
		})
	}
}

func TestTheLatestRunOfAScheduleIsPrinted(t *testing.T) {
	of := func(second int) change {
		return func(r *batchv1alpha1.JobRun) {
			r.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "nightly"}
			r.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(second) * time.Second))
		}
	}
	sj := &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "nightly"}}
	d := newDesk(t, all(), sj, job("late", of(2)), job("early", of(1)), pod("p0", "late", "main")).says("p0/main", "late\n")
	d.Expect(d.latestOf(t.Context(), "nightly")).To(Succeed())
	d.Expect(d.out.String()).To(Equal("late\n"))

	d = newDesk(t, all(), sj)
	d.Expect(d.latestOf(t.Context(), "nightly")).To(MatchError(ContainSubstring("has no run")))
}

func TestAGroupIsPrintedMemberByMember(t *testing.T) {
	g := &batchv1alpha1.JobGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "release"}}
	g.Status.Members = []batchv1alpha1.GroupMemberStatus{{Name: "build", RunName: "release-build"}, {Name: "gone", RunName: "release-gone"}, {Name: "ship"}}
	d := newDesk(t, all(), g, job("release-build"), pod("p0", "release-build", "main")).says("p0/main", "built\n")
	d.Expect(d.group(t.Context(), "release")).To(Succeed())
	d.Expect(d.out.String()).To(Equal("[release-build] built\n"))
}

// TestLogsAreFollowedThroughRetries plays a run that starts, writes, fails, and is retried.
func TestLogsAreFollowedThroughRetries(t *testing.T) {
	first := job("a", in(batchv1alpha1.JobRunQueued), func(r *batchv1alpha1.JobRun) { r.Spec.RetryPolicy.MaxRetries = ptr.To[int32](1) })
	o := all()
	o.follow = true
	// The retry is there from the beginning, since the API in memory selects nothing in its watches; what counts is the record of it.
	d := newDesk(t, o, first, job("a-r1", retryOf("a", "a", 1), in(batchv1alpha1.JobRunCompleted)), pod("p1", "a-r1", "main"))
	d.says("p1/main", "second\n")
	log, work := io.Pipe()
	d.logs["p0/main"] = func() io.ReadCloser { return log }
	done := make(chan error, 1)
	go func() { done <- d.chain(t.Context(), first.DeepCopy()) }()
	d.Eventually(d.err.String).Should(ContainSubstring("run a waits; see: kubectl reprise why a"))

	change := func(name string, do func(*batchv1alpha1.JobRun)) {
		t.Helper()
		r := &batchv1alpha1.JobRun{}
		d.Expect(d.api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, r)).To(Succeed())
		do(r)
		d.Expect(d.api.Update(t.Context(), r)).To(Succeed())
	}
	change("a", func(r *batchv1alpha1.JobRun) {
		r.Status.Phase, r.Status.StartedAt = batchv1alpha1.JobRunRunning, ptr.To(metav1.NewTime(noon))
	})
	d.Expect(d.api.Create(t.Context(), pod("p0", "a", "main"))).To(Succeed())
	_, err := fmt.Fprintln(work, "hello")
	d.Expect(err).NotTo(HaveOccurred())
	d.Eventually(d.out.String).Should(Equal("[a] hello\n"), "before it has ended")
	change("a", in(batchv1alpha1.JobRunFailed))
	_, err = fmt.Fprintln(work, "last words")
	d.Expect(err).NotTo(HaveOccurred())
	d.Expect(work.Close()).To(Succeed())
	change("a", retriedBy("a-r1"))
	d.Eventually(done).Should(Receive(BeNil()))
	d.Expect(d.out.String()).To(Equal("[a] hello\n[a] last words\n[a-r1] second\n"))
}

func TestWhoeverInterruptsEndsTheFollowing(t *testing.T) {
	o := all()
	o.follow = true
	r := job("a", in(batchv1alpha1.JobRunRunning))
	d := newDesk(t, o, r)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.chain(ctx, r) }()
	why := errors.New("interrupted")
	cancel(why)
	d.Eventually(done).Should(Receive(MatchError(why)))
}

func TestFlagsThatContradictEachOtherAreRefused(t *testing.T) {
	for name, o := range map[string]options{
		"the attempt twice":      {previous: true, attempt: 0},
		"to follow what is over": {previous: true, attempt: -1, follow: true},
		"a negative time":        {attempt: -1, since: -time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(cli.Code(o.check())).To(Equal(cli.ExitUsage))
		})
	}
}
