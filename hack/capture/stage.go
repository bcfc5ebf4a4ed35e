// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"reprise.dev/reprise/internal/controlplane"
	"reprise.dev/reprise/internal/operator"
)

//go:embed past.yaml
var past string

//go:embed scene.yaml
var scene string

var ago = regexp.MustCompile(`\{(\w+)\}`)

// before returns the past with its times.
func before(now time.Time) string {
	return ago.ReplaceAllStringFunc(past, func(found string) string {
		d, err := time.ParseDuration(found[1 : len(found)-1])
		if err != nil {
			return found // braces of YAML
		}
		return now.Add(-d).UTC().Format(time.RFC3339)
	})
}

// acts are what has to be the case, as `kubectl wait` says it, before each next part of the scene comes.
var acts = [][]string{
	{"jr/chapter-8 Running", "jr/edition-12-write-r1 Running"},
	{"jr/research-31 Running"},
	{},
}

// stage is a control plane, and later a manager.
type stage struct {
	plane      *controlplane.Plane
	kubeconfig string
	stop       context.CancelFunc
	done       chan error
}

func newStage(ctx context.Context) (*stage, error) {
	ctrl.SetLogger(logr.Discard())
	plane, err := controlplane.Start(ctx, controlplane.Options{ControllerManager: true, CRDDirs: []string{"config/crd/bases"}})
	if err != nil {
		return nil, err
	}
	done := make(chan error)
	close(done) // nothing to wait for yet
	return &stage{plane: plane, kubeconfig: plane.Kubeconfig(), stop: func() {}, done: done}, nil
}

// manage starts a manager whose calls are answered here.
func (s *stage) manage(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	s.stop = stop
	o := operator.DefaultOptions()
	o.LeaderElect, o.LeaseNamespace, o.ProbeAddress, o.MetricsAddress = false, "default", "0", "0"
	o.Startup.Window, o.DrainTimeout, o.Pod, o.Log = 0, 0, nil, logr.Discard()
	o.Outgoing = &http.Client{Transport: models{ended: ctx.Done()}}
	manager, err := operator.New(ctx, s.plane.Config(), o)
	if err != nil {
		return err
	}
	s.done = make(chan error, 1)
	go func() { s.done <- manager.Run(ctx) }()
	return nil
}

// strike ends everything.
func (s *stage) strike() {
	s.stop()
	if err := errors.Join(<-s.done, s.plane.Stop()); err != nil {
		fmt.Fprintln(os.Stderr, "at the end:", err)
	}
}

// set lets the past have been, before a manager looks, and plays the scene up to its last part.
func (s *stage) set(ctx context.Context) error {
	runs := before(time.Now())
	if err := s.kubectl(ctx, runs, "create", "-f", "-"); err != nil {
		return err
	}
	if err := s.kubectl(ctx, runs, "replace", "--subresource=status", "-f", "-"); err != nil {
		return err
	}
	if err := s.manage(ctx); err != nil {
		return err
	}
	parts := strings.Split(scene, "--- # when")
	if len(parts) != len(acts) {
		return fmt.Errorf("the scene has %d parts, and there are %d acts", len(parts), len(acts))
	}
	for i, part := range parts {
		_, objects, _ := strings.Cut(part, "\n")
		if err := s.kubectl(ctx, objects, "apply", "-f", "-"); err != nil {
			return err
		}
		for _, awaited := range acts[i] {
			object, phase, _ := strings.Cut(awaited, " ")
			if err := s.kubectl(ctx, "", "wait", "--for=create", object, "--timeout=2m"); err != nil {
				return err
			}
			if err := s.kubectl(ctx, "", "wait", object, "--for=jsonpath={.status.phase}="+phase, "--timeout=2m"); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *stage) kubectl(ctx context.Context, input string, args ...string) error {
	cmd := s.plane.Kubectl(ctx, args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// models answers the calls of the scene, so that none leaves the machine.
type models struct{ ended <-chan struct{} }

// RoundTrip takes as long as the path says, and has a first attempt fail that is flaky.
func (m models) RoundTrip(r *http.Request) (*http.Response, error) {
	takes, status := 4*time.Second, http.StatusOK
	switch {
	case r.URL.Path == "/flaky" && r.Header.Get("Reprise-Attempt") == "0":
		status = http.StatusBadGateway
	case r.URL.Path != "/short":
		takes = time.Hour
	}
	select {
	case <-time.After(takes):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-m.ended:
		return nil, errors.New("the scene is over")
	}
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader("done")), ContentLength: 4, Request: r,
	}, nil
}
