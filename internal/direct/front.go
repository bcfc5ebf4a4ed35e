// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups=batch.reprise.dev,resources=directreservations,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=batch.reprise.dev,resources=jobqueues,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch.reprise.dev,resources=jobruns,verbs=get;create
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get

// Options of a Front. All but Namespaces, CertDir, DrainTimeout and Log are required.
type Options struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// Informers tell of reservations as they change.
	Informers cache.Informers
	// Egress makes the calls to upstreams. It uses no proxy and has no timeout for responses, as the transport of package egress's
	// client.
	Egress http.RoundTripper
	// Fit says whether a request of that type and with those claims can ever be admitted to the queue, and if not, why: a
	// CamelCase code and a message.
	Fit func(q *batchv1alpha1.JobQueue, typeName string, claims []batchv1alpha1.ResourceClaim) (code, message string, ok bool)
	// Namespaces that the manager works in; empty: all of them.
	Namespaces []string
	// Address to listen on, such as ":8444".
	Address string
	// CertDir holds tls.crt and tls.key, which are read again when they change. Empty: a certificate is made at start, and its
	// fingerprint logged.
	CertDir string
	// Audience that tokens must be made for.
	Audience string
	// ID of this process, unique.
	ID string
	// Clock is the time.
	Clock clock.Clock
	// DrainTimeout is how long requests in flight may go on once the context of Start has ended.
	DrainTimeout time.Duration
	// Log gets a line for each request of a user, and details at V(1).
	Log logr.Logger
}

func (o *Options) validate() error {
	var errs []error
	for what, missing := range map[string]bool{
		"Client": o.Client == nil, "Live": o.Live == nil, "Informers": o.Informers == nil, "Egress": o.Egress == nil, "Fit": o.Fit == nil,
		"Address": o.Address == "", "Audience": o.Audience == "", "ID": o.ID == "", "Clock": o.Clock == nil,
	} {
		if missing {
			errs = append(errs, fmt.Errorf("the front for direct access needs %s", what))
		}
	}
	return errors.Join(errs...)
}

// timing holds the times that are no option, so that tests can shorten them.
type timing struct {
	// lease of a reservation, in whole seconds. A renewal is sent each third of it, and each sixth with a slot.
	lease time.Duration
	// header is how long the header of a request may take, the handshake of a new connection included.
	header time.Duration
	// start is how long the first byte of an announced body may take.
	start time.Duration
	// idle is how long the body of a request that has its slot may make no progress.
	idle time.Duration
	// write is how long one write to the client may take.
	write time.Duration
	// call bounds a call to the API server.
	call time.Duration
	// pause before such a call is tried again.
	pause time.Duration
	// linger is how long the rest of a refused request is read, so that the client sees the answer rather than a reset.
	linger time.Duration
	// remember is how long a positive answer of a review counts.
	remember time.Duration
	// cut bounds the end of what was cut when the process ends, releases included.
	cut time.Duration
}

var defaultTiming = timing{
	lease:    30 * time.Second,
	header:   10 * time.Second,
	start:    10 * time.Second,
	idle:     30 * time.Second,
	write:    30 * time.Second,
	call:     10 * time.Second,
	pause:    time.Second,
	linger:   500 * time.Millisecond,
	remember: 10 * time.Second,
	cut:      15 * time.Second,
}

const (
	// maxRequests is how many requests are served at once, those that wait included.
	maxRequests = 2000
	// maxStrangers is how many requests wait at once for an answer about a token that was never good.
	maxStrangers = 1024
	// maxConnections is how many connections there are at once.
	maxConnections = 4096
	// maxReviews is how many questions of one kind about users are asked of the API server at once.
	maxReviews = 32
	// maxRemembered is how many answers of one kind are remembered, at least.
	maxRemembered = 4096
)

// Front serves direct access over HTTP. Use New.
type Front struct {
	Options
	timing timing
	// gate counts the requests of users, strangers those of whom nobody knows yet.
	gate, strangers *gate
	budget          budget
	users           *authenticator
	rights          *authoriser
	line            *line
	inboxes         *inboxes
	server          *server

	// turning ends when requests are turned away that are not passed on yet, and cutting when those in flight are cut.
	turning, cutting context.Context //nolint:containedctx // they are the life of the process, not that of a call
	turnAway, cutAll context.CancelFunc
}

var (
	_ manager.Runnable               = (*Front)(nil)
	_ manager.LeaderElectionRunnable = (*Front)(nil)
)

// New makes a front that does nothing yet. Start serves it.
func New(o Options) (*Front, error) { return newFront(o, defaultTiming) }

func newFront(o Options, t timing) (*Front, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	f := &Front{
		Options: o, timing: t, gate: &gate{limit: maxRequests}, strangers: &gate{limit: maxStrangers}, budget: newBudget(maxBuffered),
		line: newLine(), inboxes: newInboxes(), server: &server{limit: maxConnections},
		users: newAuthenticator(&o, t), rights: &authoriser{client: o.Client, reviews: newReviews[verdict](o.Clock, t)},
	}
	f.turning, f.turnAway = context.WithCancel(context.Background())
	f.cutting, f.cutAll = context.WithCancel(context.Background())
	return f, nil
}

// NeedLeaderElection is false: every replica serves.
func (f *Front) NeedLeaderElection() bool { return false }

// Handler serves requests. Until Start runs it is not told how reservations fare.
func (f *Front) Handler() http.Handler { return http.HandlerFunc(f.handle) }

// handle serves one request. One that cannot be answered properly any more ends with its connection broken.
func (f *Front) handle(w http.ResponseWriter, r *http.Request) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			panic(http.ErrAbortHandler)
		default:
			f.Log.Error(fmt.Errorf("%v", p), "a request made the front panic", "stack", string(debug.Stack()))
			panic(http.ErrAbortHandler)
		}
	}()
	if broken := f.serve(w, r); broken {
		panic(http.ErrAbortHandler)
	}
}

// worksIn says whether the manager works in the namespace.
func (f *Front) worksIn(namespace string) bool {
	return len(f.Namespaces) == 0 || slices.Contains(f.Namespaces, namespace)
}
