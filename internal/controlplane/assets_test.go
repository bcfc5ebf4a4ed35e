// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	ours      = "1.37.1"
	foreignOS = "plan9-mips"
)

// world is a finder whose downloads and builds are files of one line, "<name> <version> end": one without its end is
// truncated and does not run.
type world struct {
	*finder
	t *testing.T

	mu         sync.Mutex
	built      []string
	downloads  int
	downloaded string            // the version a download brings; empty means that the site cannot be reached
	failing    map[string]string // the binaries that cannot be built, with what the builder says
	said       []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, failing: map[string]string{}}
	w.finder = &finder{
		store:    filepath.Join(t.TempDir(), "store"),
		version:  ours,
		platform: "linux-amd64",
		probe:    fakeProbe,
		download: w.fakeDownload,
		build:    w.fakeBuild,
		say:      w.fakeSay,
	}
	return w
}

func whole(name, version string) string { return name + " " + version + " end" }

func fakeProbe(_ context.Context, name, path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	words := strings.Fields(string(data))
	if len(words) != 3 || words[0] != name || words[2] != "end" {
		return "", fmt.Errorf("%s does not run: truncated", path)
	}
	return words[1], nil
}

func (w *world) fakeDownload(_ context.Context, _, dir string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.downloads++
	if w.downloaded == "" {
		return "", errors.New("no such host")
	}
	w.fill(dir, w.downloaded, envtestNames...)
	return w.downloaded, nil
}

func (w *world) fakeBuild(_ context.Context, name, dir string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if why := w.failing[name]; why != "" {
		return errors.New(why)
	}
	w.built = append(w.built, name)
	return os.WriteFile(filepath.Join(dir, name), []byte(whole(name, ours)), 0o755)
}

func (w *world) fakeSay(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, fmt.Sprintf(format, args...))
}

// fill puts whole binaries into a directory.
func (w *world) fill(dir, version string, names ...string) {
	w.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		w.t.Error(err)
	}
	for _, name := range names {
		w.put(filepath.Join(dir, name), whole(name, version))
	}
}

func (w *world) put(path, content string) {
	w.t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		w.t.Error(err)
	}
}

func (w *world) mustFind(withControllerManager bool) Assets {
	w.t.Helper()
	found, err := w.find(w.t.Context(), withControllerManager)
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func (w *world) wantBuilt(names ...string) {
	w.t.Helper()
	if !slices.Equal(w.built, names) {
		w.t.Errorf("built %v, want %v", w.built, names)
	}
}

func (w *world) wantDir(found Assets, dir string) {
	w.t.Helper()
	if found.Dir != dir || found.Etcd != filepath.Join(dir, "etcd") ||
		found.APIServer != filepath.Join(dir, "kube-apiserver") || found.Kubectl != filepath.Join(dir, "kubectl") {
		w.t.Errorf("found %+v, want all in %s", found, dir)
	}
}

func TestTheSourcesAreTriedInOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		have      func(w *world) (want string)
		downloads int
		built     []string
	}{
		"KUBEBUILDER_ASSETS wins over a full store": {
			have: func(w *world) string {
				w.assetsDir = w.t.TempDir()
				w.fill(w.assetsDir, "1.30.0", envtestNames...)
				w.fill(w.itemDir(ours), ours, envtestNames...)
				return w.assetsDir
			},
		},
		"an incomplete KUBEBUILDER_ASSETS falls through to the store": {
			have: func(w *world) string {
				w.assetsDir = w.t.TempDir()
				w.fill(w.assetsDir, ours, etcd, kubectl)
				w.fill(w.itemDir(ours), ours, envtestNames...)
				return w.itemDir(ours)
			},
		},
		"the store's newest patch of the minor is taken, by number": {
			have: func(w *world) string {
				for _, version := range []string{"1.37.9", "1.37.10", "1.38.0", "1.36.11"} {
					w.fill(w.itemDir(version), version, envtestNames...)
				}
				w.fill(filepath.Join(w.store, "k8s", "1.37.11-"+foreignOS), "1.37.11", envtestNames...)
				return w.itemDir("1.37.10")
			},
		},
		"an incomplete directory of the store is passed over for an older complete one": {
			have: func(w *world) string {
				w.fill(w.itemDir("1.37.2"), "1.37.2", etcd)
				w.fill(w.itemDir("1.37.0"), "1.37.0", envtestNames...)
				return w.itemDir("1.37.0")
			},
		},
		"an empty store is filled by a download under the download's version": {
			have: func(w *world) string {
				w.downloaded = "1.37.0"
				return w.itemDir("1.37.0")
			},
			downloads: 1,
		},
		"without a download site everything is built": {
			have:      func(w *world) string { return w.itemDir(ours) },
			downloads: 1,
			built:     envtestNames,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			want := tc.have(w)
			w.wantDir(w.mustFind(false), want)
			w.wantDir(w.mustFind(false), want) // and the second time costs nothing
			if w.downloads != tc.downloads {
				t.Errorf("%d downloads, want %d", w.downloads, tc.downloads)
			}
			w.wantBuilt(tc.built...)
		})
	}
}

