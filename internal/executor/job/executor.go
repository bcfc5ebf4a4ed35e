// SPDX-License-Identifier: Apache-2.0

// Package jobwork executes Job work: for each run one batch/v1 Job, whose name and labels hold the run's UID. What the work
// came to is read from the Job and its pods alone, so that any manager can tell. Work is stopped by suspending the Job, never
// by deleting it: while its name is taken, a creation that is still on its way fails.
package jobwork

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/run"
)

// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;create;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list

// attempts bounds how often one call tries again after others changed the Job in between.
const attempts = 5

// errSealed: the run was given up by who sealed its Job, so the caller's picture of the run is out of date.
var errSealed = errors.New("it was suspended for good: the run has been given up in the meantime")

// Incarnation is this process among the managers.
type Incarnation interface {
	// Epoch waits until the process leads and returns its epoch.
	Epoch(ctx context.Context) (epoch.Epoch, error)
	// Check compares a stored epoch with the process's own (1: the stored one is higher) and ends the process if it is.
	Check(where, stored string) int
}

// Options are what an Executor needs. All but Traceparent are required.
type Options struct {
	// Client creates and patches Jobs, and reads them from the cache.
	Client client.Client
	// Live reads Jobs and pods past any cache.
	Live client.Reader
	// Self is this process.
	Self Incarnation
	// Traceparent is by which the work of a run joins the trace of its chain, "" for none. Default: none.
	Traceparent func(*batchv1alpha1.JobRun) string
}

// Executor executes Job work. Use New.
type Executor struct {
	Options
	made made
	pods podLists
}

var _ executor.Executor = (*Executor)(nil)

// New returns an Executor.
func New(o Options) *Executor { return &Executor{Options: o, pods: podLists{live: o.Live}} }

// Expect says that a claim for the run is on its way, and Start will be called.
func (e *Executor) Expect(uid types.UID) { e.made.expect(uid) }

// Forget drops what is kept in memory about a run, and takes Expect back.
func (e *Executor) Forget(uid types.UID) { e.made.forget(uid) }

// Start creates the Job of the run. A Job of that name that is there already is the run's own if it is owned by it: an
// earlier call whose answer was lost, or the Job of a run that was taken over, which carries the epoch of its first manager.
func (e *Executor) Start(ctx context.Context, r *batchv1alpha1.JobRun) error {
	job, err := e.create(ctx, r)
	if job == nil {
		e.made.forget(r.UID)
		return err
	}
	e.made.note(r.UID, job.UID)
	return nil
}

// create returns the Job that it has created for the run, nil if there was one.
func (e *Executor) create(ctx context.Context, r *batchv1alpha1.JobRun) (*batchv1.Job, error) {
	if workOf(r) == nil {
		return nil, invalid("the run has no Job work")
	}
	if r.DeletionTimestamp != nil {
		return nil, invalid("the run is being deleted")
	}
	me, err := e.Self.Epoch(ctx)
	if err != nil {
		return nil, err
	}
	job := e.build(r, me)
	err = e.Client.Create(ctx, job)
	switch {
	case err == nil:
		return job, nil
	case apierrors.IsAlreadyExists(err):
		return nil, e.started(ctx, r)
	default:
		return nil, creationError(err, r)
	}
}

// started reports by nil that the Job which has taken the name is the run's work, and not sealed.
func (e *Executor) started(ctx context.Context, r *batchv1alpha1.JobRun) error {
	job, err := e.job(ctx, r)
	switch {
	case err != nil:
		return err
	case job == nil:
		return fmt.Errorf("job %s/%s existed, and is gone", r.Namespace, Name(r))
	case !metav1.IsControlledBy(job, r):
		return invalid("a Job %s exists that is not of this run", job.Name)
	case job.Annotations[AnnotationSealed] != "":
		return fmt.Errorf("job %s/%s: %w", r.Namespace, job.Name, errSealed)
	default:
		return nil
	}
}

// Look reads the Job and the pods of the run live, but for a Job that is known to be over. While a claim of this process is on
// its way to Start, the work may begin at any moment, and there is nothing to read.
func (e *Executor) Look(ctx context.Context, r *batchv1alpha1.JobRun) (executor.Evidence, error) {
	if e.made.expected(r.UID) {
		me, err := e.Self.Epoch(ctx)
		if err != nil {
			return executor.Evidence{}, err
		}
		if run.Epoch(r) == me.String() { // else another manager won the claim
			return executor.Evidence{Life: executor.Alive, Detail: "the Job is about to be created", RecheckAfter: recheckAfter}, nil
		}
	}
	var s Sight
	var err error
	if s.Job = e.over(ctx, r); s.Job != nil {
		s.Pods, err = e.podsOf(ctx, r)
	} else {
		s, err = e.see(ctx, r)
	}
	if err != nil {
		return executor.Evidence{}, err
	}
	return Judge(r, s), nil
}

// Seal puts a suspended placeholder where the Job of the run would be, if there is none.
func (e *Executor) Seal(ctx context.Context, r *batchv1alpha1.JobRun) (executor.Evidence, error) {
	return e.settle(ctx, r, func(*batchv1.Job) bool { return true })
}

