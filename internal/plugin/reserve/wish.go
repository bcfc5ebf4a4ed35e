// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"context"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/plugin/cli"
	"reprise.dev/reprise/internal/plugin/reserve/guard"
)

const (
	// shortest and longest are the bounds of a lease. Below the first a hiccup of the network would end the command.
	shortest, longest = 10 * time.Second, 10 * time.Minute
	// longestWait is what the API allows.
	longestWait = 24 * time.Hour
	// keptFor is how long a reservation is kept after its end, in seconds.
	keptFor = 600
	// maxHolder is the longest holderIdentity, in characters.
	maxHolder = 256
)

// wish is what was asked for by flags.
type wish struct {
	queue, typeName, name, holder string
	claims                        []string
	timeout, lease                time.Duration
	quiet                         bool

	parsed []batchv1alpha1.ResourceClaim
}

// check refuses what cannot be meant.
func (w *wish) check() error {
	switch {
	case w.lease < shortest || w.lease > longest || w.lease%time.Second != 0:
		return cli.Usagef("--lease must be whole seconds from %s to %s, not %s", shortest, longest, w.lease)
	case w.timeout < time.Second || w.timeout > longestWait:
		return cli.Usagef("--timeout must be from 1s to %s, not %s", longestWait, w.timeout)
	case w.name != "" && len(validation.IsDNS1123Subdomain(w.name)) > 0:
		return cli.Usagef("--name %q is no name: use lower-case letters, digits, - and .", w.name)
	case len([]rune(w.holder)) > maxHolder:
		return cli.Usagef("--holder may have %d characters", maxHolder)
	}
	return w.readClaims()
}

// readClaims reads RESOURCE and RESOURCE=COUNT.
func (w *wish) readClaims() error {
	for _, claim := range w.claims {
		name, number, counted := strings.Cut(claim, "=")
		count, err := int64(1), error(nil)
		if counted {
			count, err = strconv.ParseInt(number, 10, 32)
		}
		if name == "" || err != nil || count < 1 {
			return cli.Usagef("--claims %q is no claim: write RESOURCE, or RESOURCE=COUNT with a count of 1 or more", claim)
		}
		w.parsed = append(w.parsed, batchv1alpha1.ResourceClaim{Name: name, Count: int32(count)})
	}
	return nil
}

// possible refuses a queue that does not exist, and what it can never grant. Whoever may not read queues finds out while waiting.
func (w *wish) possible(ctx context.Context, api client.Reader, namespace string) error {
	jq := &batchv1alpha1.JobQueue{}
	err := cli.Get(ctx, api, namespace, w.queue, jq)
	missing := isMissing(err)
	switch {
	case apierrors.IsForbidden(err), missing && w.queue == batchv1alpha1.DefaultQueue: // the manager makes it
		return nil
	case err != nil:
		return err
	}
	if reason, fits := admission.Fit(admission.LimitsOf(jq), w.typeName, admission.ClaimsOf(w.parsed)); !fits {
		return cli.Usagef("queue %s can never grant it: %s\nsee: kubectl get jobqueue %s -o yaml", w.queue, reason.Message, w.queue)
	}
	return nil
}

// planned is the name and the sign of a reservation that is about to be made.
func (w *wish) planned(namespace string) guard.Plan {
	sign := rand.String(20)
	p := guard.Plan{Namespace: namespace, Name: w.name, Nonce: "kubectl-reprise/" + sign}
	if p.Name == "" {
		p.Name = "reserve-" + sign[:10]
	}
	return p
}

// reservation is what to create.
func (w *wish) reservation(p guard.Plan) *batchv1alpha1.DirectReservation {
	return &batchv1alpha1.DirectReservation{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name,
			Annotations: map[string]string{batchv1alpha1.AnnotationFront: p.Nonce},
		},
		Spec: batchv1alpha1.DirectReservationSpec{
			Queue: w.queue, Type: w.typeName, Claims: w.parsed, HolderIdentity: w.holder,
			LeaseDurationSeconds:    int32(w.lease / time.Second),
			WaitTimeoutSeconds:      int32((w.timeout + time.Second - 1) / time.Second),
			TTLSecondsAfterFinished: ptr.To[int32](keptFor),
		},
	}
}

// whoami is who holds the slot, as others shall see it.
func whoami() string {
	who, where := "somebody", "somewhere"
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		where = host
	}
	return who + "@" + where
}
