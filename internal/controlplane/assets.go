// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Assets are the binaries of a control plane, by path.
type Assets struct {
	// Dir holds etcd, kube-apiserver and kubectl: a value for KUBEBUILDER_ASSETS.
	Dir string
	// Etcd is the path of etcd.
	Etcd string
	// APIServer is the path of kube-apiserver.
	APIServer string
	// Kubectl is the path of kubectl.
	Kubectl string
	// ControllerManager is the path of kube-controller-manager; empty when it was not asked for.
	ControllerManager string
	// Scheduler is the path of kube-scheduler; empty when it was not asked for.
	Scheduler string
	// Kubelet is the path of kubelet; empty when it was not asked for.
	Kubelet string
}

// AssetOptions say what is needed.
type AssetOptions struct {
	// ControllerManager asks for kube-controller-manager too, which no download brings: it is built where it is missing.
	ControllerManager bool
	// Scheduler asks for kube-scheduler too, which no download brings either.
	Scheduler bool
	// Node asks for kube-scheduler and kubelet too, which no download brings either: they are what runs pods. Linux only.
	Node bool
	// Progress receives a line now and then while something is downloaded or built; nil means standard error.
	Progress io.Writer
}

// EnsureAssets returns the binaries of a control plane. It looks in KUBEBUILDER_ASSETS, then in the store that
// setup-envtest keeps, then lets setup-envtest download into that store, then builds from source into it, which takes
// minutes once per machine. KUBERNETES=oldest asks for the oldest release that is supported instead of the newest. It is
// safe to be called by several processes at once: one works, the others wait. The error names what was tried and what a
// person can do.
func EnsureAssets(ctx context.Context, o AssetOptions) (Assets, error) {
	f, err := newFinder(o.Progress)
	if err != nil {
		return Assets{}, err
	}
	found, err := f.find(ctx, o.ControllerManager)
	if err == nil && o.Scheduler {
		found.Scheduler, err = f.extra(ctx, found.Dir, scheduler)
	}
	if err == nil && o.Node {
		err = f.addNode(ctx, &found)
	}
	return found, err
}

// finder decides where binaries come from. What it does to the machine is in its functions, so that tests can watch
// the decisions alone.
type finder struct {
	assetsDir string // KUBEBUILDER_ASSETS
	store     string
	version   string // the version that can be built, without the v
	platform  string

	// probe runs a binary for its version.
	probe func(ctx context.Context, name, path string) (string, error)
	// download fetches the newest patch of a minor into dir and returns its version.
	download func(ctx context.Context, minor, dir string) (version string, err error)
	// build makes one binary in dir.
	build func(ctx context.Context, name, dir string) error
	// say writes a line of progress.
	say func(format string, args ...any)
}

func newFinder(progress io.Writer) (*finder, error) {
	if progress == nil {
		progress = os.Stderr
	}
	say := func(format string, args ...any) {
		_, _ = fmt.Fprintf(progress, "control plane: "+format+"\n", args...) // nobody reads: nothing to do about it
	}
	root, err := Root()
	if err != nil {
		return nil, err
	}
	module, err := moduleOf(os.Getenv(releaseVariable))
	if err != nil {
		return nil, err
	}
	version, err := pinnedVersion(root, module)
	if err != nil {
		return nil, err
	}
	store, err := storeDir(runtime.GOOS, os.Getenv)
	if err != nil {
		return nil, err
	}
	source := &sources{root: root, module: module, version: version, say: say}
	return &finder{
		assetsDir: os.Getenv("KUBEBUILDER_ASSETS"),
		store:     store,
		version:   version,
		platform:  platform(),
		probe:     probe,
		download:  source.download,
		build:     source.build,
		say:       say,
	}, nil
}

// find is EnsureAssets.
func (f *finder) find(ctx context.Context, withControllerManager bool) (Assets, error) {
	dir, err := f.base(ctx)
	if err != nil {
		return Assets{}, err
	}
	found := Assets{
		Dir:       dir,
		Etcd:      filepath.Join(dir, etcd),
		APIServer: filepath.Join(dir, kubeAPIServer),
		Kubectl:   filepath.Join(dir, kubectl),
	}
	if withControllerManager {
		found.ControllerManager, err = f.extra(ctx, dir, controllerManager)
	}
	return found, err
}

// addNode adds what runs pods.
func (f *finder) addNode(ctx context.Context, found *Assets) (err error) {
	if found.Scheduler, err = f.extra(ctx, found.Dir, scheduler); err != nil {
		return err
	}
	found.Kubelet, err = f.extra(ctx, found.Dir, kubelet)
	return err
}

