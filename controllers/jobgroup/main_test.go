// SPDX-License-Identifier: Apache-2.0

package jobgroup

import (
	"context"
	"os"
	"testing"

	"reprise.dev/reprise/internal/controlplane"
)

var plane *controlplane.Plane

func TestMain(m *testing.M) {
	o := controlplane.Options{ControllerManager: true, CRDDirs: []string{"config/crd/bases"}}
	os.Exit(controlplane.RunTests(m, controlplane.Acquire, o, func(_ context.Context, p *controlplane.Plane) (func(), error) {
		plane = p
		return nil, nil
	}))
}
