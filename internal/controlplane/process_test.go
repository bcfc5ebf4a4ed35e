// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"io"
	"strings"
	"testing"
)

// shell starts a child with a script.
func shell(t *testing.T, script string) *process {
	t.Helper()
	child, err := startProcess(t.TempDir(), "sh", "/bin/sh", []string{"-c", script})
	if err != nil {
		t.Fatal(err)
	}
	return child
}

func TestAChildThatEndsIsReportedWithItsLastWords(t *testing.T) {
	child := shell(t, "echo no such flag >&2; exit 3")
	err := waitFor(t.Context(), child, func(context.Context) error { return io.EOF })
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no such flag") {
		t.Errorf("error %v does not say why the child ended", err)
	}
}

func TestWaitingForAChildEndsWithTheContext(t *testing.T) {
	child := shell(t, "exec sleep 1000")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := waitFor(ctx, child, func(context.Context) error { return io.EOF })
	if err == nil || !strings.Contains(err.Error(), "not ready") {
		t.Errorf("error %v, want that it is not ready", err)
	}
	if err := child.kill(); err != nil {
		t.Error(err)
	}
	if err := child.kill(); err != nil {
		t.Errorf("killing what is dead: %v", err)
	}
}

func TestAMissingBinaryIsAnError(t *testing.T) {
	if _, err := startProcess(t.TempDir(), "etcd", "/nonexistent/etcd", nil); err == nil {
		t.Error("no error")
	}
}

func TestChildrenSeeNoKUBECONFIGAndNoProxy(t *testing.T) {
	t.Setenv("KUBECONFIG", "/somewhere/production")
	t.Setenv("HTTPS_PROXY", "http://proxy.invalid")
	for _, pair := range childEnv("/home") {
		name, _, _ := strings.Cut(pair, "=")
		if name == "KUBECONFIG" || name == "HTTPS_PROXY" {
			t.Errorf("children see %s", pair)
		}
	}
}
