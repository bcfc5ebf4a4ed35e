// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"reprise.dev/reprise/internal/realnode"
)

func TestABadCommandLineIsAnError(t *testing.T) {
	if _, err := run(t.Context(), nil, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("without a verb: %v, want the usage", err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"an unknown verb":             {[]string{"down"}, "unknown verb"},
		"an unknown flag":             {[]string{"up", "-no-such-flag"}, "no-such-flag"},
		"a name that is a path":       {[]string{"enter", "-name", "../x", "--", "true"}, "name"},
		"nothing to run":              {[]string{"enter"}, "no command"},
		"nothing to run in a cluster": {[]string{"exec"}, "no command"},
		"a cluster that does not run": {[]string{"exec", "-dir", filepath.Join(t.TempDir(), "none"), "--", "true"}, "no cluster"},
	} {
		if _, err := run(t.Context(), tc.args, io.Discard); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestTheFirstProcessOfAClusterIsNobodyElse(t *testing.T) {
	if code, err := run(t.Context(), []string{realnode.InitVerb, "true"}, io.Discard); code == 0 || err != nil {
		t.Errorf("code %d (%v)", code, err)
	}
}
