// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/notify"
)

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get

// readTimeout bounds how long the keys of one delivery may take to be read: it has one of few places meanwhile.
const readTimeout = 10 * time.Second

// keys reads the keys to sign with, live: Secrets are in no cache, and a key may be replaced at any time. What is wrong is a
// failed attempt like any other, so that a person can put it right; it names the Secret and tells nothing of what is in it.
func (r *Reconciler) keys(ctx context.Context, namespace string, refs []batchv1alpha1.SecretKeyRef) ([]notify.SigningKey, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	keys := make([]notify.SigningKey, 0, len(refs))
	read := map[string]*corev1.Secret{}
	for _, ref := range refs {
		secret := read[ref.Name]
		if secret == nil {
			secret = &corev1.Secret{}
			if err := r.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, secret); err != nil {
				return nil, unreadable(ref.Name, err)
			}
			read[ref.Name] = secret
		}
		value, ok := secret.Data[ref.Key]
		if !ok {
			return nil, unsigned("secret %q has no key %q", ref.Name, ref.Key)
		}
		key, err := notify.ParseSigningKey(value)
		if err != nil {
			return nil, unsigned("key %q of secret %q %s", ref.Key, ref.Name, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func unreadable(name string, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return unsigned("secret %q does not exist", name)
	case apierrors.IsForbidden(err):
		return unsigned("the manager may not read secret %q", name)
	default:
		return unsigned("secret %q cannot be read: %s", name, err)
	}
}

func unsigned(format string, args ...any) error {
	return &notify.Failure{Text: "not sent, since it could not be signed: " + fmt.Sprintf(format, args...), Unsigned: true}
}
