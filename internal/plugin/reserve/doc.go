// SPDX-License-Identifier: Apache-2.0

// Package reserve is the command `kubectl reprise reserve`: it makes a DirectReservation, waits for its turn, runs a command while it
// has the slot, and gives the slot back.
//
// What must hold:
//
//   - The command is started only after a renewal was answered by a version of the reservation that is Granted.
//   - The command and all it has started have ended before the slot can be given to somebody else by time: a lease after the time
//     that the last answered renewal bears, by the clock of the cluster. (The manager waits 5 s more, and counts a renewal that it
//     has not seen yet; see recovery.DecideReservation.) When somebody releases or deletes the reservation they are ended at once.
//   - Whatever ends this process ends the command; see the package guard.
//   - The reservation is given back when nothing of the command is left, and not before: by this process, by its guard if this one
//     was killed, and by time if both were.
//
// The reservation bears a random sign of its holder, by which it is recognised when an answer was lost. It is renewed from its
// creation on and marked with the annotation of fronts, so that a reservation whose holder is gone waits in nobody's way.
package reserve