// Stop suspends the Job of the run, unless it is finished; where there is none it puts a suspended placeholder. The Job
// controller then ends the pods.
func (e *Executor) Stop(ctx context.Context, r *batchv1alpha1.JobRun) (executor.Evidence, error) {
	return e.settle(ctx, r, func(job *batchv1.Job) bool { return finished(job) != nil || sealed(job) })
}

// settle sees to it that the run has a Job and that it is as wanted, by suspending it, and judges what there is then. What
// others do to the Job in between makes it look again.
func (e *Executor) settle(ctx context.Context, r *batchv1alpha1.JobRun, wanted func(*batchv1.Job) bool) (executor.Evidence, error) {
	closed := false
	for range attempts {
		s, err := e.see(ctx, r)
		if err != nil {
			return executor.Evidence{}, err
		}
		s.Closed = s.Closed || closed
		switch {
		case s.Job == nil && s.Closed, s.Job != nil && wanted(s.Job):
			return Judge(r, s), nil
		case s.Job == nil:
			closed, err = e.occupy(ctx, r)
		default:
			err = e.suspend(ctx, s.Job)
			if err == nil && has(s.Job, batchv1.JobSuspended) {
				return resumed(s.Job), nil
			}
		}
		if err != nil {
			return executor.Evidence{}, err
		}
	}
	return executor.Evidence{}, fmt.Errorf("job %s/%s changed under every one of %d attempts", r.Namespace, Name(r), attempts)
}

// occupy creates the placeholder. It returns true once no Job can come into being for the run any more, and false if one
// has. Besides the name's being taken there are two cases of the former: the namespace is going, which is irrevocable; or
// the API server refuses the placeholder and the run's own Job alike, and so would refuse a late creation of it. The
// latter is tried suspended: a policy that refuses our template may accept the user's.
func (e *Executor) occupy(ctx context.Context, r *batchv1alpha1.JobRun) (bool, error) {
	me, err := e.Self.Epoch(ctx)
	if err != nil {
		return false, err
	}
	closed, err := e.place(ctx, Placeholder(r, me))
	if refusedForGood(err) && workOf(r) != nil {
		closed, err = e.place(ctx, suspended(e.build(r, me)))
	}
	if refusedForGood(err) {
		return true, nil
	}
	return closed, err
}

func (e *Executor) place(ctx context.Context, job *batchv1.Job) (bool, error) {
	err := e.Client.Create(ctx, job)
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return true, nil
	case apierrors.IsAlreadyExists(err):
		return false, nil
	default:
		return false, fmt.Errorf("creating a placeholder for Job %s/%s: %w", job.Namespace, job.Name, err)
	}
}

// suspend stops a Job for good. The resourceVersion sees to it that it is the Job that was read and judged. The epoch is
// ours from now on, so that an earlier manager which meets the Job learns that it was deposed.
func (e *Executor) suspend(ctx context.Context, job *batchv1.Job) error {
	me, err := e.Self.Epoch(ctx)
	if err != nil {
		return err
	}
	next := job.DeepCopy()
	next.Spec.Suspend = ptr.To(true)
	next.Annotations = merged(next.Annotations, map[string]string{
		AnnotationSealed:              SealedStopped,
		batchv1alpha1.AnnotationEpoch: me.String(),
	})
	err = e.Client.Patch(ctx, next, client.MergeFromWithOptions(job, client.MergeFromWithOptimisticLock{}))
	if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // looked at again
	}
	return fmt.Errorf("suspending Job %s/%s: %w", job.Namespace, job.Name, err)
}

// see reads the Job, then the pods. A Job of the run's name that is not the run's is none of its work, and in the way of any.
func (e *Executor) see(ctx context.Context, r *batchv1alpha1.JobRun) (Sight, error) {
	job, err := e.job(ctx, r)
	if err != nil {
		return Sight{}, err
	}
	var s Sight
	if job != nil && metav1.IsControlledBy(job, r) {
		s.Job = job
	} else {
		s.Closed = job != nil
	}
	s.Pods, err = e.podsOf(ctx, r)
	return s, err
}

// job reads the Job of the run's name live; nil if there is none. An error also means that its epoch ends this process.
func (e *Executor) job(ctx context.Context, r *batchv1alpha1.JobRun) (*batchv1.Job, error) {
	job := &batchv1.Job{}
	err := e.Live.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: Name(r)}, job)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Job %s/%s: %w", r.Namespace, Name(r), err)
	}
	where := fmt.Sprintf("job %s/%s", job.Namespace, job.Name)
	if stored := job.Annotations[batchv1alpha1.AnnotationEpoch]; metav1.IsControlledBy(job, r) && e.Self.Check(where, stored) > 0 {
		return nil, fmt.Errorf("%s is of the later epoch %s", where, stored)
	}
	return job, nil
}

func (e *Executor) podsOf(ctx context.Context, r *batchv1alpha1.JobRun) ([]corev1.Pod, error) {
	pods, err := e.pods.of(ctx, r.Namespace, r.UID)
	if err != nil {
		return nil, fmt.Errorf("listing the pods of run %s/%s: %w", r.Namespace, r.Name, err)
	}
	return pods, nil
}
