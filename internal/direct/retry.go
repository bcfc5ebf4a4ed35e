// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/retry"
)

const (
	// maxRunName is the longest name of a run.
	maxRunName = 57
	// generated is how many characters the API server adds to a generateName.
	generated = 5
	// keyDigits of the hash of an Idempotency-Key are part of a run's name.
	keyDigits = 16
)

// created is the answer to a retry.
type created struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// retry makes a manual retry of a run, whose only content is the name of that run. The controllers judge it again when they see
// it; what is refused here would be refused there.
func (x *exchange) retry(ctx context.Context) *problem {
	if p := x.rights.mayCreate(ctx, x.user, x.to.namespace, "jobruns"); p != nil {
		return p
	}
	key, p := readKey(x.r.Header)
	if p != nil {
		return p
	}
	if !x.stay() { // from here on it is soon done
		return shuttingDown()
	}
	ctx, cancel := context.WithTimeout(ctx, x.timing.call)
	defer cancel()
	manual := manualRetry(x.user.Username, x.to, key)
	made, p := x.made(ctx, manual)
	if p == nil && made {
		respond(x.w, http.StatusOK, created{manual.Name, manual.Namespace})
		return nil
	}
	if p == nil {
		p = x.objection(ctx, manual)
	}
	if p != nil {
		return p
	}
	return x.makeRetry(ctx, manual)
}

// manualRetry is the run to be made. With a key it has the same name each time.
func manualRetry(user string, to route, key string) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: to.namespace}}
	r.Spec.RetryOf = to.run
	const mark = "-retry-"
	if key == "" {
		r.GenerateName = shortened(to.run, maxRunName-len(mark)-generated) + mark
	} else {
		r.Name = shortened(to.run, maxRunName-len(mark)-keyDigits) + mark + hashOf(user, to.namespace, to.run, key)[:keyDigits]
	}
	return r
}

func shortened(name string, n int) string {
	return strings.TrimRight(name[:min(len(name), n)], "-.")
}

// made says whether a retry with the same key was made already.
func (x *exchange) made(ctx context.Context, manual *batchv1alpha1.JobRun) (bool, *problem) {
	if manual.Name == "" {
		return false, nil
	}
	found, p := x.run(ctx, manual.Namespace, manual.Name)
	if found == nil || p != nil {
		return false, p
	}
	if found.Spec.RetryOf != manual.Spec.RetryOf || found.Spec.Chain != nil {
		return false, refuse(http.StatusConflict, "NameTaken", "run %s, which is no such retry, has the name that goes with this %s; use another key", found.Name, HeaderIdempotencyKey)
	}
	return true, nil
}

// objection says why the retry is refused. The run and what came after it are read live: a retry that is overlooked would be
// doubled.
func (x *exchange) objection(ctx context.Context, manual *batchv1alpha1.JobRun) *problem {
	missing := refuse(http.StatusNotFound, "RunNotFound", "there is no run %q in namespace %q", manual.Spec.RetryOf, manual.Namespace)
	if !x.worksIn(manual.Namespace) {
		return missing
	}
	of, p := x.run(ctx, manual.Namespace, manual.Spec.RetryOf)
	switch {
	case p != nil:
		return p
	case of == nil:
		return missing
	}
	var successor *batchv1alpha1.JobRun
	if of.Status.Retry != nil {
		if successor, p = x.run(ctx, manual.Namespace, of.Status.Retry.Name); p != nil {
			return p
		}
	}
	if reason, message, refused := retry.ManualRefusal(of, successor, manual); refused {
		return refuse(http.StatusConflict, reason, "%s", message)
	}
	return nil
}

// run reads a run live; nil: there is none.
func (x *exchange) run(ctx context.Context, namespace, name string) (*batchv1alpha1.JobRun, *problem) {
	r := &batchv1alpha1.JobRun{}
	switch err := x.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, r); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, away(err, "reading the run")
	}
	return r, nil
}

// makeRetry creates the run.
func (x *exchange) makeRetry(ctx context.Context, manual *batchv1alpha1.JobRun) *problem {
	status := http.StatusCreated
	err := x.Client.Create(ctx, manual)
	switch {
	case apierrors.IsAlreadyExists(err): // the same request, at the same time
		made, p := x.made(ctx, manual)
		if p != nil {
			return p
		}
		if !made {
			return away(err, "making the retry")
		}
		status = http.StatusOK
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err):
		return refuse(http.StatusConflict, batchv1alpha1.ReasonRetryRefused, "the API server refuses the retry: %s", err)
	case err != nil:
		return away(err, "making the retry")
	}
	respond(x.w, status, created{manual.Name, manual.Namespace})
	return nil
}
