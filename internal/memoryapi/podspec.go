// SPDX-License-Identifier: Apache-2.0

package memoryapi

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// defaultPodSpec fills in what a pod, and a template of pods, is taken to mean.
func defaultPodSpec(s *corev1.PodSpec) {
	orDefault(&s.DNSPolicy, corev1.DNSClusterFirst)
	orDefault(&s.RestartPolicy, corev1.RestartPolicyAlways)
	orDefault(&s.SchedulerName, corev1.DefaultSchedulerName)
	if s.ServiceAccountName == "" {
		s.ServiceAccountName = s.DeprecatedServiceAccount
	}
	s.DeprecatedServiceAccount = s.ServiceAccountName
	if s.SecurityContext == nil {
		s.SecurityContext = &corev1.PodSecurityContext{}
	}
	if s.TerminationGracePeriodSeconds == nil {
		s.TerminationGracePeriodSeconds = ptr.To[int64](corev1.DefaultTerminationGracePeriodSeconds)
	}
	for i := range s.InitContainers {
		defaultContainer(&s.InitContainers[i])
	}
	for i := range s.Containers {
		defaultContainer(&s.Containers[i])
	}
	for i := range s.Volumes {
		if secret := s.Volumes[i].Secret; secret != nil && secret.DefaultMode == nil {
			secret.DefaultMode = ptr.To(corev1.SecretVolumeSourceDefaultMode)
		}
		if config := s.Volumes[i].ConfigMap; config != nil && config.DefaultMode == nil {
			config.DefaultMode = ptr.To(corev1.ConfigMapVolumeSourceDefaultMode)
		}
	}
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func defaultContainer(c *corev1.Container) {
	pull := corev1.PullIfNotPresent
	if latest(c.Image) {
		pull = corev1.PullAlways
	}
	orDefault(&c.ImagePullPolicy, pull)
	orDefault(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	orDefault(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		orDefault(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil {
			orDefault(&from.FieldRef.APIVersion, "v1")
		}
	}
}

// latest says whether an image is that of the tag latest, which is meant by no tag and no digest.
func latest(image string) bool {
	if image == "" || strings.Contains(image, "@") {
		return false
	}
	last := image[strings.LastIndex(image, "/")+1:]
	_, tag, found := strings.Cut(last, ":")
	return !found || tag == "latest"
}

// validatePodSpec checks what the product's templates and their users may get wrong. It does not know all the rules of pods.
func validatePodSpec(s *corev1.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(s.Containers) == 0 {
		errs = append(errs, field.Required(at.Child("containers"), ""))
	}
	seen := map[string]bool{}
	for i := range s.InitContainers {
		errs = append(errs, validateContainer(&s.InitContainers[i], seen, at.Child("initContainers").Index(i))...)
	}
	for i := range s.Containers {
		errs = append(errs, validateContainer(&s.Containers[i], seen, at.Child("containers").Index(i))...)
	}
	if d := s.ActiveDeadlineSeconds; d != nil && *d < 1 {
		errs = append(errs, field.Invalid(at.Child("activeDeadlineSeconds"), *d, "must be positive"))
	}
	return errs
}

func validateContainer(c *corev1.Container, seen map[string]bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case c.Name == "":
		errs = append(errs, field.Required(at.Child("name"), ""))
	case seen[c.Name]:
		errs = append(errs, field.Duplicate(at.Child("name"), c.Name))
	default:
		for _, message := range validation.IsDNS1123Label(c.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), c.Name, message))
		}
	}
	seen[c.Name] = true
	if c.Image == "" {
		errs = append(errs, field.Required(at.Child("image"), ""))
	}
	return errs
}
