// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/schedule"
)

const (
	// collisions is how many foreign objects are passed over under the names of a tick's run before it is given up for now.
	collisions = 5
	// nameLimit is the longest name of a run.
	nameLimit = 57
)

// errNamesTaken says that foreign objects have all the names that the run of a tick could have.
var errNamesTaken = errors.New("other objects have its name, and those it would take instead")

// fired is what a pass has fired.
type fired struct {
	// runs of the ticks, in their order.
	runs []firedRun
	// foreign counts the objects that were found in their way.
	foreign int32
	// failure of the first tick whose run could not be created; those behind it were not tried.
	failure error
}

type firedRun struct {
	tick schedule.Tick
	run  *batchv1alpha1.JobRun
}

// fire makes sure that there is a run for every tick that is to fire, in their order, up to the first that cannot be had.
func (s *scope) fire(ctx context.Context) fired {
	var f fired
	for _, tick := range s.plan.decision.Fire {
		run, foreign, err := s.ensure(ctx, tick.Time)
		if err != nil {
			f.failure = err
			break
		}
		f.foreign += foreign
		f.runs = append(f.runs, firedRun{tick: tick, run: run})
	}
	return f
}

// ensure returns the run of a tick, created now or earlier by whomever, and how many foreign objects are in its way.
func (s *scope) ensure(ctx context.Context, tick time.Time) (*batchv1alpha1.JobRun, int32, error) {
	for n := range int32(collisions + 1) {
		run := newRun(s.sj, tick, n)
		err := s.Client.Create(ctx, run)
		if err == nil {
			return run, n, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, 0, fmt.Errorf("run %s could not be created: %w", run.Name, err)
		}
		existing := &batchv1alpha1.JobRun{}
		if err := s.Live.Get(ctx, client.ObjectKeyFromObject(run), existing); err != nil {
			return nil, 0, fmt.Errorf("reading run %s, which exists already: %w", run.Name, err)
		}
		switch {
		case !isRunOf(existing, s.sj, tick):
		case leaving(existing, s.sj):
			return nil, 0, fmt.Errorf("run %s belongs to an earlier ScheduledJob %s and is to be deleted with it; the tick waits for that", run.Name, s.sj.Name)
		default:
			return existing, n, nil
		}
	}
	return nil, 0, fmt.Errorf("run %s could not be created: %w", schedule.RunName(s.sj.Name, tick), errNamesTaken)
}

// newRun builds the run of a tick. It has no owner if the ScheduledJob is to be deleted after the fire: that must not take
// the run along.
func newRun(sj *batchv1alpha1.ScheduledJob, tick time.Time, collision int32) *batchv1alpha1.JobRun {
	run := &batchv1alpha1.JobRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: sj.Namespace, Name: runName(sj.Name, tick, collision)},
		Spec: batchv1alpha1.JobRunSpec{
			JobRunTemplateSpec: *sj.Spec.RunTemplate.DeepCopy(),
			ScheduledJobRef:    &batchv1alpha1.ObjectName{Name: sj.Name},
			ScheduledTime:      ptr.To(metav1.NewTime(tick)),
		},
	}
	if run.Spec.Queue == "" {
		run.Spec.Queue = batchv1alpha1.DefaultQueue
	}
	if sj.Spec.TTLSecondsAfterFired == nil {
		run.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: batchv1alpha1.GroupVersion.String(),
			Kind:       "ScheduledJob",
			Name:       sj.Name,
			UID:        sj.UID,
			Controller: ptr.To(true),
		}}
	}
	return run
}

// isRunOf reports whether an existing object is the run of that tick, whoever created it. The ScheduledJob is known by its
// name: one that was deleted and made again has run what it ran before.
func isRunOf(r *batchv1alpha1.JobRun, sj *batchv1alpha1.ScheduledJob, tick time.Time) bool {
	return isTick(r) && r.Spec.ScheduledJobRef != nil && r.Spec.ScheduledJobRef.Name == sj.Name && r.Spec.ScheduledTime.Time.Equal(tick)
}

// runName returns the name of a tick's run when that many foreign objects have the names before it.
func runName(sj string, tick time.Time, collision int32) string {
	if collision == 0 {
		return schedule.RunName(sj, tick)
	}
	suffix := fmt.Sprintf("-%d-%d", tick.Unix(), collision)
	if room := nameLimit - len(suffix); len(sj) > room {
		sj = strings.TrimRight(sj[:room], "-.")
	}
	return sj + suffix
}

func isRunName(name, sj string, tick time.Time) bool {
	for n := range int32(collisions + 1) {
		if name == runName(sj, tick, n) {
			return true
		}
	}
	return false
}

// rejected reports whether the API server refused a run for what it is, so that trying again soon will not help: a quota,
// an admission rule, a name that is taken.
func rejected(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err) || errors.Is(err, errNamesTaken)
}
