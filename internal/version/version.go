// SPDX-License-Identifier: Apache-2.0

// Package version tells which build of Reprise this is.
package version

import "runtime/debug"

// Version is stamped by the linker with what `git describe` says. Empty means that nobody has: then String asks the
// build itself.
var Version string

// String returns the version of this binary: the stamped one, else the module version or the revision that the Go
// toolchain recorded, else "unknown". It is never empty.
func String() string {
	if Version != "" {
		return Version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	return recorded(info)
}

const unknown = "unknown"

// recorded returns what the build information says of the version.
func recorded(info *debug.BuildInfo) string {
	// "(devel)" is what the toolchain writes for a build inside a checkout.
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && setting.Value != "" {
			return setting.Value
		}
	}
	return unknown
}
