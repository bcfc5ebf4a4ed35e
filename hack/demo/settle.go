// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// announced: every run that has ended was announced to the receiver of the queue, those before the crash included.
func (s *story) announced(ctx context.Context) error {
	s.say.step("What the queue's receiver was told")
	runs, err := s.runs(ctx)
	if err != nil {
		return err
	}
	ended := slices.DeleteFunc(runs, func(r batchv1alpha1.JobRun) bool { return r.Spec.Queue == chatName || !r.Status.Phase.Terminal() })
	told := map[string]int{}
	err = s.await(ctx, fmt.Sprintf("announcements of %d runs", len(ended)), func(context.Context) (string, error) {
		log, err := s.server.log.entries()
		if err != nil {
			return "", err
		}
		clear(told)
		for _, r := range ended {
			event := "job.run." + strings.ToLower(string(r.Status.Phase))
			heard := log.announcements().where(func(e entry) bool { return e.UID == string(r.UID) && e.Type == event })
			if len(heard) == 0 {
				return fmt.Sprintf("%s of %s was not received", event, r.Name), nil
			}
			told[event]++
		}
		return "", nil
	})
	if err != nil {
		return err
	}
	s.say.claim("every run that has ended was announced: %v", told)
	return nil
}

// end checks what must hold of the whole, and shows it.
func (s *story) end(ctx context.Context) error {
	log, err := s.server.log.entries()
	if err != nil {
		return err
	}
	calls := map[string]int{}
	most := 0
	for _, e := range log.work() {
		calls[e.Run]++
		if calls[e.Run] > 1 {
			return fmt.Errorf("run %s has called more than once", e.Run)
		}
		most = max(most, e.AtOnce)
	}
	queue := &batchv1alpha1.JobQueue{}
	if err := s.client.Get(ctx, s.key(queueName), queue); err != nil {
		return err
	}
	if limit := int(*queue.Spec.Concurrency.Limit); most > limit {
		return fmt.Errorf("%d calls were in flight at once, and the limit of the queue is %d", most, limit)
	}
	s.say.claim("%d runs have called, none of them twice, and never more than %d at once (the limit of queue %s is %d)",
		len(calls), most, queueName, *queue.Spec.Concurrency.Limit)
	s.say.step("How it stands")
	s.say.command("get sj,jq,dr,jr")
	return s.kubectl(ctx, "", "get", "sj,jq,dr,jr")
}
