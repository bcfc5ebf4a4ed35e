// SPDX-License-Identifier: Apache-2.0

package fakekubelet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestNextStep(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	deleted := func(p *corev1.Pod) {
		p.DeletionTimestamp = &metav1.Time{Time: now}
		p.DeletionGracePeriodSeconds = ptr.To[int64](30)
	}
	bound := func(p *corev1.Pod) { p.Spec.NodeName = "n" }
	phase := func(phase corev1.PodPhase) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.Phase = phase } }
	running := phase(corev1.PodRunning)
	type change = func(*corev1.Pod)

	for name, c := range map[string]struct {
		pod       []change
		behaviour behaviour
		held      bool
		want      step
		wantAfter time.Duration
	}{
		"a new pod is bound":                                        {want: stepBind},
		"a gated pod is left to whoever gated it":                   {pod: []change{func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }}, want: stepNone},
		"a pod of another node is not ours":                         {pod: []change{func(p *corev1.Pod) { p.Spec.NodeName = "other" }, deleted}, want: stepNone},
		"a bound pod runs":                                          {pod: []change{bound}, want: stepRun},
		"a pod that cannot start shows why":                         {pod: []change{bound}, behaviour: behaviour{waiting: "ImagePullBackOff"}, want: stepWait},
		"a pod that shows why it cannot start is left":              {pod: []change{bound, func(p *corev1.Pod) { p.Status.ContainerStatuses = make([]corev1.ContainerStatus, 1) }}, behaviour: behaviour{waiting: "ImagePullBackOff"}, want: stepNone},
		"a pod that runs for no time ends":                          {pod: []change{bound, running}, want: stepEnd},
		"a pod that runs for 3 s is asked again after what is left": {pod: []change{bound, running}, behaviour: behaviour{runsFor: 3 * time.Second}, want: stepNone, wantAfter: 2 * time.Second},
		"a pod that runs for 1 s ends after it":                     {pod: []change{bound, running}, behaviour: behaviour{runsFor: time.Second}, want: stepEnd},
		"an endless pod goes on":                                    {pod: []change{bound, running}, behaviour: behaviour{endless: true}, want: stepNone},
		"a terminating pod is killed":                               {pod: []change{bound, running, deleted}, behaviour: behaviour{endless: true}, want: stepKill},
		"a terminating pod that is held lives on":                   {pod: []change{bound, running, deleted}, held: true, want: stepNone},
		"a terminating pod that was never bound goes, held or not":  {pod: []change{deleted}, held: true, want: stepKill},
		"an ended pod stays":                                        {pod: []change{bound, phase(corev1.PodFailed)}, want: stepNone},
		"a terminating pod that has ended is removed":               {pod: []change{bound, phase(corev1.PodFailed), deleted}, want: stepRemove},
		"a pod deleted after its end is left to the API server":     {pod: []change{bound, phase(corev1.PodSucceeded), deleted, func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = ptr.To[int64](0) }}, want: stepNone},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}
			for _, change := range c.pod {
				change(pod)
			}
			got, after := nextStep(pod, c.behaviour, "n", c.held, now.Add(-time.Second), now)
			if got != c.want || after != c.wantAfter {
				t.Errorf("next step = %q after %v, want %q after %v", got, after, c.want, c.wantAfter)
			}
		})
	}
}

func TestExitCodesAreOfTheFirstContainerOrByName(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}, {Name: "side"}}}}
	for value, want := range map[string]map[string]int32{
		"":              {},
		"3":             {"main": 3},
		"side=4":        {"side": 4},
		"main=1,side=2": {"main": 1, "side": 2},
	} {
		pod.Annotations = map[string]string{AnnotationExitCode: value}
		b, err := behaviourOf(pod)
		if err != nil {
			t.Fatalf("%q: %v", value, err)
		}
		if len(b.exitCodes) != len(want) || b.exitCodes["main"] != want["main"] || b.exitCodes["side"] != want["side"] {
			t.Errorf("%q means %v, want %v", value, b.exitCodes, want)
		}
	}
}

func TestAnnotationsThatCannotBeReadAreErrors(t *testing.T) {
	for _, annotations := range []map[string]string{
		{AnnotationExitCode: "three"},
		{AnnotationRunsFor: "for a while"},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
		pod.Annotations = annotations
		if _, err := behaviourOf(pod); err == nil {
			t.Errorf("%v was accepted", annotations)
		}
	}
}
