// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"slices"
	"strings"
	"sync"
)

// watcher is a kubectl that watches, of whose output it shows what is about some objects.
type watcher struct {
	stop  context.CancelFunc
	ended chan struct{}

	mu    sync.Mutex
	lines []string
}

// startWatch runs "kubectl get <what> --watch" until it is stopped or ctx ends.
func (s *stage) startWatch(ctx context.Context, what, prefix string) (*watcher, error) {
	ctx, stop := context.WithCancel(ctx)
	cmd := s.plane.Kubectl(ctx, "--namespace", s.ns, "get", what, "--watch")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		stop()
		return nil, err
	}
	w := &watcher{stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if line := lines.Text(); strings.HasPrefix(line, "NAME") || strings.HasPrefix(line, prefix) {
				s.say.quote(line)
				w.mu.Lock()
				w.lines = append(w.lines, line)
				w.mu.Unlock()
			}
		}
		_ = cmd.Wait() // it was killed
	}()
	return w, nil
}

// shown reports whether a line was shown that begins with the first word and has all the others.
func (w *watcher) shown(words ...string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.lines, func(line string) bool {
		fields := strings.Fields(line)
		missing := func(word string) bool { return !slices.Contains(fields, word) }
		return len(fields) > 0 && fields[0] == words[0] && !slices.ContainsFunc(words, missing)
	})
}

// end stops the watch and returns when it is over.
func (w *watcher) end() {
	w.stop()
	<-w.ended
}
