// SPDX-License-Identifier: Apache-2.0

package plugin

import "flag"

// sideBySide lets 10 tests run at once, unless -parallel says otherwise: they wait most of the time.
func sideBySide() {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" })
	if set {
		return
	}
	if err := flag.Set("test.parallel", "10"); err != nil {
		panic(err) // there is no such flag
	}
}
