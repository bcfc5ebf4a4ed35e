// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// verdict is a positive answer to the question whether a user may do something.
type verdict struct{}

// authoriser finds out whether a user may do what a request asks for.
type authoriser struct {
	client  client.Writer
	reviews *reviews[verdict]
}

// mayCreate returns nil if the user may create objects of the resource, of our group, in the namespace.
func (a *authoriser) mayCreate(ctx context.Context, u user, namespace, resource string) *problem {
	question := authorizationv1.SubjectAccessReviewSpec{
		User: u.Username, UID: u.UID, Groups: u.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "create", Group: batchv1alpha1.GroupVersion.Group, Version: batchv1alpha1.GroupVersion.Version, Resource: resource,
		},
	}
	if len(u.Extra) > 0 {
		question.Extra = map[string]authorizationv1.ExtraValue{}
		for k, v := range u.Extra {
			question.Extra[k] = authorizationv1.ExtraValue(v)
		}
	}
	text, err := json.Marshal(question)
	if err != nil {
		return away(err, "checking your rights")
	}
	_, err = a.reviews.answer(ctx, sha256.Sum256(text), func(ctx context.Context) (verdict, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: question}
		if err := a.client.Create(ctx, review); err != nil {
			return verdict{}, err
		}
		if !review.Status.Allowed {
			return verdict{}, refuse(http.StatusForbidden, "Forbidden", "user %q may not create %s.%s in namespace %q; ask for a role that allows it",
				u.Username, resource, batchv1alpha1.GroupVersion.Group, namespace)
		}
		return verdict{}, nil
	})
	switch p := (*problem)(nil); {
	case err == nil:
		return nil
	case errors.As(err, &p):
		return p
	default:
		return away(err, "checking your rights")
	}
}
