// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/fakekubelet"
	"reprise.dev/reprise/internal/invariant"
)

const (
	// loadPause is the pause between two steps of the load.
	loadPause = 250 * time.Millisecond
	// mostUnsettled is how many runs wait or are at work before no more are created.
	mostUnsettled = 12
)

// Queues of the load: one and two are named after their limits, mixed has a type and a resource beside a limit of 2, and calls is for
// those that hang alone.
const (
	queueCalls = "calls"
	queueOne   = "one"
	queueTwo   = "two"
	queueMixed = "mixed"
)

// load makes runs, schedules, groups and reservations in one history, as people do.
type load struct {
	*world
	server *server
	seen   *recorder
	seed   uint64

	holders sync.WaitGroup
	hung    atomic.Int32

	mu      sync.Mutex
	acts    []invariant.Act // of the holders of reservations
	deleted []types.UID
}

// action is a kind of step, with how often it is taken.
type action struct {
	weight int
	// creates says that it makes runs.
	creates bool
	take    func(l *load, ctx context.Context, r *rand.Rand, n int)
}

var actions = []action{
	{30, true, (*load).single},
	{4, true, (*load).group},
	{3, true, (*load).oneTime},
	{3, true, (*load).retryByHand},
	{9, false, (*load).reserve},
	{4, false, (*load).cancel},
	{2, false, (*load).remove},
	{10, false, (*load).slowNode},
}

// run takes one step after the other until ctx ends.
func (l *load) run(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		r := rand.New(rand.NewPCG(l.seed, uint64(n)+2))
		if a := pick(r); !a.creates || l.unsettled() < mostUnsettled {
			step, cancel := context.WithTimeout(ctx, requestTimeout)
			a.take(l, step, r, n)
			cancel()
		}
		wait(loadPause, ctx.Done())
	}
}

func pick(r *rand.Rand) action {
	total := 0
	for _, a := range actions {
		total += a.weight
	}
	at := r.IntN(total)
	for _, a := range actions {
		if at -= a.weight; at < 0 {
			return a
		}
	}
	panic("weights that add up to less than their sum")
}

func (l *load) unsettled() int {
	n := 0
	for _, r := range seen[*batchv1alpha1.JobRun](l.seen) {
		if !r.Status.Phase.Terminal() {
			n++
		}
	}
	return n
}

// tolerate fails the test if the API server finds fault with a request. That there was no answer is what is tested.
func (l *load) tolerate(err error) {
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		l.t.Errorf("a request of the load is refused: %v", err)
	}
}

func (l *load) make(ctx context.Context, name string, o client.Object) {
	o.SetNamespace(l.ns)
	o.SetName(name)
	l.tolerate(l.client.Create(ctx, o))
}

func (l *load) patch(ctx context.Context, o client.Object, patch string) error {
	o = o.DeepCopyObject().(client.Object)
	err := l.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(patch)))
	l.tolerate(err)
	return err
}

// queues makes the queues and the schedules, before anything goes wrong.
func (l *load) queues() {
	receivers := func(name string) *batchv1alpha1.Notifications {
		return &batchv1alpha1.Notifications{Receivers: []batchv1alpha1.NotificationReceiver{
			{Name: name, URL: fmt.Sprintf("%s/announce/%s/%s", l.server.URL, l.ns, name)},
		}}
	}
	for name, concurrency := range map[string]*batchv1alpha1.QueueConcurrency{
		queueCalls: {Limit: ptr.To[int32](2)},
		queueOne:   {Limit: ptr.To[int32](1)},
		queueTwo:   {Limit: ptr.To[int32](2)},
		queueMixed: {
			Limit:     ptr.To[int32](2),
			Types:     []batchv1alpha1.TypeConcurrency{{Name: "narrow", Limit: ptr.To[int32](1)}, {Name: "wide"}},
			Resources: []batchv1alpha1.QueueResource{{Name: "gpu", Capacity: 1}},
		},
	} {
		l.create(&batchv1alpha1.JobQueue{
			ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: name},
			Spec:       batchv1alpha1.JobQueueSpec{Concurrency: concurrency, Notifications: receivers("of-" + name)},
		})
	}
	forbid := batchv1alpha1.ScheduledJobSpec{Schedule: "@every 1s", ConcurrencyPolicy: batchv1alpha1.ConcurrencyForbid}
	forbid.RunTemplate = l.httpWork(queueTwo, demand{takes: 300 * time.Millisecond})
	allow := batchv1alpha1.ScheduledJobSpec{Schedule: "@every 2s", ConcurrencyPolicy: batchv1alpha1.ConcurrencyAllow, MaxQueuedRuns: 3}
	allow.RunTemplate = l.jobWork(queueMixed, 200*time.Millisecond, 0, batchv1alpha1.RecoveryAdopt)
	forbid.Notifications = receivers("of-forbid?schedule")
	forbid.Notifications.Receivers[0].Name = "of-forbid"
	forbid.Notifications.Receivers[0].Events = []batchv1alpha1.EventType{batchv1alpha1.EventRunCompleted, batchv1alpha1.EventRunPermanentlyFailed}
	for name, spec := range map[string]batchv1alpha1.ScheduledJobSpec{"forbid": forbid, "allow": allow} {
		l.create(&batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: name}, Spec: spec})
	}
}

