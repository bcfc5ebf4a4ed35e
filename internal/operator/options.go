// SPDX-License-Identifier: Apache-2.0

// Package operator wires the controllers into one manager process and gives that process its life: it starts, leads,
// drains and ends. cmd/manager turns flags into Options; tests run it in their own process.
package operator

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/jobqueue"
	"reprise.dev/reprise/internal/tracing"
)

// Options of a manager process. DefaultOptions has the defaults.
type Options struct {
	// Namespaces to work in; empty: all of them.
	Namespaces []string

	// LeaderElect makes this process wait for the leader Lease. Without it the process is alone by declaration: it takes the
	// Lease at once, and what earlier processes left is taken to have ended.
	LeaderElect bool
	// LeaseNamespace holds the leader Lease.
	LeaseNamespace string
	// LeaseDuration is how long others wait before they take the Lease of a leader that is silent.
	LeaseDuration time.Duration
	// RenewDeadline is how long the leader tries to renew before it ends itself.
	RenewDeadline time.Duration
	// RetryPeriod is the pause between tries to take or renew the Lease. A standby looks every 1 to 2.2 of it (client-go's jitter):
	// with the default of 0.7 s it takes a lease that was given up within 1.6 s, and that of a leader that died within 3.1 s of its end.
	RetryPeriod time.Duration

	// ProbeAddress serves /healthz and /readyz; "0" is off.
	ProbeAddress string
	// MetricsAddress serves /metrics; "0" is off.
	MetricsAddress string
	// MetricsSecure serves metrics over TLS, to clients that the API server authenticates and authorises.
	MetricsSecure bool

	// Startup throttles queues that set no throttle of their own, after this process has started to lead.
	Startup jobqueue.Startup

	// DirectAddress serves direct access over HTTPS; "0" is off.
	DirectAddress string
	// DirectCertDir holds tls.crt and tls.key for it. Default: a certificate made at the start, which nobody can verify.
	DirectCertDir string
	// DirectAudience is what the tokens of its clients must be meant for.
	DirectAudience string

	// CleanupStaleOnStartup resolves runs that an earlier manager left Running or Cancelling. Without it they are marked
	// Orphaned and keep their slots.
	CleanupStaleOnStartup bool
	// RecoveryPolicy of runs that name none.
	RecoveryPolicy batchv1alpha1.RecoveryPolicy
	// HTTPTimeout of calls whose run sets no timeoutSeconds.
	HTTPTimeout time.Duration
	// AllowedOutgoing lifts the refusal of loopback, link-local, metadata and unspecified addresses for these ranges.
	AllowedOutgoing []netip.Prefix
	// Outgoing makes the calls of runs, the announcements and the direct requests. Default: one that refuses those addresses.
	Outgoing *http.Client
	// DrainTimeout is how long calls in flight may go on after the process was asked to end.
	DrainTimeout time.Duration

	// ID is unique to the process. Default: made from the host's name.
	ID string
	// Pod in which the process runs; nil outside a cluster.
	Pod *batchv1alpha1.PodIdentity
	// Tracer tells of runs that end. Default: nothing is told. Who made it shuts it down, when Run has ended.
	Tracer *tracing.Tracer
	// Clock is the time.
	Clock clock.WithTicker
	// Log gets everything.
	Log logr.Logger
	// Exit ends the process at once, without drain. Default: os.Exit(1).
	Exit func()
}

// DefaultOptions returns the defaults, with the identity of this process.
func DefaultOptions() Options {
	return Options{
		LeaderElect:           true,
		LeaseNamespace:        "reprise-system",
		LeaseDuration:         15 * time.Second,
		RenewDeadline:         10 * time.Second,
		RetryPeriod:           700 * time.Millisecond,
		ProbeAddress:          ":8081",
		MetricsAddress:        ":8443",
		MetricsSecure:         true,
		Startup:               jobqueue.Startup{Window: time.Minute, Stagger: time.Second, BurstLimit: 5},
		DirectAddress:         "0",
		DirectAudience:        "reprise",
		CleanupStaleOnStartup: true,
		RecoveryPolicy:        batchv1alpha1.RecoveryFail,
		HTTPTimeout:           10 * time.Minute,
		DrainTimeout:          20 * time.Second,
		ID:                    processID(),
		Pod:                   podFromEnv(time.Now()),
		Clock:                 clock.RealClock{},
		Exit:                  func() { os.Exit(1) },
	}
}

// Validate says what is wrong with the options.
func (o *Options) Validate() error {
	var errs []error
	if o.RecoveryPolicy != batchv1alpha1.RecoveryFail && o.RecoveryPolicy != batchv1alpha1.RecoveryAdopt {
		errs = append(errs, fmt.Errorf("the recovery policy is %q; use Fail or Adopt", o.RecoveryPolicy))
	}
	if o.RenewDeadline >= o.LeaseDuration || o.RetryPeriod >= o.RenewDeadline {
		errs = append(errs, fmt.Errorf("the lease duration (%s) must be longer than the renew deadline (%s), and that longer than the retry period (%s)",
			o.LeaseDuration, o.RenewDeadline, o.RetryPeriod))
	}
	if o.HTTPTimeout < time.Second {
		errs = append(errs, fmt.Errorf("the default HTTP timeout is %s; use at least 1s", o.HTTPTimeout))
	}
	if o.DrainTimeout < 0 {
		errs = append(errs, fmt.Errorf("the drain timeout is %s; use 0 or more", o.DrainTimeout))
	}
	if o.Startup.Window < 0 || o.Startup.Stagger < 0 || o.Startup.BurstLimit < 1 {
		errs = append(errs, fmt.Errorf("the start-up throttle lasts %s with a stagger of %s and %d runs per slot; use 0 or more, 0 or more, and at least 1",
			o.Startup.Window, o.Startup.Stagger, o.Startup.BurstLimit))
	}
	if o.LeaseNamespace == "" {
		errs = append(errs, errors.New("the namespace of the leader lease is empty"))
	}
	return errors.Join(errs...)
}

// leaseName is the name of the leader Lease.
const leaseName = "reprise-manager"

func (o *Options) lease() types.NamespacedName {
	return types.NamespacedName{Namespace: o.LeaseNamespace, Name: leaseName}
}

// processID is unique: an incarnation that restarts is another one.
func processID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "_" + uuid.NewString()
}

// podFromEnv reads the identity that the downward API gives to the container, nil outside a cluster.
func podFromEnv(now time.Time) *batchv1alpha1.PodIdentity {
	name, namespace, uid := os.Getenv("POD_NAME"), os.Getenv("POD_NAMESPACE"), os.Getenv("POD_UID")
	if name == "" || namespace == "" || uid == "" {
		return nil
	}
	return &batchv1alpha1.PodIdentity{Namespace: namespace, Name: name, UID: types.UID(uid), StartedAt: metav1.NewTime(now)}
}
