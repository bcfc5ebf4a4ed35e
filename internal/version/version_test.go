// SPDX-License-Identifier: Apache-2.0

package version

import (
	"runtime/debug"
	"testing"
)

func TestAStampedVersionWins(t *testing.T) {
	before := Version
	t.Cleanup(func() { Version = before })
	Version = "v1.2.3"
	if got := String(); got != "v1.2.3" {
		t.Errorf("String() = %q", got)
	}
}

func TestAnUnstampedBuildStillSaysWhatItIs(t *testing.T) {
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123abc"}
	for name, tc := range map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"installed as a module: its version": {
			debug.BuildInfo{Main: debug.Module{Version: "v0.4.0"}, Settings: []debug.BuildSetting{revision}}, "v0.4.0"},
		"built in a checkout: the revision": {
			debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{revision}}, "0123abc"},
		"built from plain files: unknown": {debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := recorded(&tc.info); got != tc.want {
				t.Errorf("recorded() = %q, want %q", got, tc.want)
			}
		})
	}
}
