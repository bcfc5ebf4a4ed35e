// SPDX-License-Identifier: Apache-2.0

package group

import (
	"testing"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestWhoseTurnItIs(t *testing.T) {
	type phases []batchv1alpha1.GroupMemberPhase
	for name, c := range map[string]struct {
		members              phases
		sequential, parallel []string
	}{
		"at the beginning":                       {phases{waiting, waiting, waiting}, []string{"a"}, []string{"a", "b", "c"}},
		"while the first waits":                  {phases{queued, waiting, waiting}, nil, []string{"b", "c"}},
		"while the first is at work":             {phases{running, waiting, waiting}, nil, []string{"b", "c"}},
		"when the first has completed":           {phases{completed, waiting, waiting}, []string{"b"}, []string{"b", "c"}},
		"when the first has failed":              {phases{failed, waiting, waiting}, []string{"b"}, []string{"b", "c"}},
		"when a person has cancelled the first":  {phases{aborted, waiting, waiting}, []string{"b"}, []string{"b", "c"}},
		"when the first had nothing to do":       {phases{skipped, waiting, waiting}, []string{"b"}, []string{"b", "c"}},
		"when only the last is left":             {phases{completed, skipped, running}, nil, nil},
		"when all have settled":                  {phases{completed, failed, aborted}, nil, nil},
		"when a backup has them out of order":    {phases{waiting, running, waiting}, nil, []string{"a", "c"}},
		"when a backup has the last one settled": {phases{waiting, waiting, completed}, []string{"a"}, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var members []Standing
			for i, p := range c.members {
				members = append(members, Standing{GroupMemberStatus: batchv1alpha1.GroupMemberStatus{Name: string("abc"[i]), Phase: p}})
			}
			g.Expect(turn(batchv1alpha1.GroupSequential, members)).To(Equal(c.sequential))
			g.Expect(turn("", members)).To(Equal(c.sequential), "the default")
			g.Expect(turn(batchv1alpha1.GroupParallel, members)).To(Equal(c.parallel))
		})
	}
}
