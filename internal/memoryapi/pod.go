// SPDX-License-Identifier: Apache-2.0

package memoryapi

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podRules are those of pods.
var podRules = builtin[*corev1.Pod]{
	gvk: podKind, namespaced: true, unconditional: true,
	prepareCreate: func(p *corev1.Pod) {
		p.Generation = 1
		p.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qualityOf(&p.Spec)}
	},
	prepareUpdate: func(p, old *corev1.Pod) {
		p.Status = old.Status
		if !apiequality.Semantic.DeepEqual(p.Spec, old.Spec) {
			p.Generation = old.Generation + 1
		}
	},
	validate: func(p *corev1.Pod) field.ErrorList { return validatePodSpec(&p.Spec, field.NewPath("spec")) },
	validateUpdate: func(p, old *corev1.Pod) field.ErrorList {
		errs := validatePodSpec(&p.Spec, field.NewPath("spec"))
		mutable := p.Spec.DeepCopy()
		for i := range mutable.Containers {
			if i < len(old.Spec.Containers) {
				mutable.Containers[i].Image = old.Spec.Containers[i].Image
			}
		}
		mutable.ActiveDeadlineSeconds, mutable.Tolerations = old.Spec.ActiveDeadlineSeconds, old.Spec.Tolerations
		was, now := old.Spec.ActiveDeadlineSeconds, p.Spec.ActiveDeadlineSeconds
		if was != nil && (now == nil || *now > *was) {
			errs = append(errs, field.Invalid(field.NewPath("spec", "activeDeadlineSeconds"), now, "can only become less"))
		}
		if !apiequality.Semantic.DeepEqual(mutable, &old.Spec) {
			errs = append(errs, field.Forbidden(field.NewPath("spec"), "this part of a pod cannot change"))
		}
		return errs
	},
}

// podStatusRules are those of what a kubelet reports.
var podStatusRules = builtin[*corev1.Pod]{
	gvk: podKind, namespaced: true, unconditional: true,
	prepareUpdate: func(p, old *corev1.Pod) {
		p.Spec = old.Spec
		p.OwnerReferences, p.DeletionTimestamp = old.OwnerReferences, nil
		orDefault(&p.Status.QOSClass, old.Status.QOSClass)
		orDefault(&p.Status.ObservedGeneration, old.Status.ObservedGeneration)
	},
	validateUpdate: func(p, old *corev1.Pod) field.ErrorList {
		return apivalidation.ValidateImmutableField(p.Status.QOSClass, old.Status.QOSClass, field.NewPath("status", "qosClass"))
	},
}

// defaultPod fills in what a pod is taken to mean, and what admission adds to every pod of a plain cluster.
func defaultPod(p *corev1.Pod) {
	defaultPodSpec(&p.Spec)
	if p.Spec.EnableServiceLinks == nil {
		p.Spec.EnableServiceLinks = ptr.To(corev1.DefaultEnableServiceLinks)
	}
	if p.Spec.Priority == nil {
		p.Spec.Priority = ptr.To[int32](0)
		p.Spec.PreemptionPolicy = ptr.To(corev1.PreemptLowerPriority)
	}
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerate(&p.Spec, key)
	}
	for i := range p.Spec.Containers {
		r := &p.Spec.Containers[i].Resources
		for name, limit := range r.Limits {
			if _, ok := r.Requests[name]; ok {
				continue
			}
			if r.Requests == nil {
				r.Requests = corev1.ResourceList{}
			}
			r.Requests[name] = limit.DeepCopy()
		}
	}
}

// tolerate lets a pod stay five minutes on a node that is in trouble, unless it says how long.
func tolerate(s *corev1.PodSpec, key string) {
	const patience = 300
	for _, t := range s.Tolerations {
		if (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "") {
			return
		}
	}
	s.Tolerations = append(s.Tolerations, corev1.Toleration{
		Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](patience),
	})
}

// qualityOf is the quality of service of a pod: guaranteed if every container has limits of CPU and memory and asks for as
// much, best effort if none says anything.
func qualityOf(s *corev1.PodSpec) corev1.PodQOSClass {
	some, all := false, true
	for _, c := range s.Containers {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, asked := c.Resources.Requests[name]
			limit, limited := c.Resources.Limits[name]
			some = some || asked || limited
			all = all && asked && limited && request.Cmp(limit) == 0
		}
	}
	switch {
	case !some:
		return corev1.PodQOSBestEffort
	case all:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

// podGrace is how many seconds a pod has to end after it is asked to. One that runs on no node, or has ended, needs none.
func podGrace(o client.Object, options *metav1.DeleteOptions) int64 {
	p := as[*corev1.Pod](o)
	ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	if p.Spec.NodeName == "" || ended {
		return 0
	}
	seconds := ptr.Deref(p.Spec.TerminationGracePeriodSeconds, 0)
	if options.GracePeriodSeconds != nil {
		seconds = *options.GracePeriodSeconds
	}
	if seconds < 0 {
		return 1
	}
	return seconds
}

// podFields are what field selectors see of a pod.
func podFields(p *corev1.Pod) fields.Set {
	return fields.Set{
		"spec.nodeName": p.Spec.NodeName, "spec.restartPolicy": string(p.Spec.RestartPolicy), "spec.schedulerName": p.Spec.SchedulerName,
		"spec.serviceAccountName": p.Spec.ServiceAccountName, "spec.hostNetwork": strconv.FormatBool(p.Spec.HostNetwork),
		"status.phase": string(p.Status.Phase), "status.podIP": p.Status.PodIP, "status.nominatedNodeName": p.Status.NominatedNodeName,
	}
}
