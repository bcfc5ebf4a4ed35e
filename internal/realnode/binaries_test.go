// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func rootWith(t *testing.T, files ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, file := range files {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestWhatIsInstalledComesBeforeWhatWasUnpacked(t *testing.T) {
	installed := rootWith(t, "usr/bin/containerd", "usr/bin/ctr", "usr/sbin/runc")
	unpacked := rootWith(t, "usr/bin/containerd", "usr/bin/ctr", "usr/sbin/runc", "usr/lib/cni/bridge")
	got, err := findRuntime(installed, unpacked)
	if err != nil {
		t.Fatal(err)
	}
	want := runtimeBinaries{
		containerd: installed + "/usr/bin/containerd",
		ctr:        installed + "/usr/bin/ctr",
		runc:       installed + "/usr/sbin/runc",
		cni:        unpacked + "/usr/lib/cni",
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	_, err := findRuntime(rootWith(t, "usr/bin/containerd", "usr/bin/ctr"), filepath.Join(t.TempDir(), "nothing"))
	if err == nil || !strings.HasSuffix(err.Error(), "missing: runc, bridge") {
		t.Errorf("error %v", err)
	}
}
