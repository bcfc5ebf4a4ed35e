// SPDX-License-Identifier: Apache-2.0

package guard

// Terminal is nothing here: every process of a console may read from it.
type Terminal struct{}

// OpenTerminal returns nil.
func OpenTerminal() *Terminal { return nil }

// TakeBack does nothing.
func (t *Terminal) TakeBack(bool) {}
