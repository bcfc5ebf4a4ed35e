// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestWhatIsWrongWithTheOptionsIsSaidBeforeAnythingIsDone(t *testing.T) {
	run := []string{"true"}
	for name, tc := range map[string]struct {
		o    EnterOptions
		want string
	}{
		"no command":                      {EnterOptions{}, "no command"},
		"a name that is a path":           {EnterOptions{Name: "../x", Command: run}, "name"},
		"a name with capitals":            {EnterOptions{Name: "X", Command: run}, "name"},
		"a name that is too long":         {EnterOptions{Name: strings.Repeat("x", 33), Command: run}, "name"},
		"a directory that nobody can see": {EnterOptions{Dir: "/run/x", Command: run}, "/run/x"},
	} {
		if err := tc.o.complete(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestClustersOfDifferentNamesHaveDifferentDirectories(t *testing.T) {
	first, second := EnterOptions{Command: []string{"true"}}, EnterOptions{Name: "second", Command: []string{"true"}}
	for _, o := range []*EnterOptions{&first, &second} {
		if err := o.complete(); err != nil {
			t.Fatal(err)
		}
	}
	if first.Name != DefaultName || first.Dir == second.Dir || first.Progress == nil {
		t.Errorf("%+v and %+v", first, second)
	}
}

func TestOnlyADirectoryThatWasAClustersIsEmptied(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there")
	if err := emptyDir(dir); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, "etcd")
	if err := os.WriteFile(left, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := emptyDir(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data of the cluster before are left (%v)", err)
	}

	precious := filepath.Join(t.TempDir(), "thesis")
	if err := os.WriteFile(precious, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := emptyDir(filepath.Dir(precious)); err == nil {
		t.Error("somebody else's directory is taken")
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

func TestARunningClusterIsFoundByItsFirstProcess(t *testing.T) {
	dir := t.TempDir()
	if _, err := PIDOf(dir); err == nil || !strings.Contains(err.Error(), "no cluster") {
		t.Errorf("an empty directory: %v", err)
	}
	put := func(pid int) {
		if err := os.WriteFile(filepath.Join(dir, pidFile), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(os.Getpid())
	if pid, err := PIDOf(dir); err != nil || pid != os.Getpid() {
		t.Errorf("got %d (%v)", pid, err)
	}
	put(1 << 30)
	if _, err := PIDOf(dir); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("one that has ended: %v", err)
	}
}

func TestStartSaysHowItIsMeantToBeRun(t *testing.T) {
	t.Setenv(dirVariable, "")
	if _, err := Start(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "realnode enter") {
		t.Errorf("error %v", err)
	}
}
