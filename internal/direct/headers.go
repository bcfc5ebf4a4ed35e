// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// white is cut off both ends of a header's value: a Secret made from a file often ends in it.
const white = " \t\r\n"

// added returns the headers that the queue adds to each request. Secrets are read live, each once, so that a new value counts at
// once.
func (f *Front) added(ctx context.Context, q *batchv1alpha1.JobQueue) (http.Header, *problem) {
	ctx, cancel := context.WithTimeout(ctx, f.timing.call)
	defer cancel()
	header, read := http.Header{}, map[string]*corev1.Secret{}
	for _, h := range q.Spec.Direct.Headers {
		value := ""
		switch {
		case h.Value != nil:
			value = *h.Value
		case h.SecretKeyRef != nil:
			var p *problem
			if value, p = f.secret(ctx, q.Namespace, h, read); p != nil {
				return nil, p
			}
		}
		value = strings.Trim(value, white)
		if !httpguts.ValidHeaderFieldName(h.Name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, refuse(http.StatusBadGateway, "InvalidHeader", "header %q of spec.direct.headers has a name or value that is not allowed in a header", h.Name)
		}
		header.Add(h.Name, value)
	}
	return header, nil
}

// secret returns the value that a header takes from a Secret.
func (f *Front) secret(ctx context.Context, namespace string, h batchv1alpha1.HTTPHeader, read map[string]*corev1.Secret) (string, *problem) {
	missing := func(why string) *problem {
		return refuse(http.StatusBadGateway, batchv1alpha1.ReasonSecretNotFound, "header %s of the queue's spec.direct.headers cannot be made: %s", h.Name, why)
	}
	ref := h.SecretKeyRef
	s := read[ref.Name]
	if s == nil {
		s = &corev1.Secret{}
		err := f.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, s)
		switch {
		case apierrors.IsNotFound(err):
			return "", missing(fmt.Sprintf("secret %q does not exist", ref.Name))
		case apierrors.IsForbidden(err):
			return "", missing(fmt.Sprintf("the manager may not read secret %q", ref.Name))
		case err != nil:
			return "", away(err, "reading the secrets of the queue's headers")
		}
		read[ref.Name] = s
	}
	value, ok := s.Data[ref.Key]
	if !ok {
		return "", missing(fmt.Sprintf("secret %q has no key %q", ref.Name, ref.Key))
	}
	return string(value), nil
}
