// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"maps"
	"testing"

	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestLimitsOf(t *testing.T) {
	type concurrency = batchv1alpha1.QueueConcurrency
	crawl := batchv1alpha1.TypeConcurrency{Name: "crawl", Limit: ptr.To[int32](6)}
	story := batchv1alpha1.TypeConcurrency{Name: "story"}
	gpu := batchv1alpha1.QueueResource{Name: "gpu", Capacity: 2}
	for _, c := range []struct {
		name string
		spec batchv1alpha1.JobQueueSpec
		want Limits
	}{
		{"a queue that says nothing has one slot", batchv1alpha1.JobQueueSpec{}, Limits{Limit: 1}},
		{
			"a limit of 0 is one",
			batchv1alpha1.JobQueueSpec{Concurrency: &concurrency{Limit: ptr.To[int32](0)}, Suspend: true},
			Limits{Suspend: true},
		},
		{
			"a queue that bounds a type has no limit of its own",
			batchv1alpha1.JobQueueSpec{Concurrency: &concurrency{Types: []batchv1alpha1.TypeConcurrency{crawl, story}}},
			Limits{Limit: Unlimited, Types: map[string]int{"crawl": 6, "story": Unlimited}},
		},
		{
			"a queue that only lists types has one slot",
			batchv1alpha1.JobQueueSpec{Concurrency: &concurrency{Types: []batchv1alpha1.TypeConcurrency{story}}},
			Limits{Limit: 1, Types: map[string]int{"story": Unlimited}},
		},
		{
			"a queue with resources has no limit of its own",
			batchv1alpha1.JobQueueSpec{Concurrency: &concurrency{Resources: []batchv1alpha1.QueueResource{gpu}}},
			Limits{Limit: Unlimited, Resources: map[string]int{"gpu": 2}},
		},
		{
			"all limits are in force together",
			batchv1alpha1.JobQueueSpec{
				Concurrency: &concurrency{Limit: ptr.To[int32](3), Types: []batchv1alpha1.TypeConcurrency{crawl}, Resources: []batchv1alpha1.QueueResource{gpu}},
				Direct:      &batchv1alpha1.QueueDirect{MaxConsecutive: ptr.To[int32](4)},
			},
			Limits{Limit: 3, Types: map[string]int{"crawl": 6}, Resources: map[string]int{"gpu": 2}, MaxConsecutive: 4},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want.MaxConsecutive == 0 {
				c.want.MaxConsecutive = DefaultMaxConsecutive
			}
			got := LimitsOf(&batchv1alpha1.JobQueue{Spec: c.spec})
			if got.Limit != c.want.Limit || got.Suspend != c.want.Suspend || got.MaxConsecutive != c.want.MaxConsecutive ||
				!maps.Equal(got.Types, c.want.Types) || !maps.Equal(got.Resources, c.want.Resources) || got.Startup != (Startup{}) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}
