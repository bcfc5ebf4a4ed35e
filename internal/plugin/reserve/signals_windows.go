// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"os"

	"reprise.dev/reprise/internal/plugin/cli"
)

// signals break off the wait. Ctrl-C reaches the command by itself.
func signals(f *cli.Factory) <-chan os.Signal { return f.TakeSignals() }
