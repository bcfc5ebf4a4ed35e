// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"reprise.dev/reprise/internal/controlplane"
)

var plane *controlplane.Plane

// startTimeout allows for the first build of the control plane's binaries on a machine.
const startTimeout = 15 * time.Minute

func TestMain(m *testing.M) {
	code, err := withPlane(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func withPlane(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	plane, err = controlplane.Acquire(ctx, controlplane.Options{ControllerManager: true, CRDDirs: []string{"config/crd/bases"}})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	return m.Run(), nil
}
