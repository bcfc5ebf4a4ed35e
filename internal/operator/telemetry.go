// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"

	"reprise.dev/reprise/controllers/telemetry"
	"reprise.dev/reprise/internal/incarnation"
)

// addTelemetry has what the caches show told as metrics, if anybody can ask for them.
func (op *Operator) addTelemetry(ctx context.Context, self *incarnation.Self) error {
	if op.options.MetricsAddress == "0" {
		return nil
	}
	return telemetry.New(telemetry.Options{Self: self, Clock: op.options.Clock}).SetupWithManager(ctx, op.manager)
}
