// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
)

var (
	jobs = schema.GroupResource{Group: "batch", Resource: "jobs"}

	errInvalid = apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "j",
		field.ErrorList{field.Required(field.NewPath("spec", "template", "spec", "containers"), "")})
	errPolicy = apierrors.NewForbidden(jobs, "j", errors.New("images must come from our registry"))
	errQuota  = apierrors.NewForbidden(jobs, "j", errors.New("exceeded quota: q, requested: count/jobs.batch=1, used: count/jobs.batch=1, limited: count/jobs.batch=1"))
	errRight  = apierrors.NewForbidden(jobs, "", errors.New(`user "m" cannot create resource "jobs" in API group "batch" in the namespace "ns"`))
)

func errTerminating() error {
	err := apierrors.NewForbidden(jobs, "j", errors.New("unable to create new content in namespace ns because it is being terminated"))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
	return err
}

func TestWhatTheAPIServerWouldRefuseAgainIsFinal(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		message string
	}{
		"a template that is not valid":     {errInvalid, "spec.template.spec.containers"},
		"a template that cannot be read":   {apierrors.NewBadRequest("quantities must match"), "quantities must match"},
		"a template that is too large":     {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), "limit is 3145728"},
		"a template that a policy forbids": {errPolicy, "images must come from our registry"},
		"a namespace that is going":        {errTerminating(), "namespace ns is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			var rejected *executor.Rejected
			if !errors.As(creationError(c.err, aRun()), &rejected) {
				t.Fatalf("%v is not final", c.err)
			}
			if rejected.Reason != batchv1alpha1.ReasonInvalidWork || !strings.Contains(rejected.Message, c.message) {
				t.Errorf("rejected for %s: %s", rejected.Reason, rejected.Message)
			}
		})
	}
}

func TestWhatMayPassIsTriedAgain(t *testing.T) {
	for name, err := range map[string]error{
		"an exceeded quota":                   errQuota,
		"a manager without the right":         errRight,
		"an API server that is busy":          apierrors.NewTooManyRequests("later", 1),
		"a webhook that does not answer":      apierrors.NewInternalError(errors.New(`failed calling webhook "w"`)),
		"a request that ran out of time":      apierrors.NewTimeoutError("t", 1),
		"a server timeout":                    apierrors.NewServerTimeout(jobs, "create", 1),
		"a conflict":                          apierrors.NewConflict(jobs, "j", errors.New("changed")),
		"an API server that is shut down":     apierrors.NewServiceUnavailable("down"),
		"an expired credential":               apierrors.NewUnauthorized("expired"),
		"no answer":                           context.DeadlineExceeded,
		"a connection that broke":             errors.New("connection reset by peer"),
		"a status code nobody has heard of":   apierrors.NewGenericServerResponse(599, http.MethodPost, jobs, "j", "", 0, true),
		"a namespace that is not there (yet)": apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns"),
	} {
		t.Run(name, func(t *testing.T) {
			got := creationError(err, aRun())
			var rejected *executor.Rejected
			if errors.As(got, &rejected) || !errors.Is(got, err) {
				t.Errorf("%v became %#v", err, got)
			}
		})
	}
}

func TestALongRefusalIsCut(t *testing.T) {
	err := creationError(apierrors.NewBadRequest(strings.Repeat("ß", 100_000)), aRun())
	if n := len([]rune(err.Error())); n > 1000 {
		t.Errorf("message of %d characters", n)
	}
}