// base returns a directory with everything of envtestNames.
func (f *finder) base(ctx context.Context) (string, error) {
	var tried []error
	if f.assetsDir == "" {
		tried = append(tried, errors.New("KUBEBUILDER_ASSETS: not set"))
	} else if err := f.check(ctx, f.assetsDir, envtestNames...); err == nil {
		return f.assetsDir, nil
	} else {
		f.say("KUBEBUILDER_ASSETS cannot be used (%v); looking further", err)
		tried = append(tried, fmt.Errorf("KUBEBUILDER_ASSETS: %w", err))
	}
	if dir, err := f.stored(ctx); err == nil {
		return dir, nil
	}

	unlock, err := f.lockStore(ctx)
	if err != nil {
		return "", nothingWorks(append(tried, err))
	}
	defer unlock()
	dir, err := f.stored(ctx) // whoever had the lock may have done the work
	if err == nil {
		return dir, nil
	}
	tried = append(tried, err)
	if dir, err = f.downloaded(ctx); err == nil {
		return dir, nil
	}
	f.say("setup-envtest brought nothing (%v); building Kubernetes %s from source, once per machine", brief(err), f.version)
	tried = append(tried, fmt.Errorf("setup-envtest: %w", err))
	dir = f.itemDir(f.version)
	if err := f.built(ctx, dir, envtestNames...); err != nil {
		return "", nothingWorks(append(tried, fmt.Errorf("build from source: %w", err)))
	}
	return dir, nil
}

// extra returns a binary that no download brings, of the version of the API server in dir, beside it where that is ours to
// write.
func (f *finder) extra(ctx context.Context, dir, name string) (string, error) {
	if f.check(ctx, dir, name) == nil {
		return filepath.Join(dir, name), nil
	}
	if err := f.fits(ctx, dir, name); err != nil {
		return "", err
	}
	home := dir
	if !f.inStore(dir) {
		home = f.itemDir(f.version)
	}
	path := filepath.Join(home, name)
	if f.check(ctx, home, name) == nil {
		return path, nil
	}
	unlock, err := f.lockStore(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	if f.check(ctx, home, name) == nil {
		return path, nil
	}
	if err := f.built(ctx, home, name); err != nil {
		return "", fmt.Errorf("%s is in no download and could not be built: %w\n%s", name, err, advice)
	}
	return path, nil
}

// fits refuses a binary of another minor than the API server's: a newer one uses what that server lacks.
func (f *finder) fits(ctx context.Context, dir, name string) error {
	server, err := f.probe(ctx, kubeAPIServer, filepath.Join(dir, kubeAPIServer))
	if err != nil {
		return err
	}
	if minor(server) != minor(f.version) {
		return fmt.Errorf("%s has kube-apiserver %s and no %s, and the one this project builds is %s: "+
			"put a matching one there, or unset KUBEBUILDER_ASSETS", dir, server, name, f.version)
	}
	return nil
}

// stored returns the newest usable directory of the store.
func (f *finder) stored(ctx context.Context) (string, error) {
	tried := []error{fmt.Errorf("store %s: no usable Kubernetes %s.x for %s", f.store, minor(f.version), f.platform)}
	for _, version := range f.storedVersions() {
		dir := f.itemDir(version)
		err := f.check(ctx, dir, envtestNames...)
		if err == nil {
			return dir, nil
		}
		tried = append(tried, err)
	}
	return "", errors.Join(tried...)
}

func (f *finder) downloaded(ctx context.Context) (dir string, err error) {
	err = f.inTemporary(func(temporary string) error {
		version, err := f.download(ctx, minor(f.version), temporary)
		if err != nil {
			return err
		}
		dir = f.itemDir(version)
		return f.install(ctx, temporary, dir, envtestNames)
	})
	return dir, err
}

// built builds those of the binaries that are not whole, and puts each in place as soon as it is, so that a build that
// is interrupted goes on where it was.
func (f *finder) built(ctx context.Context, dir string, names ...string) error {
	return f.inTemporary(func(temporary string) error {
		for _, name := range names {
			if err := f.check(ctx, dir, name); err == nil {
				continue
			} else if !errors.Is(err, os.ErrNotExist) {
				f.say("building %s again: %v", name, err)
			}
			start := time.Now()
			if err := f.build(ctx, name, temporary); err != nil {
				return err
			}
			if err := f.install(ctx, temporary, dir, []string{name}); err != nil {
				return err
			}
			f.say("%s is built (%s)", name, time.Since(start).Round(time.Second))
		}
		return nil
	})
}

// check says what is wrong with the named binaries of a directory; nil means that they can be used. What we have put
// there ourselves is compared with its record, anything else has to run.
func (f *finder) check(ctx context.Context, dir string, names ...string) error {
	records := readManifest(dir)
	for _, name := range names {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if recorded, ok := records[name]; ok {
			err = recorded.matches(path, info)
		} else {
			_, err = f.probe(ctx, name, path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const advice = `What helps, any one of:
  - set KUBEBUILDER_ASSETS to a directory with etcd, kube-apiserver and kubectl (and kube-controller-manager);
  - let this machine reach the download site of setup-envtest, or a Go module proxy (see GOPROXY);
  - copy the store of setup-envtest from a machine where this has worked.`

func nothingWorks(tried []error) error {
	var text strings.Builder
	text.WriteString("no binaries of a Kubernetes control plane could be had:")
	for _, err := range tried {
		text.WriteString("\n  - " + strings.ReplaceAll(err.Error(), "\n", "\n    "))
	}
	return fmt.Errorf("%s\n%s", text.String(), advice)
}

// brief cuts an error to the line that a person needs while the work goes on.
func brief(err error) string {
	const most = 200
	line := firstLine(err.Error())
	if len(line) > most {
		line = line[:most] + "…"
	}
	return line
}
