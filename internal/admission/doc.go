// SPDX-License-Identifier: Apache-2.0

// Package admission decides which runs and reservations of one queue get its slots, in which order, and why the others
// wait.
//
// A Queue is the picture that one manager has of one JobQueue. It is fed from watch events and from the manager's own
// answered writes, whichever comes first. Decide looks at it and answers with what to claim next; it changes nothing that
// can be observed, but that entries are judged by the limits it was given (Misfits). What a claim does to the picture is told
// by Assume, and ends with the next version of the object.
//
// Every rule is a Policy, and all must admit. Some runs pass others: who waits for a slot of its type or for a resource lets
// those pass that need neither its type nor any of its resources, and keeps its place before the rest. So nothing starves,
// and nothing stands idle for no reason.
//
// What waits is kept in order, so that one decision costs the logarithm of the queue's length. Runs that cannot be admitted
// whatever the others do (in back-off, fenced by their chain, not yet recorded by their creator, too large for the limits) are
// in no list that a decision walks through, and are moved when that changes. The others are in lanes, one for all those of
// which the same can be short: a decision follows the lanes in order, and leaves a lane when it meets one that has to wait.
//
// Nothing here reads a clock or talks to an API server.
package admission
