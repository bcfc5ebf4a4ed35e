// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// platforms is what a release is built for.
var platforms = []v1.Platform{
	{OS: "linux", Architecture: "amd64"},
	{OS: "linux", Architecture: "arm64"},
}

// versionVariable is where the linker puts the version, as the Makefile's build target has it.
const versionVariable = "reprise.dev/reprise/internal/version.Version"

// build compiles a package of the repository for a platform, into dir, and returns the path of the program. Neither the
// checkout's place nor its uncommitted files show in the result.
func (s settings) build(ctx context.Context, pkg string, platform v1.Platform, dir string) (string, error) {
	program, err := filepath.Abs(filepath.Join(dir, filepath.Base(pkg)+"-"+platform.Architecture))
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -X "+versionVariable+"="+s.version, "-o", program, pkg)
	cmd.Dir = s.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+platform.OS, "GOARCH="+platform.Architecture,
		// A user's own settings would give another program.
		"GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building %s for %s: %w", pkg, platform, err)
	}
	return program, nil
}
