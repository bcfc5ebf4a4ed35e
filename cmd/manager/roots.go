// SPDX-License-Identifier: Apache-2.0

package main

import (
	// Calls of runs and notifications go over HTTPS, and the image has no certificates of a system: these roots are
	// trusted where there are none. Those of a system, or mounted as one's, win.
	_ "golang.org/x/crypto/x509roots/fallback"
)
