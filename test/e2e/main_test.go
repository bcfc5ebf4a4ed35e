// SPDX-License-Identifier: Apache-2.0

// Package e2e tests Reprise on a real cluster with real pods: `make e2e` brings one up. Tests that are not parallel come
// first and find a cluster without Reprise, which they leave as they found it. Then come the tests that run managers of their
// own side by side (apart), then those that share the manager of the whole suite, and last the checks of atEnd.
package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"reprise.dev/reprise/internal/realnode"
	"reprise.dev/reprise/test/e2e/table"
)

var (
	// here is the cluster of the suite.
	here cluster
	// node is here if it is a node of ours; nil on kind and on an existing cluster.
	node *realnode.Node
	// results are printed last.
	results *table.Table
)

const (
	// parallel is how many tests run at once unless -parallel says so: more pods at once only make each of them slower.
	parallel = "4"
	// setUpTimeout bounds the start of the cluster: the first build of the binaries on a machine takes minutes.
	setUpTimeout = 15 * time.Minute
)

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("E2E") == "" {
		fmt.Println("e2e: not run; `make e2e` brings up the cluster that these tests need")
		return
	}
	ctrl.SetLogger(logr.Discard())
	os.Exit(suite(m))
}

// suite runs the tests on a cluster and prints the table.
func suite(m *testing.M) (code int) {
	results = table.New(os.Stdout)
	ctx, cancel := context.WithTimeout(context.Background(), setUpTimeout)
	defer cancel()
	start := time.Now()
	var err error
	if here, node, err = acquire(ctx); err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "e2e: there is no cluster: %v\n", err)
		return 1
	}
	fmt.Printf("e2e: the cluster is ready (%s)\n", time.Since(start).Round(time.Second))
	code = run(m)
	atTheEnd(code)
	if results.Print(os.Stdout) > 0 {
		code = 1
	}
	return max(code, leave(code != 0))
}

// run runs the tests, with their output through the table.
func run(m *testing.M) int {
	set("test.v", "true")
	if !isSet("test.parallel") {
		set("test.parallel", parallel)
	}
	stdout := os.Stdout
	r, w, err := os.Pipe()
	if err != nil {
		panic(err) // no file is left to open
	}
	os.Stdout = w
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(results, r)
	}()
	defer func() {
		_ = w.Close()
		<-read
		os.Stdout = stdout
	}()
	return m.Run()
}

// leave takes everything down. After a failure it keeps what explains it, and says where.
func leave(failed bool) (code int) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var errs []error
	if failed {
		where, err := keep(ctx, here)
		errs = append(errs, err)
		fmt.Printf("e2e: what explains the failure is in %s\n", where)
	}
	errs = append(errs, uninstall(ctx), here.Stop())
	if err := errors.Join(errs...); err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "e2e: %v\n", err)
		return 1
	}
	return 0
}

func set(name, value string) {
	if err := flag.Set(name, value); err != nil {
		panic(err) // there is no such flag
	}
}

func isSet(name string) (set bool) {
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}
