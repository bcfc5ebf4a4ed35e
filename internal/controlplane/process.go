// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
)

// process is a running child. It dies with this process where the kernel can promise that (Linux).
type process struct {
	name    string
	logPath string
	// logFrom is where the child's part of the log begins.
	logFrom int64
	cmd     *exec.Cmd
	// asked says that somebody wanted its end, or that it has not shown yet that it works.
	asked atomic.Bool
	// done is closed when the child has ended, after err was set.
	done chan struct{}
	err  error
}

// startProcess runs a binary with its output at the end of <dir>/<name>.log.
func startProcess(dir, name, path string, args []string) (*process, error) {
	p := &process{name: name, logPath: dir + "/" + name + ".log", done: make(chan struct{})}
	log, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	if p.logFrom, err = log.Seek(0, io.SeekEnd); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	p.cmd = exec.CommandContext(context.Background(), path, args...) // ended by kill, not by the context of the start
	p.cmd.Dir = dir
	p.cmd.Env = childEnv(dir)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = diesWithParent()

	started := make(chan error, 1)
	go func() {
		// Linux sends the death signal when the thread that started the child ends, so that thread has to stay. It is
		// never unlocked: it ends with this goroutine, when the child is gone.
		runtime.LockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.done)
		}
	}()
	if err := errors.Join(<-started, log.Close()); err != nil {
		return nil, fmt.Errorf("%s does not start: %w", name, err)
	}
	return p, nil
}

// childEnv is the environment of everything this package runs: what is needed to run at all, and no KUBECONFIG, no
// proxy and no other setting that would make one machine's control plane differ from another's.
func childEnv(home string) []string {
	env := []string{"HOME=" + home}
	for _, name := range []string{"PATH", "TMPDIR", "LANG"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// kill ends the child at once and waits for it. Nothing is lost: etcd survives it by design, the others keep no state.
func (p *process) kill() error {
	err := p.cmd.Process.Kill()
	<-p.done
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

func (p *process) hasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// died explains the end of a child that should be running.
func (p *process) died() error {
	how := "by itself"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s ended (%s); its last words:\n%s", p.name, how, p.lastWords())
}

// portTaken reports whether the child ended because another process uses its port.
func (p *process) portTaken() bool {
	return p.hasEnded() && strings.Contains(p.lastWords(), "address already in use")
}

// lastWords returns the end of the child's log.
func (p *process) lastWords() string {
	const most = 4000
	data, err := os.ReadFile(p.logPath)
	if err != nil {
		return err.Error()
	}
	data = data[min(int(p.logFrom), len(data)):]
	if len(data) > most {
		data = data[len(data)-most:]
	}
	return strings.TrimSpace(string(data))
}
