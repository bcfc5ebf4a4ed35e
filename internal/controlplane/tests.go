// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"os"
	"time"
)

// testsTimeout bounds the preparation of tests: the first build of the binaries on a machine takes minutes.
const testsTimeout = 15 * time.Minute

// RunTests runs the tests of a package beside a control plane and returns the code to exit with. begin is Acquire, or Start
// where the tests must have a plane of their own. prepare makes what the tests need and returns what undoes it, which may be nil.
func RunTests(
	tests interface{ Run() int },
	begin func(context.Context, Options) (*Plane, error), o Options,
	prepare func(context.Context, *Plane) (undo func(), err error),
) (code int) {
	ctx, cancel := context.WithTimeout(context.Background(), testsTimeout)
	defer cancel()
	plane, err := begin(ctx, o)
	if err != nil {
		return failed(err)
	}
	defer func() {
		if err := plane.Stop(); err != nil {
			code = max(code, failed(err))
		}
	}()
	undo, err := prepare(ctx, plane)
	if undo != nil {
		defer undo()
	}
	if err != nil {
		return failed(err)
	}
	return tests.Run()
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
