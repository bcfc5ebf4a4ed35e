// SPDX-License-Identifier: Apache-2.0

// Command capture makes the pictures of the plugin in the README: it starts a control plane and a manager on this machine, sets a
// scene, runs the real plugin on a terminal of its own, and draws what that shows.
//
//	capture -plugin bin/kubectl-reprise -out docs/images
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// columns of the terminal.
const columns = 122

// patience bounds everything but the first build of the control plane.
const patience = 10 * time.Minute

// shots are the pictures: what is typed, and what has to be seen before the picture is taken.
var shots = []struct{ name, command, awaits string }{
	{"queue", "kubectl reprise queue agents --watch", "chapter-9"},
	{"why", "kubectl reprise why chapter-9", "chapter-9"},
	{"tree", "kubectl reprise tree jg/edition-12", "print"},
}

func main() {
	plugin := flag.String("plugin", "bin/kubectl-reprise", "the plugin")
	out := flag.String("out", "docs/images", "where the pictures go")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := captureAll(ctx, *plugin, *out)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "capture:", err)
		os.Exit(1)
	}
}

func captureAll(ctx context.Context, plugin, out string) error {
	plugin, err := filepath.Abs(plugin)
	if err != nil {
		return err
	}
	s, err := newStage(ctx)
	if err != nil {
		return err
	}
	defer s.strike()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.set(ctx); err != nil {
		return err
	}
	for _, shot := range shots {
		shown, err := record(ctx, s.kubeconfig, plugin, shot.command, shot.awaits)
		if err != nil {
			return fmt.Errorf("%s: %w", shot.command, err)
		}
		path := filepath.Join(out, shot.name+".svg")
		if err := os.WriteFile(path, []byte(picture(shot.command, shown, columns)), 0o644); err != nil { //nolint:gosec // a picture is for everybody
			return err
		}
		fmt.Println("wrote", path)
	}
	return nil
}
