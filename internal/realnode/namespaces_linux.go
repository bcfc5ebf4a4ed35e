// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
)

// InitVerb is the first argument of the first process in the namespaces; Init has the others.
const InitVerb = "init"

// initFailed is the exit code when the command could not be run at all.
const initFailed = 125

// runInNamespaces runs this program again as the first process of new namespaces, which runs the command. The kernel ends
// everything in them when it ends, and ends it when this process does, however that comes.
func runInNamespaces(ctx context.Context, o EnterOptions) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{InitVerb}, o.Command...)...)
	cmd.Env = append(os.Environ(), nameVariable+"="+o.Name, dirVariable+"="+o.Dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
	}
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the death signal is sent when the thread ends that started the child
		err := cmd.Start()
		if err == nil {
			err = os.WriteFile(filepath.Join(o.Dir, pidFile), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644)
			err = errors.Join(err, cmd.Wait())
		}
		ended <- err
	}()
	err = <-ended
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), nil // the first process ends with the command's code, and no signal but SIGKILL ends it
	}
	if err != nil && ctx.Err() != nil && cmd.ProcessState != nil && cmd.ProcessState.Success() {
		return 0, nil // asked to end, and it did so in order
	}
	return 0, err
}

// exitCode is what a shell makes of a process's end.
func exitCode(status syscall.WaitStatus) int {
	if signal := status.Signal(); signal > 0 {
		return 128 + int(signal)
	}
	return status.ExitStatus()
}

// Init is the first process of the namespaces that Enter makes: it sets them up, runs the command, passes SIGTERM on to it and
// waits for what loses its parent. It returns the code to exit with. (Ctrl-C at a terminal reaches the command by itself.)
func Init(ctx context.Context, command []string) int {
	if os.Getpid() != 1 || !Inside() || len(command) == 0 {
		say(os.Stderr, "%s is for the first process of a cluster alone", InitVerb)
		return initFailed
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if err := setUp(ctx, os.Getenv(dirVariable)); err != nil {
		say(os.Stderr, "%v", err)
		return initFailed
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		say(os.Stderr, "%v", err)
		return initFailed
	}
	pid, err := syscall.ForkExec(path, command, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		say(os.Stderr, "%s: %v", path, err)
		return initFailed
	}
	go func() {
		for s := range signals {
			if s == syscall.SIGTERM {
				_ = syscall.Kill(pid, syscall.SIGTERM) // it may be about to end
			}
		}
	}()
	return reap(pid)
}

// reap waits for every process that has lost its parent, until the command ends.
func reap(command int) int {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			say(os.Stderr, "the command is lost: %v", err)
			return initFailed
		case pid == command:
			return exitCode(status)
		}
	}
}

// setUp makes the mounts and the network of a cluster.
func setUp(ctx context.Context, dir string) error {
	// What is mounted from here on is nobody else's.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts cannot be made private: %w", err)
	}
	const plain = syscall.MS_NOSUID | syscall.MS_NODEV
	if err := syscall.Mount("proc", "/proc", "proc", plain|syscall.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("no /proc of its own: %w", err)
	}
	if err := pretendSettings(dir); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", "/run", "tmpfs", plain, "mode=0755"); err != nil {
		return fmt.Errorf("no /run of its own: %w", err)
	}
	if err := os.Mkdir(inside, 0o755); err != nil {
		return err
	}
	if err := syscall.Mount(dir, inside, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("%s cannot be mounted: %w", dir, err)
	}
	if err := nameNobody(dir); err != nil {
		return err
	}
	for parent, names := range ownPlaces {
		if err := shadow(parent, names); err != nil {
			return fmt.Errorf("%s cannot be covered: %w", parent, err)
		}
	}
	return setUpNetwork(ctx)
}

// nameNobody makes every question about a name fail at once, such as that of a pod whose image is somewhere else: there is
// no way to the machine's name servers, and it takes long to find that out.
func nameNobody(dir string) error {
	const resolver = "/etc/resolv.conf"
	if _, err := os.Stat(resolver); err != nil {
		return nil // it was in the machine's /run; without it, the same holds
	}
	own := filepath.Join(dir, "settings", "resolv.conf")
	if err := os.WriteFile(own, []byte("nameserver 127.0.0.1\n"), 0o644); err != nil {
		return err
	}
	if err := syscall.Mount(own, resolver, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("%s cannot be covered: %w", resolver, err)
	}
	return nil
}

// ownPlaces are where the kubelet and the runtime write whatever they are told.
var ownPlaces = map[string][]string{
	"/opt":     {"containerd"},
	"/var/lib": {"cni", "kubelet"},
	"/var/log": {"containers"},
}

// shadow covers a directory with one in memory that has the same entries, save for some names: what is written there goes with
// the cluster.
func shadow(parent string, names []string) error {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	handle, err := os.Open(parent)
	if err != nil {
		return err
	}
	defer func() { _ = handle.Close() }() // nothing was written through it
	if err := syscall.Mount("tmpfs", parent, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=0755"); err != nil {
		return err
	}
	covered := fmt.Sprintf("/proc/self/fd/%d", handle.Fd())
	for _, entry := range entries {
		if slices.Contains(names, entry.Name()) {
			continue
		}
		if err := mirror(filepath.Join(covered, entry.Name()), filepath.Join(parent, entry.Name()), entry); err != nil {
			return err
		}
	}
	return nil
}

// mirror makes an entry of a directory appear at another place.
func mirror(from, to string, entry os.DirEntry) error {
	switch {
	case entry.Type()&os.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case entry.IsDir():
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
	default:
		if err := os.WriteFile(to, nil, 0o600); err != nil {
			return err
		}
	}
	return syscall.Mount(from, to, "", syscall.MS_BIND|syscall.MS_REC, "")
}

// unmount takes away what is mounted at a place, once nobody uses it.
func unmount(place string) error { return syscall.Unmount(place, syscall.MNT_DETACH) }

// kubeletSettings are the kernel's settings that a kubelet insists on. They are the whole machine's.
var kubeletSettings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// pretendSettings shows the kubelet files with the values that it would set: the machine keeps its own.
func pretendSettings(dir string) error {
	for name, value := range kubeletSettings {
		file := filepath.Join(dir, "settings", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := syscall.Mount(file, "/proc/sys/"+name, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("setting %s cannot be covered: %w", name, err)
		}
	}
	return nil
}

// setUpNetwork makes the bridge of the pods, which has the addresses of the node and of the API. The default route leads
// nowhere: kube-apiserver wants to find one.
func setUpNetwork(ctx context.Context) error {
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		{"link", "add", bridge, "address", bridgeMAC, "type", "bridge"},
		{"address", "add", NodeIP + "/16", "dev", bridge},
		{"address", "add", apiService + "/32", "dev", bridge},
		{"link", "set", bridge, "up"},
		{"route", "add", "default", "dev", bridge},
	} {
		if err := command(ctx, "/", "ip", args...); err != nil {
			return err
		}
	}
	return nil
}
