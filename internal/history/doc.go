// SPDX-License-Identifier: Apache-2.0

// Package history says which chains of runs and which groups may be removed, and when. It is pure.
//
// A chain is removed as a whole or not at all, and only when nobody can need it any more:
//
//   - it has settled: its root tells the end, and every run of it is terminal;
//   - it has stopped: no run of it holds a slot, so nothing of its work lives;
//   - it is announced: no receiver is owed anything;
//   - it has been quiet for 10 minutes (Quiet), so that a creation on its way to the API server has landed or failed;
//   - it is at least 24 hours (Evidence) since its last change, if a manager restart failed a run of it.
//
// A group goes together with the chains of its members, when it has settled, is announced and has been quiet itself, and
// each of those chains could go.
//
// Three rules remove such chains and groups: [ByTTL] and [GroupByTTL], which look at one of them alone, and [ByLimits], which
// keeps the newest of a ScheduledJob. Recovery is no rule of these: it never removes anything. A DirectReservation that has
// ended is no more than its own record, and goes by its time to live alone ([ReservationExpiry]).
package history
