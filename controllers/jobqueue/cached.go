// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// cached is what the cache shows of one namespace. What it has not is as good as unknown: an event will tell.
type cached struct {
	reader    client.Reader
	namespace string
}

// Run returns a run, nil if the cache has none.
func (c cached) Run(name string) *batchv1alpha1.JobRun { return get(c, name, &batchv1alpha1.JobRun{}) }

// ScheduledJob returns a ScheduledJob, nil if the cache has none.
func (c cached) ScheduledJob(name string) *batchv1alpha1.ScheduledJob {
	return get(c, name, &batchv1alpha1.ScheduledJob{})
}

// Group returns a JobGroup, nil if the cache has none.
func (c cached) Group(name string) *batchv1alpha1.JobGroup {
	return get(c, name, &batchv1alpha1.JobGroup{})
}

func get[T client.Object](c cached, name string, into T) T {
	if err := c.reader.Get(context.Background(), types.NamespacedName{Namespace: c.namespace, Name: name}, into); err != nil {
		var none T
		return none
	}
	return into
}
