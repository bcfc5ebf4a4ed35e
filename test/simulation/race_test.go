// SPDX-License-Identifier: Apache-2.0

//go:build race

package simulation

// raced says that the race detector is on, which has goroutines run in any order.
const raced = true
