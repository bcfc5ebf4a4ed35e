// SPDX-License-Identifier: Apache-2.0

// Package faultwire is a manager process's connection to the API server, on which a test makes things go wrong: the process
// dies at its k-th write, before it is sent or after it was carried out and before the answer arrives; it stands still
// there and goes on later; a request is refused, its answer lost, or it lands late; lists and watches tell an older truth.
// Test support: not linked into the manager.
//
// Only what the process sends and receives is seen, so that nothing here depends on how the manager works.
package faultwire
