// SPDX-License-Identifier: Apache-2.0

// Package incarnation gives a manager process its identity: which process it is, from when it leads, under which epoch,
// and until when it may believe so. What another incarnation left behind is judged by its epoch and by what can be seen of
// its process.
package incarnation
