// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package realnode

import (
	"context"
	"errors"
)

// InitVerb is the first argument of the first process in the namespaces; Init has the others.
const InitVerb = "init"

var errNotLinux = errors.New("a cluster that runs pods needs Linux")

func runInNamespaces(context.Context, EnterOptions) (int, error) { return 0, errNotLinux }

func unmount(string) error { return errNotLinux }

// Init is the first process of the namespaces that Enter makes.
func Init(context.Context, []string) int { return 1 }