func TestAnUnusableKUBEBUILDERASSETSIsNotPassedOverInSilence(t *testing.T) {
	w := newWorld(t)
	w.assetsDir = filepath.Join(t.TempDir(), "nowhere")
	w.mustFind(false)
	if len(w.said) == 0 || !strings.Contains(w.said[0], w.assetsDir) {
		t.Errorf("the first line of progress does not name %s: %q", w.assetsDir, w.said)
	}
}

func TestWhenNothingWorksTheErrorSaysWhatWasTriedAndWhatHelps(t *testing.T) {
	w := newWorld(t)
	w.assetsDir = filepath.Join(t.TempDir(), "nowhere")
	w.failing[etcd] = "the module proxy answers 403"
	_, err := w.find(t.Context(), false)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{w.assetsDir, w.store, "no such host", "the module proxy answers 403", "GOPROXY", "set KUBEBUILDER_ASSETS"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not speak of %q:\n%v", want, err)
		}
	}
}

func TestABinaryOfTheStoreThatIsNotWholeIsBuiltAgainAlone(t *testing.T) {
	for name, damage := range map[string]func(w *world, path string){
		"truncated": func(w *world, path string) {
			if err := os.Truncate(path, 5); err != nil {
				w.t.Error(err)
			}
		},
		"overwritten with as many other bytes": func(w *world, path string) {
			w.put(path, strings.Repeat("x", len(whole(kubectl, ours))))
			w.setTime(path, time.Now().Add(time.Hour))
		},
		"removed": func(w *world, path string) {
			if err := os.Remove(path); err != nil {
				w.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.mustFind(true)
			w.built = nil
			damage(w, filepath.Join(w.itemDir(ours), kubectl))
			w.mustFind(true)
			w.wantBuilt(kubectl)
		})
	}
}

// setTime stands for a write at another time: the clock of a file system may be too coarse for two writes of a test.
func (w *world) setTime(path string, at time.Time) {
	w.t.Helper()
	if err := os.Chtimes(path, at, at); err != nil {
		w.t.Error(err)
	}
}

func TestABinaryThatWasOnlyCopiedIsNotBuiltAgain(t *testing.T) {
	w := newWorld(t)
	w.mustFind(false)
	w.built = nil
	w.setTime(filepath.Join(w.itemDir(ours), etcd), time.Now().Add(time.Hour))
	w.mustFind(false)
	w.wantBuilt()
}

func TestATruncatedBinaryThatSomebodyElseHasPutThereIsBuiltAgain(t *testing.T) {
	w := newWorld(t)
	w.fill(w.itemDir(ours), ours, etcd, kubectl)
	w.put(filepath.Join(w.itemDir(ours), kubeAPIServer), "kube-api")
	w.mustFind(false)
	w.wantBuilt(kubeAPIServer)
}

