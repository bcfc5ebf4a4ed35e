// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// indexTimeout bounds the question whether the download site is there at all: a machine without it must get on.
	indexTimeout = 15 * time.Second
	// downloadTimeout bounds the download itself, about 100 MB.
	downloadTimeout = 5 * time.Minute
	// progressEvery is the time between two lines of progress: short enough that nobody takes a build for dead.
	progressEvery = 15 * time.Second
)

// sources gets binaries from outside.
type sources struct {
	root    string
	module  string // what builds Kubernetes, below root
	version string
	say     func(format string, args ...any)
	// index is where setup-envtest learns what can be downloaded; empty means the place it knows itself.
	index string
}

// download lets setup-envtest fetch the newest patch of a minor.
func (s *sources) download(ctx context.Context, minor, dir string) (string, error) {
	tool := filepath.Join(dir, "setup-envtest")
	s.say("asking setup-envtest for Kubernetes %s", minor)
	if err := s.goBuild(ctx, filepath.Join("hack", "tools"), "", tool, "sigs.k8s.io/controller-runtime/tools/setup-envtest"); err != nil {
		return "", err
	}
	selector := minor + ".x"
	// --use-env=false: with ENVTEST_USE_ENV it would answer KUBEBUILDER_ASSETS, whose files are not ours to move.
	flags := []string{selector, "--bin-dir", filepath.Join(dir, "unpacked"), "--use-env=false"}
	if s.index != "" {
		flags = append(flags, "--index", s.index)
	}
	if _, err := setupEnvtest(ctx, indexTimeout, tool, "list", flags...); err != nil {
		return "", err
	}
	s.say("downloading Kubernetes %s", selector)
	item, err := setupEnvtest(ctx, downloadTimeout, tool, "use", append(flags, "--print", "path")...)
	if err != nil {
		return "", err
	}
	for _, name := range envtestNames {
		if err := os.Rename(filepath.Join(item, name), filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	return strings.TrimSuffix(filepath.Base(item), "-"+platform()), nil
}

// setupEnvtest runs the tool and returns what it prints.
func setupEnvtest(ctx context.Context, limit time.Duration, tool, verb string, flags ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, append([]string{verb}, flags...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return "", fmt.Errorf("no answer within %s", limit)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// build makes one binary from source.
func (s *sources) build(ctx context.Context, name, dir string) error {
	return s.goBuild(ctx, s.module, versionStamps(s.version), filepath.Join(dir, name), components[name].pkg)
}

// versionStamps are the linker flags that make Kubernetes' binaries tell their version. There is no build date in them:
// the same source gives the same binary.
func versionStamps(version string) string {
	major, rest, _ := strings.Cut(version, ".")
	minorNumber, _, _ := strings.Cut(rest, ".")
	flags := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X", pkg+".gitVersion=v"+version,
			"-X", pkg+".gitMajor="+major,
			"-X", pkg+".gitMinor="+minorNumber,
			"-X", pkg+".gitTreeState=clean")
	}
	return strings.Join(flags, " ")
}

// goBuild builds a package of a nested module and tells how far it is.
func (s *sources) goBuild(ctx context.Context, module, ldflags, out, pkg string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(s.root, module), "-mod=readonly", "-v",
		"-trimpath", "-buildvcs=false", "-ldflags", ldflags, "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("the go command does not run: %w", err)
	}
	var log buildLog
	stop := s.report(filepath.Base(out), &log)
	readErr := log.follow(stderr)
	err = cmd.Wait()
	stop()
	if err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, log.tail())
	}
	return readErr
}

// report writes a line of progress now and then until stop is called.
func (s *sources) report(name string, log *buildLog) (stop func()) {
	start, ticker, done := time.Now(), time.NewTicker(progressEvery), make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				s.say("building %s, %s so far, %s", name, time.Since(start).Round(time.Second), log.progress())
			}
		}
	}()
	return func() { ticker.Stop(); close(done) }
}

// buildLog keeps count of what go build says: a line per module it downloads and per package it compiles.
type buildLog struct {
	mu                   sync.Mutex
	downloaded, compiled int
	last                 []string
}

const keptLines = 15

func (l *buildLog) follow(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		l.add(lines.Text())
	}
	if err := lines.Err(); err != nil {
		_, drainErr := io.Copy(io.Discard, r) // or the builder would wait for its reader for ever
		return errors.Join(err, drainErr)
	}
	return nil
}

func (l *buildLog) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case strings.HasPrefix(line, "go: downloading"):
		l.downloaded++
		return
	case !strings.ContainsAny(line, " \t"):
		l.compiled++
		return
	}
	l.last = append(l.last, line)
	if len(l.last) > keptLines {
		l.last = l.last[1:]
	}
}

func (l *buildLog) progress() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("%d modules downloaded, %d packages compiled", l.downloaded, l.compiled)
}

func (l *buildLog) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.last, "\n")
}
