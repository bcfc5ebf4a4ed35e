// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAssetsPrintsADirectoryForKUBEBUILDERASSETS(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), []string{"assets"}, &out); err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimSuffix(out.String(), "\n")
	if _, err := os.Stat(filepath.Join(dir, "kube-apiserver")); err != nil {
		t.Error(err)
	}
}

func TestUpRunsUntilItIsInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, []string{"up"}, writer)
		ended <- errors.Join(err, writer.Close())
	}()
	line, err := bufio.NewReader(reader).ReadString('\n')
	kubeconfig, ok := strings.CutPrefix(strings.TrimSpace(line), "export KUBECONFIG=")
	if err != nil || !ok {
		t.Fatalf("it prints %q (%v)", line, err)
	}
	if _, err := os.Stat(kubeconfig); err != nil {
		t.Error(err)
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("interrupted: %v", err)
	}
	if _, err := os.Stat(kubeconfig); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the kubeconfig is left behind (%v)", err)
	}
}

func TestABadCommandLineIsAnError(t *testing.T) {
	if err := run(t.Context(), nil, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("without a verb: %v, want the usage", err)
	}
	for _, args := range [][]string{{"down"}, {"up", "-no-such-flag"}} {
		if run(t.Context(), args, io.Discard) == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
