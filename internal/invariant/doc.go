// SPDX-License-Identifier: Apache-2.0

// Package invariant checks what Reprise promises, whatever crashes, delays and other leaders there were:
//
//  1. No lost run: a Queued run survives anything but its deletion.
//  2. No ghost: every orphan is resolved or visibly held.
//  3. No double execution: nothing returns to Queued; the work of two runs of a chain never overlaps.
//  4. At most the limit: never N+1 at work in a queue of limit N, per type and resource alike.
//  5. No lost retry, no second child per failure, never more than maxRetries automatic ones.
//  6. No stuck reservation; never two granted beyond the slots.
//  7. Idempotent: any reconcile repeated any number of times changes nothing more.
//  8. Deterministic order: the same before and after a restart.
//  9. One tick, at most one run; a past-due one-time tick, exactly one.
//  10. Terminal is final.
//  11. Every terminal run is announced at least once.
//  12. Nothing deleted comes back.
//  13. It settles: with faults over, every object reaches a state that no reconcile changes.
//
// Check is a pure function of a History: what a test saw of the objects, and what the work itself wrote down, independently of any
// object. What breaks an invariant is said at the function of its rule. For HTTP work 3 and 4 have one documented window, which is
// counted apart: see outdated. Test support: not linked into the manager.
//
// A rule alarms only on evidence that no harmless history can leave. Where the evidence may be missing (a watch was compacted,
// a log knows no name), it says nothing; Report.Checked tells how many facts each rule did look at, so that a check that looked
// at nothing is seen.
package invariant
