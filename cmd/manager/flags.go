// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"strings"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/egress"
	"reprise.dev/reprise/internal/operator"
)

// bind adds a flag for every option that an operator may set.
func bind(flags *flag.FlagSet, o *operator.Options) {
	flags.Func("namespaces", "Namespaces to work in, separated by commas (default all).", func(s string) error {
		o.Namespaces = strings.Split(s, ",")
		return nil
	})
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect,
		"Wait for the leader lease before working. Without it this process is taken to be the only one: never start two.")
	flags.StringVar(&o.LeaseNamespace, "leader-elect-namespace", leaseNamespace(o), "Namespace of the leader lease.")
	flags.DurationVar(&o.LeaseDuration, "leader-elect-lease-duration", o.LeaseDuration, "How long others wait before they take the lease of a silent leader.")
	flags.DurationVar(&o.RenewDeadline, "leader-elect-renew-deadline", o.RenewDeadline, "How long the leader tries to renew its lease before it ends itself.")
	flags.DurationVar(&o.RetryPeriod, "leader-elect-retry-period", o.RetryPeriod, "Pause between tries to take or renew the lease.")
	flags.StringVar(&o.ProbeAddress, "health-probe-bind-address", o.ProbeAddress, "Address of /healthz and /readyz; 0 is off.")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", o.MetricsAddress, "Address of /metrics; 0 is off.")
	flags.BoolVar(&o.MetricsSecure, "metrics-secure", o.MetricsSecure, "Serve metrics over TLS, to clients that the API server authenticates and authorises.")
	flags.StringVar(&o.DirectAddress, "direct-bind-address", o.DirectAddress, "Address of direct access over HTTPS; 0 is off.")
	flags.StringVar(&o.DirectCertDir, "direct-cert-dir", o.DirectCertDir,
		"Directory of tls.crt and tls.key for direct access, read again when they change (default a certificate made at the start).")
	flags.StringVar(&o.DirectAudience, "direct-audience", o.DirectAudience, "What the tokens of direct access must be meant for.")
	flags.DurationVar(&o.Startup.Window, "startup-window", o.Startup.Window,
		"How long queues are throttled after a manager has started to lead; 0 is off. A queue's spec.startup wins.")
	flags.DurationVar(&o.Startup.Stagger, "startup-stagger", o.Startup.Stagger, "Time between the opening of one slot of a queue and the next.")
	flags.IntVar(&o.Startup.BurstLimit, "startup-burst-limit", o.Startup.BurstLimit, "How many runs a queue admits per slot during the window.")
	flags.BoolVar(&o.CleanupStaleOnStartup, "cleanup-stale-on-startup", o.CleanupStaleOnStartup,
		"Resolve runs that an earlier manager left Running or Cancelling. Without it they are marked Orphaned and keep their slots.")
	flags.Func("recovery-policy", "Policy of runs that name none, for work found alive after a restart: Fail or Adopt (default Fail).", func(s string) error {
		o.RecoveryPolicy = batchv1alpha1.RecoveryPolicy(s)
		return nil
	})
	flags.DurationVar(&o.HTTPTimeout, "http-timeout", o.HTTPTimeout, "Timeout of HTTP work whose run sets no timeoutSeconds.")
	flags.DurationVar(&o.DrainTimeout, "drain-timeout", o.DrainTimeout,
		"How long HTTP calls and direct requests in flight may go on after SIGTERM; keep it 30s below the pod's terminationGracePeriodSeconds.")
	flags.Func(egress.Flag, "Address ranges that HTTP work and notifications may call although they are loopback, link-local, metadata or "+
		"unspecified: a comma-separated list such as 127.0.0.0/8 (default none).", func(s string) error {
		prefixes, err := egress.ParsePrefixes(s)
		if err != nil {
			return fmt.Errorf("%w: %w", errNotPrefix, err)
		}
		o.AllowedOutgoing = append(o.AllowedOutgoing, prefixes...)
		return nil
	})
}

// leaseNamespace is that of the pod, in a cluster.
func leaseNamespace(o *operator.Options) string {
	if o.Pod != nil {
		return o.Pod.Namespace
	}
	return o.LeaseNamespace
}
