// SPDX-License-Identifier: Apache-2.0

//go:build unix

package reserve

import (
	"os"
	"os/signal"
	"syscall"

	"reprise.dev/reprise/internal/plugin/cli"
)

// signals are those that are passed on to the command. While there is none they break off the wait.
func signals(f *cli.Factory) <-chan os.Signal {
	f.TakeSignals()
	caught := make(chan os.Signal, 8)
	signal.Notify(caught, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	return caught
}
