// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestTwoWhoNeedTheBinariesAtOnceBuildThemOnce(t *testing.T) {
	first := newWorld(t)
	second := newWorld(t)
	second.store = first.store

	// The first builder stops in the middle of its work until the second has found the lock taken.
	waiting := make(chan struct{})
	build := first.build
	first.build = func(ctx context.Context, name, dir string) error {
		<-waiting
		return build(ctx, name, dir)
	}
	building := make(chan struct{})
	var once sync.Once
	first.say = func(string, ...any) { once.Do(func() { close(building) }) } // it speaks when it holds the lock and begins
	second.say = func(format string, _ ...any) {
		if strings.Contains(format, "another process") {
			close(waiting)
		}
	}

	var all sync.WaitGroup
	all.Go(func() { first.mustFind(true) })
	<-building
	all.Go(func() { second.mustFind(true) })
	all.Wait()
	first.wantBuilt(append(append([]string{}, envtestNames...), controllerManager)...)
	second.wantBuilt()
	if second.downloads != 0 {
		t.Error("the one that waited downloaded too")
	}
}

func TestWaitingForAnotherProcessEndsWithTheContext(t *testing.T) {
	w := newWorld(t)
	unlock, err := w.lockStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	w.say = func(string, ...any) { cancel() } // it speaks when it begins to wait
	if _, err := w.find(ctx, false); err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("error %v, want the context's", err)
	}
}

func TestTheLockOfAProcessThatWasKilledIsFree(t *testing.T) {
	w := newWorld(t)
	if err := os.MkdirAll(w.store, 0o755); err != nil {
		t.Fatal(err)
	}
	holder := startHelper(t, "hold-lock", w.store)
	holder.waitFor("locked")
	impatient, cancel := context.WithTimeout(t.Context(), 2*lockPoll)
	defer cancel()
	if _, err := w.lockStore(impatient); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("locking beside another process: %v, want to wait", err)
	}
	holder.kill()
	unlock, err := w.lockStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

// holdLock is the body of the helper process.
func holdLock(store string) error {
	f := &finder{store: store, say: func(string, ...any) {}}
	unlock, err := f.lockStore(context.Background())
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stdout.WriteString("locked\n"); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin) // until killed, or the test is gone
	return err
}

func TestTheStoreIsTheOneOfSetupEnvtest(t *testing.T) {
	env := func(pairs ...string) func(string) string {
		return func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	for name, tc := range map[string]struct {
		goos string
		env  func(string) string
		want string
	}{
		"Linux with XDG_DATA_HOME": {"linux", env("HOME", "/h", "XDG_DATA_HOME", "/x"), "/x/kubebuilder-envtest"},
		"Linux without":            {"linux", env("HOME", "/h"), "/h/.local/share/kubebuilder-envtest"},
		"macOS":                    {"darwin", env("HOME", "/h"), "/h/Library/Application Support/io.kubebuilder.envtest"},
		"no home at all":           {"linux", env(), ""},
		"no home at all on macOS":  {"darwin", env(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := storeDir(tc.goos, tc.env)
			if got != filepath.FromSlash(tc.want) || (err == nil) != (tc.want != "") {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}