func TestAnInterruptedBuildGoesOnWhereItWas(t *testing.T) {
	w := newWorld(t)
	w.failing[kubectl] = "killed"
	if _, err := w.find(t.Context(), false); err == nil {
		t.Fatal("no error")
	}
	w.wantBuilt(etcd, kubeAPIServer)
	delete(w.failing, kubectl)
	w.built = nil
	w.mustFind(false)
	w.wantBuilt(kubectl)
}

func TestABuildThatDoesNotRunIsNotPutInPlace(t *testing.T) {
	w := newWorld(t)
	w.build = func(_ context.Context, name, dir string) error {
		return os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o755)
	}
	if _, err := w.find(t.Context(), false); err == nil {
		t.Fatal("no error")
	}
	if _, err := os.Stat(filepath.Join(w.itemDir(ours), etcd)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a binary that does not run is in the store (%v)", err)
	}
}

func TestLeftOversOfAKilledProcessAreRemoved(t *testing.T) {
	w := newWorld(t)
	old := filepath.Join(w.store, temporaryPrefix+"killed")
	w.fill(old, ours, etcd)
	w.mustFind(false)
	left, err := filepath.Glob(filepath.Join(w.store, temporaryPrefix+"*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left over: %v (%v)", left, err)
	}
}

func TestTheControllerManagerIsBuiltWhereItIsMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		have func(w *world) (want string)
	}{
		"beside a download of the store": {func(w *world) string {
			w.downloaded = "1.37.0"
			return w.itemDir("1.37.0")
		}},
		"in our store for a directory of the user's": {func(w *world) string {
			w.assetsDir = w.t.TempDir()
			w.fill(w.assetsDir, "1.37.4", envtestNames...)
			return w.itemDir(ours)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			want := filepath.Join(tc.have(w), controllerManager)
			for range 2 {
				if got := w.mustFind(true).ControllerManager; got != want {
					t.Errorf("found %s, want %s", got, want)
				}
			}
			w.wantBuilt(controllerManager)
		})
	}
}

func TestTheUsersOwnControllerManagerIsTakenWhateverItsVersion(t *testing.T) {
	w := newWorld(t)
	w.assetsDir = t.TempDir()
	w.fill(w.assetsDir, "1.30.0", append([]string{controllerManager}, envtestNames...)...)
	if got, want := w.mustFind(true).ControllerManager, filepath.Join(w.assetsDir, controllerManager); got != want {
		t.Errorf("found %s, want %s", got, want)
	}
}

func TestAControllerManagerOfAnotherMinorThanTheServerIsRefused(t *testing.T) {
	w := newWorld(t)
	w.assetsDir = t.TempDir()
	w.fill(w.assetsDir, "1.36.3", envtestNames...)
	_, err := w.find(t.Context(), true)
	if err == nil || !strings.Contains(err.Error(), "1.36.3") || !strings.Contains(err.Error(), ours) {
		t.Errorf("error %v does not name both versions", err)
	}
	w.wantBuilt()
}

func TestWhatRunsPodsIsBuiltOnceAndOnlyWhenItIsAskedFor(t *testing.T) {
	w := newWorld(t)
	w.downloaded = "1.37.0"
	for range 2 {
		found := w.mustFind(false)
		if found.Scheduler != "" || found.Kubelet != "" {
			t.Errorf("nobody asked for %q and %q", found.Scheduler, found.Kubelet)
		}
		if err := w.addNode(t.Context(), &found); err != nil {
			t.Fatal(err)
		}
		home := w.itemDir("1.37.0")
		if found.Scheduler != filepath.Join(home, scheduler) || found.Kubelet != filepath.Join(home, kubelet) {
			t.Errorf("found %q and %q", found.Scheduler, found.Kubelet)
		}
	}
	w.wantBuilt(scheduler, kubelet)
}
