// SPDX-License-Identifier: Apache-2.0

// Package explain tells a person why a run or reservation does not run, where it stands, and what to do about it, from what
// was read of its namespace. It decides nothing: what it says of the queue is what internal/admission says. Everything here is
// pure.
package explain
