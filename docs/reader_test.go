// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// patience bounds one step of a page. It is long because the machine may be busy; a step ends as soon as it can.
const patience = 2 * time.Minute

// reader goes through one page: in a namespace and a directory of its own, with kubectl and the plugin.
type reader struct {
	t      *testing.T
	dir    string
	env    []string
	output string // of the commands last run
}

// newReader makes a namespace that goes with the test.
func newReader(t *testing.T) *reader {
	t.Helper()
	r := &reader{t: t, dir: t.TempDir()}
	// What pages take from the repository, by the paths that a reader has.
	for _, name := range []string{"config", "charts", "dist"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(r.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(root, filepath.Join(r.dir, "reprise")); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(plane.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(r.dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, config, 0o600); err != nil {
		t.Fatal(err)
	}
	r.env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+r.dir, "PATH="+tools+string(os.PathListSeparator)+os.Getenv("PATH"))
	namespace := "docs-" + strings.ToLower(strings.NewReplacer("TestEverySnippetWorks/", "", ".md", "").Replace(t.Name()))
	prepare := fmt.Sprintf("kubectl create namespace %[1]s && kubectl config set-context --current --namespace=%[1]s", namespace)
	if err := r.run(prepare, step{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = plane.Kubectl(context.Background(), "delete", "namespace", namespace, "--wait=false").Run()
	})
	return r
}

// run executes commands, with the text of a step as their input if they are not the text themselves.
func (r *reader) run(commands string, s step) error {
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir, cmd.Env = r.dir, r.env
	if s.language == "yaml" {
		cmd.Stdin = strings.NewReader(s.text)
	}
	// A group of its own, so that Ctrl-C and the end of patience reach what the shell has started.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out := &output{}
	if s.interrupted {
		out.first = func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	}
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	r.output = out.String()
	return r.judge(ctx, err, commands, s)
}

// judge says whether commands ended as the page says.
func (r *reader) judge(ctx context.Context, err error, commands string, s step) error {
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s\ndid not end within %s: %s", commands, patience, r.output)
	case s.interrupted && r.output != "":
		return nil
	case code == 0 && err != nil:
		return fmt.Errorf("%s: %w", commands, err)
	case code != s.exit:
		return fmt.Errorf("%s\nended with %d, not with %d: %s", commands, code, s.exit, r.output)
	case s.language == "yaml" && strings.Contains(r.output, "Warning"):
		return fmt.Errorf("the API server warns: %s", r.output)
	}
	return nil
}

// output keeps what commands print. It calls first as soon as there is something.
type output struct {
	mu    sync.Mutex
	text  strings.Builder
	first func()
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.first != nil {
		o.first()
		o.first = nil
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// finish sees that nothing that the page has made is held in the end: an example that nobody can run misleads.
func (r *reader) finish() {
	NewWithT(r.t).Eventually(r.held).WithTimeout(patience).WithPolling(time.Second).Should(Succeed())
}

// held returns an error that names what waits for a person.
func (r *reader) held() error {
	if err := r.run("kubectl get scheduledjobs,jobqueues,jobgroups,jobruns,directreservations -o json", step{}); err != nil {
		return err
	}
	var list struct {
		Items []struct {
			Kind     string
			Metadata struct{ Name string }
			Status   struct {
				Phase      string
				Conditions []struct{ Type, Status, Reason, Message string }
			}
		}
	}
	if err := json.Unmarshal([]byte(r.output), &list); err != nil {
		return err
	}
	var errs []error
	for _, o := range list.Items {
		for _, c := range o.Status.Conditions {
			if c.Type == "Stalled" && c.Status == "True" && o.Status.Phase != "Failed" {
				errs = append(errs, fmt.Errorf("%s %s is stalled: %s: %s", o.Kind, o.Metadata.Name, c.Reason, c.Message))
			}
		}
	}
	return errors.Join(errs...)
}

// world answers the calls of runs, whatever host they name: nothing leaves the machine.
type world struct{ ended <-chan struct{} }

// RoundTrip answers at once, but for the hosts slow.example.com, which never does, and broken.example.com, which fails.
func (w world) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	status, body := http.StatusOK, `{"done": true}`
	switch r.URL.Hostname() {
	case "slow.example.com":
		select {
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-w.ended:
			return nil, errors.New("the test has ended")
		}
	case "broken.example.com":
		status, body = http.StatusInternalServerError, `{"error": "out of tides"}`
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": []string{"application/json"}},
		Body:   io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, nil
}
