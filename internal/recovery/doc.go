// SPDX-License-Identifier: Apache-2.0

// Package recovery decides what a manager does with runs and reservations that an earlier manager left behind. There is no
// start-up script: the rules hold at every reconcile, and a second look changes nothing. Recovery never deletes anything.
// Everything here is pure.
package recovery
