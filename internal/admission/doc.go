// SPDX-License-Identifier: Apache-2.0

// Package admission decides which runs and reservations of one queue get its slots, in which order, and why the others
// wait.
//
// A Queue is the picture that one manager has of one JobQueue. It is fed from watch events and from the manager's own
// answered writes, whichever comes first. Decide looks at it and answers with what to claim next; it changes nothing that
// can be observed. What a claim does to the picture is told by Assume, and ends with the next version of the object.
//
// What waits is kept in order, so that one decision costs the logarithm of the queue's length: runs that cannot be admitted
// whatever the others do (in back-off, fenced by their chain, not yet recorded by their creator) are in no list that a
// decision walks through, and are moved when that changes.
//
// Nothing here reads a clock or talks to an API server.
package admission