// quieten suspends every schedule.
func (l *load) quieten(ctx context.Context) {
	for _, sj := range seen[*batchv1alpha1.ScheduledJob](l.seen) {
		l.eventually("schedule "+sj.Name+" is suspended", func() bool {
			step, cancel := context.WithTimeout(ctx, requestTimeout)
			defer cancel()
			return client.IgnoreNotFound(l.patch(step, sj, `{"spec":{"suspend":true}}`)) == nil
		})
	}
}

func retries() *batchv1alpha1.RetryPolicy {
	return &batchv1alpha1.RetryPolicy{MaxRetries: ptr.To[int32](2), BaseDelaySeconds: ptr.To[int32](1), MaxDelaySeconds: ptr.To[int32](2)}
}

func (l *load) httpWork(queue string, d demand) *batchv1alpha1.JobRunTemplateSpec {
	return &batchv1alpha1.JobRunTemplateSpec{
		Queue: queue, RetryPolicy: retries(), TimeoutSeconds: ptr.To(int64(callTimeout / time.Second)),
		Work: &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: l.server.address(d)}},
	}
}

func (l *load) jobWork(queue string, takes time.Duration, exit int, policy batchv1alpha1.RecoveryPolicy) *batchv1alpha1.JobRunTemplateSpec {
	template := batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			fakekubelet.AnnotationRunsFor: takes.String(), fakekubelet.AnnotationExitCode: fmt.Sprint(exit),
		}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.org/work"}}},
	}}}
	return &batchv1alpha1.JobRunTemplateSpec{
		Queue: queue, RetryPolicy: retries(), RecoveryPolicy: policy, Work: &batchv1alpha1.Work{Job: &batchv1alpha1.JobWork{Template: template}},
	}
}

// template is some work: calls and pods that end well, that fail once or always, and calls that hang.
func (l *load) template(r *rand.Rand) *batchv1alpha1.JobRunTemplateSpec {
	queue := []string{queueOne, queueTwo, queueMixed}[r.IntN(3)]
	takes := between(r, 30*time.Millisecond, 900*time.Millisecond)
	fails := max(0, r.IntN(6)-2) // half never, the others once, twice or always
	var t *batchv1alpha1.JobRunTemplateSpec
	switch r.IntN(10) {
	case 0:
		t = l.httpWork(queue, demand{hangs: true})
	case 1, 2, 3, 4:
		t = l.httpWork(queue, demand{takes: takes, fails: fails})
	default:
		policy := []batchv1alpha1.RecoveryPolicy{"", batchv1alpha1.RecoveryFail, batchv1alpha1.RecoveryAdopt, batchv1alpha1.RecoveryAdopt}[r.IntN(4)]
		t = l.jobWork(queue, 3*takes, min(1, fails/2), policy)
	}
	if queue == queueMixed {
		t.Type = []string{"", "narrow", "wide"}[r.IntN(3)]
		if r.IntN(2) == 0 {
			t.Claims = []batchv1alpha1.ResourceClaim{{Name: "gpu", Count: 1}}
		}
	}
	t.Priority = ptr.To(int32(r.IntN(3)))
	return t
}

