// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// helperVariable makes the test binary act as a process of its own, since some promises are about processes.
const helperVariable = "REPRISE_CONTROLPLANE_HELPER"

func TestMain(m *testing.M) {
	if role, argument, ok := strings.Cut(os.Getenv(helperVariable), " "); ok {
		if err := helpers[role](argument); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	log.SetLogger(logr.Discard()) // or controller-runtime complains that nobody has
	os.Exit(m.Run())
}

var helpers = map[string]func(argument string) error{
	"hold-lock": holdLock,
	"parent":    beParent,
	"child":     beChild,
}

// helper is a running helper process. Its input stays open until it is killed.
type helper struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func startHelper(t *testing.T, role, argument string) *helper {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), helperVariable+"="+role+" "+argument)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := &helper{t: t, cmd: cmd, lines: bufio.NewScanner(stdout)}
	t.Cleanup(h.kill)
	return h
}

// waitFor reads the helper's output up to a line.
func (h *helper) waitFor(line string) {
	h.t.Helper()
	for h.lines.Scan() {
		if h.lines.Text() == line {
			return
		}
	}
	h.t.Fatalf("the helper ended without saying %q: %v", line, h.lines.Err())
}

// kill ends the helper as a crash would.
func (h *helper) kill() {
	_ = h.cmd.Process.Kill() // already dead is dead enough
	_ = h.cmd.Wait()
}

// shortDir is a temporary directory whose path leaves room for the name of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "reprise-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// patience bounds waits that a test expects to be short.
const patience = 30 * time.Second

// beParent is the body of the helper process: it starts itself as the child, and stays.
func beParent(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	env, err := exec.LookPath("env") // children do not inherit the variable that makes a helper
	if err != nil {
		return err
	}
	if _, err := startProcess(dir, "child", env, []string{helperVariable + "=child " + dir, self}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// beChild is the body of the helper's own child: it stays until the test hangs up.
func beChild(dir string) error {
	connection, err := new(net.Dialer).DialContext(context.Background(), "unix", filepath.Join(dir, "s"))
	if err != nil {
		return err
	}
	if _, err := io.WriteString(connection, "alive\n"); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, connection)
	return err
}
