// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// What applies to a queue that does not say.
const (
	defaultWait    = 60 * time.Second
	defaultTimeout = 10 * time.Minute
	defaultMaxBody = 16 << 20
)

// queue returns the queue, with an upstream, that a request is for. It belongs to the cache: nobody writes to it.
func (f *Front) queue(ctx context.Context, namespace, name string) (*batchv1alpha1.JobQueue, *problem) {
	missing := refuse(http.StatusNotFound, batchv1alpha1.ReasonQueueNotFound, "there is no queue %q in namespace %q", name, namespace)
	if !f.worksIn(namespace) {
		return nil, missing
	}
	q := &batchv1alpha1.JobQueue{}
	switch err := f.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, q); {
	case apierrors.IsNotFound(err):
		return nil, missing
	case err != nil:
		return nil, away(err, "reading the queue")
	case q.Spec.Direct == nil || q.Spec.Direct.Upstream == "":
		return nil, refuse(http.StatusNotFound, "NoUpstream", "queue %q takes no direct requests; its spec.direct.upstream names no address to pass them on to", name)
	}
	return q, nil
}

func waitOf(d *batchv1alpha1.QueueDirect) time.Duration {
	return seconds(d.WaitTimeoutSeconds, defaultWait)
}

func timeoutOf(d *batchv1alpha1.QueueDirect) time.Duration {
	return seconds(d.TimeoutSeconds, defaultTimeout)
}

func maxBodyOf(d *batchv1alpha1.QueueDirect) int64 {
	if d.MaxBodyBytes != nil {
		return *d.MaxBodyBytes
	}
	return defaultMaxBody
}

func seconds(n *int32, otherwise time.Duration) time.Duration {
	if n != nil {
		return time.Duration(*n) * time.Second
	}
	return otherwise
}
