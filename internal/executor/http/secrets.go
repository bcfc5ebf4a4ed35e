// SPDX-License-Identifier: Apache-2.0

package httpwork

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
)

// secrets reads the values that the headers of a call take from Secrets, each Secret once.
func (e *Executor) secrets(ctx context.Context, p *plan) (map[batchv1alpha1.SecretKeyRef]string, error) {
	values := map[batchv1alpha1.SecretKeyRef]string{}
	read := map[string]*corev1.Secret{}
	for _, h := range p.work.Headers {
		ref := h.SecretKeyRef
		if ref == nil {
			continue
		}
		secret, err := e.secret(ctx, types.NamespacedName{Namespace: p.key.Namespace, Name: ref.Name}, read)
		if err != nil {
			return nil, err
		}
		value, ok := secret.Data[ref.Key]
		if !ok {
			return nil, missing("secret %q has no key %q, which header %s needs", ref.Name, ref.Key, h.Name)
		}
		values[*ref] = string(value)
	}
	return values, nil
}

func (e *Executor) secret(ctx context.Context, key types.NamespacedName, read map[string]*corev1.Secret) (*corev1.Secret, error) {
	if s := read[key.Name]; s != nil {
		return s, nil
	}
	s := &corev1.Secret{}
	err := e.options.Reader.Get(ctx, key, s)
	switch {
	case apierrors.IsNotFound(err):
		return nil, missing("secret %q does not exist", key.Name)
	case apierrors.IsForbidden(err):
		return nil, missing("the manager may not read secret %q", key.Name)
	case err != nil:
		return nil, fmt.Errorf("secret %q cannot be read: %w", key.Name, err)
	}
	read[key.Name] = s
	return s, nil
}

func missing(format string, args ...any) error {
	return &executor.Rejected{Reason: batchv1alpha1.ReasonSecretNotFound, Message: fmt.Sprintf(format, args...)}
}
