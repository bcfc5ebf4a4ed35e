// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// user is who sends a request.
type user = authenticationv1.UserInfo

// authenticator finds out who sends a request, from its bearer token. It keeps digests of tokens, never a token.
type authenticator struct {
	client   client.Writer
	audience string
	// first asks about tokens that were never good, and again about those that were: whoever makes tokens up leaves the others their
	// room. They remember the same.
	first, again *reviews[user]
}

func newAuthenticator(o *Options, t timing) *authenticator {
	first := newReviews[user](o.Clock, t)
	return &authenticator{client: o.Client, audience: o.Audience, first: first, again: asking(first.known, t)}
}

// met says whether the request's token was good once.
func (a *authenticator) met(r *http.Request) bool {
	token, p := bearer(r)
	return p == nil && a.first.known.met(sha256.Sum256([]byte(token)))
}

// user returns who sends the request, or why nobody knows.
func (a *authenticator) user(ctx context.Context, r *http.Request) (user, *problem) {
	token, p := bearer(r)
	if p != nil {
		return user{}, p
	}
	ask := a.first
	if a.met(r) {
		ask = a.again
	}
	u, err := ask.answer(ctx, sha256.Sum256([]byte(token)), func(ctx context.Context) (user, error) { return a.review(ctx, token) })
	switch p := (*problem)(nil); {
	case err == nil:
		return u, nil
	case errors.As(err, &p):
		return user{}, p
	default:
		return user{}, away(err, "checking the token")
	}
}

// review asks the API server whose token it is. A refusal is a *problem.
func (a *authenticator) review(ctx context.Context, token string) (user, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{a.audience}}}
	if err := a.client.Create(ctx, review); err != nil {
		return user{}, err
	}
	// An API server that knows nothing of audiences accepts any token of its own, and names none.
	if !review.Status.Authenticated || !slices.Contains(review.Status.Audiences, a.audience) {
		return user{}, unknown(
			"the token is not valid here; use one that has not expired and is made for the audience %q (kubectl create token <service account> --audience=%s)",
			a.audience, a.audience)
	}
	return review.Status.User, nil
}

// bearer returns the token of a request.
func bearer(r *http.Request) (string, *problem) {
	values := r.Header.Values("Authorization")
	if len(values) == 1 {
		scheme, token, _ := strings.Cut(strings.TrimSpace(values[0]), " ")
		if token = strings.TrimSpace(token); strings.EqualFold(scheme, "bearer") && token != "" && !strings.ContainsAny(token, " \t") {
			return token, nil
		}
	}
	return "", unknown("send the header Authorization: Bearer <token>, once")
}

// unknown is the problem with a request of which nobody knows whose it is.
func unknown(format string, args ...any) *problem {
	return refuse(http.StatusUnauthorized, http.StatusText(http.StatusUnauthorized), format, args...)
}