func (l *load) single(ctx context.Context, r *rand.Rand, n int) {
	run := &batchv1alpha1.JobRun{}
	run.Spec.JobRunTemplateSpec = *l.template(r)
	l.make(ctx, fmt.Sprintf("run-%d", n), run)
}

// hang makes a run whose calls hang.
func (l *load) hang(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	run := &batchv1alpha1.JobRun{}
	run.Spec.JobRunTemplateSpec = *l.httpWork(queueCalls, demand{hangs: true})
	l.make(ctx, fmt.Sprintf("hang-%d", l.hung.Add(1)), run)
}

func (l *load) group(ctx context.Context, r *rand.Rand, n int) {
	group := &batchv1alpha1.JobGroup{}
	group.Spec.Mode = []batchv1alpha1.GroupMode{batchv1alpha1.GroupSequential, batchv1alpha1.GroupParallel}[r.IntN(2)]
	group.Spec.OnFailure = []batchv1alpha1.GroupFailurePolicy{batchv1alpha1.GroupStop, batchv1alpha1.GroupContinue, batchv1alpha1.GroupSkip}[r.IntN(3)]
	for i := range 3 {
		group.Spec.Members = append(group.Spec.Members, batchv1alpha1.GroupMember{Name: fmt.Sprintf("m%d", i), RunTemplate: *l.template(r)})
	}
	l.make(ctx, fmt.Sprintf("group-%d", n), group)
}

func (l *load) oneTime(ctx context.Context, r *rand.Rand, n int) {
	once := &batchv1alpha1.ScheduledJob{}
	once.Spec.RunAt = ptr.To(metav1.NewTime(time.Now().Add(between(r, -time.Second, 4*time.Second)).Truncate(time.Second)))
	once.Spec.RunTemplate = l.template(r)
	l.make(ctx, fmt.Sprintf("once-%d", n), once)
}

// retryByHand tries a chain again that has failed for good.
func (l *load) retryByHand(ctx context.Context, r *rand.Rand, n int) {
	root := choose(r, seen[*batchv1alpha1.JobRun](l.seen), func(run *batchv1alpha1.JobRun) bool {
		return run.Status.Chain != nil && meta.IsStatusConditionTrue(run.Status.Conditions, batchv1alpha1.ConditionFailed)
	})
	if root != nil {
		retry := &batchv1alpha1.JobRun{}
		retry.Spec.RetryOf = root.Status.Chain.LatestName
		l.make(ctx, fmt.Sprintf("again-%d", n), retry)
	}
}

func (l *load) cancel(ctx context.Context, r *rand.Rand, _ int) {
	run := choose(r, seen[*batchv1alpha1.JobRun](l.seen), func(run *batchv1alpha1.JobRun) bool {
		return !run.Status.Phase.Terminal() && !run.Spec.Cancel
	})
	if run != nil {
		_ = l.patch(ctx, run, `{"spec":{"cancel":true}}`)
	}
}

// remove deletes a run that waits, as far as is known.
func (l *load) remove(ctx context.Context, r *rand.Rand, _ int) {
	run := choose(r, seen[*batchv1alpha1.JobRun](l.seen), func(run *batchv1alpha1.JobRun) bool {
		return run.Status.Phase == batchv1alpha1.JobRunQueued
	})
	if run != nil {
		l.mu.Lock()
		l.deleted = append(l.deleted, run.UID)
		l.mu.Unlock()
		_ = l.client.Delete(ctx, run.DeepCopy(), client.Preconditions{UID: &run.UID})
	}
}

// slowNode makes pods that are to end live on for a while.
func (l *load) slowNode(_ context.Context, r *rand.Rand, _ int) {
	length := between(r, 2*time.Second, 6*time.Second)
	l.holders.Go(func() {
		kubelet.HoldTermination(l.ns)
		wait(length, nil)
		kubelet.ReleaseTermination(l.ns)
	})
}

// choose returns one of those that fit, the zero value if none does.
func choose[T client.Object](r *rand.Rand, all []T, fits func(T) bool) T {
	var fitting []T
	for _, o := range all {
		if fits(o) {
			fitting = append(fitting, o)
		}
	}
	if len(fitting) == 0 {
		var none T
		return none
	}
	return fitting[r.IntN(len(fitting))]
}
