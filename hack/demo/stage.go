// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/controlplane"
	"reprise.dev/reprise/internal/egress"
)

const (
	// patience bounds each wait. A wait ends as soon as it can.
	patience = 45 * time.Second
	// poll is the pause between two looks.
	poll = 100 * time.Millisecond
	// removalPatience bounds the removal of what was made in a cluster that goes on.
	removalPatience = 60 * time.Second
)

// stage is everything that the demo starts, and must end.
type stage struct {
	say    *narrator
	root   string // of the repository
	dir    string // of the logs
	binary string

	plane   *controlplane.Plane
	client  client.Client
	ns      string
	pods    bool // the cluster has nodes
	server  *workServer
	manager *manager       // nil while none is to run
	trusted *x509.CertPool // what clients of direct access trust
}

// prepare builds what is missing.
func (s *stage) prepare(ctx context.Context) error {
	s.say.step("Build (minutes, the first time on a machine)")
	var err error
	if s.root, err = controlplane.Root(); err != nil {
		return err
	}
	s.binary = filepath.Join(s.root, "bin", "manager")
	build := exec.CommandContext(ctx, "make", "--no-print-directory", "build")
	build.Dir = s.root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("make build: %w\n%s", err, out)
	}
	out, err := exec.CommandContext(ctx, s.binary, "--version").Output()
	if err != nil {
		return err
	}
	s.say.note("bin/manager %s", strings.TrimSpace(string(out)))
	if os.Getenv("CLUSTER") == "existing" {
		return nil
	}
	_, err = controlplane.EnsureAssets(ctx, controlplane.AssetOptions{ControllerManager: true})
	return err
}

// raise starts everything but the manager.
func (s *stage) raise(ctx context.Context) error {
	s.say.step("A control plane, and a server for the work")
	var err error
	if s.dir, err = os.MkdirTemp("", "reprise-demo-"); err != nil {
		return err
	}
	s.plane, err = controlplane.Acquire(ctx, controlplane.Options{ControllerManager: true, CRDDirs: []string{"config/crd/bases"}})
	if err != nil {
		return err
	}
	if s.client, err = client.New(s.plane.Config(), client.Options{Scheme: scheme()}); err != nil {
		return err
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	if s.trusted, err = makeCertificate(s.dir); err != nil {
		return err
	}
	s.server, err = startServer(ctx, &worklog{path: filepath.Join(s.dir, "work.log")})
	if err != nil {
		return err
	}
	s.say.note("API server %s with the CRDs, namespace %s", s.plane.Config().Host, s.ns)
	s.say.note("work server http://%s", s.server.address())
	return nil
}

func scheme() *runtime.Scheme {
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, batchv1alpha1.AddToScheme} {
		if err := add(all); err != nil {
			panic(err) // a mistake in the program
		}
	}
	return all
}

// settle makes a namespace: under a name that is free, in a cluster that others use.
func (s *stage) settle(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "reprise-demo"}}
	if s.plane.Existing() {
		if err := s.refuseCompany(ctx); err != nil {
			return err
		}
		ns.ObjectMeta = metav1.ObjectMeta{GenerateName: "reprise-demo-"}
	}
	if err := s.client.Create(ctx, ns); err != nil {
		return err
	}
	s.ns = ns.Name
	nodes := &corev1.NodeList{}
	err := s.client.List(ctx, nodes, client.Limit(1))
	s.pods = len(nodes.Items) > 0
	return err
}

// launch starts a manager for the namespace and waits until it is ready.
func (s *stage) launch(ctx context.Context, log string) error {
	m, err := startManager(ctx, s.binary, filepath.Join(s.dir, log),
		"--kubeconfig="+s.plane.Kubeconfig(), "--namespaces="+s.ns,
		// Alone by declaration: a restarted manager need not wait until the lease of the killed one is over.
		"--leader-elect=false", "--leader-elect-namespace="+s.ns,
		"--"+egress.Flag+"=127.0.0.0/8", "--drain-timeout=5s",
		// The demo starts its manager twice within a minute and has no time for a throttle.
		"--startup-window=0", "--direct-cert-dir="+s.dir)
	if err != nil {
		return err
	}
	s.manager = m
	return s.await(ctx, "the manager is ready", func(ctx context.Context) (string, error) {
		ready, err := m.ready(ctx)
		return unless(ready, "/readyz does not say so"), err
	})
}

// await returns when look finds that nothing is missing. An error of look is a reason to look again, but not the end of the
// manager or of the control plane.
func (s *stage) await(ctx context.Context, what string, look func(ctx context.Context) (missing string, err error)) error {
	last := ""
	err := wait.PollUntilContextTimeout(ctx, poll, patience, true, func(ctx context.Context) (bool, error) {
		if err := s.alive(); err != nil {
			return false, err
		}
		missing, err := look(ctx)
		if err != nil {
			missing = err.Error()
		}
		if missing != "" && ctx.Err() == nil {
			last = missing
		}
		return missing == "", nil
	})
	if err != nil {
		return fmt.Errorf("expected: %s; but: %s (%w)", what, last, err)
	}
	return nil
}

// unless is the text if the condition does not hold.
func unless(holds bool, format string, args ...any) string {
	if holds {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// alive says what has ended that should be running.
func (s *stage) alive() error {
	if s.manager != nil {
		if err := s.manager.lives(); err != nil {
			return err
		}
	}
	return s.plane.Err()
}

// kubectl runs a command in the namespace, with input, and shows both as a person would see them.
func (s *stage) kubectl(ctx context.Context, input string, args ...string) error {
	cmd := s.plane.Kubectl(ctx, append([]string{"--namespace", s.ns}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	s.say.quote(string(out))
	if err != nil {
		return fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// explain shows what a person would look at first after a failure.
func (s *stage) explain() {
	if s.manager != nil {
		s.say.line("\nThe last lines of the manager's log:")
		s.say.quote(s.manager.lastWords())
	}
	if s.dir != "" {
		s.say.line("\nThe logs of the manager and of the work server are in %s.", s.dir)
	}
}

// strike ends everything, and removes the logs if nobody needs them. It can be called again.
func (s *stage) strike(clean bool) error {
	var errs []error
	if m := s.manager; m != nil {
		s.manager = nil
		if m.lives() == nil { // else that was said already
			errs = append(errs, s.dismiss(m))
		}
	}
	errs = append(errs, s.leave())
	if s.server != nil {
		errs = append(errs, s.server.stop())
		s.server = nil
	}
	if s.plane != nil {
		errs = append(errs, s.plane.Stop())
		s.plane = nil
	}
	if clean && s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
		s.dir = ""
	}
	return errors.Join(errs...)
}

func (s *stage) dismiss(m *manager) error {
	if err := m.stop(); err != nil {
		return err
	}
	s.say.claim("asked by SIGTERM, the manager ended in good order")
	return nil
}

// leave removes the namespace from a cluster that goes on. Its own context: the demo's may be over.
func (s *stage) leave() error {
	if s.ns == "" || s.plane == nil || !s.plane.Existing() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), removalPatience)
	defer cancel()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.ns}}
	s.ns = ""
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		err := s.client.Delete(ctx, ns)
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		return fmt.Errorf("namespace %s is not gone yet: %w", ns.Name, err)
	}
	s.say.note("namespace %s is removed; the CRDs stay", ns.Name)
	return nil
}
