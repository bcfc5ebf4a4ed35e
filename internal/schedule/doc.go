// SPDX-License-Identifier: Apache-2.0

// Package schedule holds the rules of when a ScheduledJob fires. It is pure: it has no client, reads no clock and
// keeps no state, so the same inputs always give the same ticks and the same decision.
//
// # Ticks
//
// A tick is one moment at which a schedule fires, in whole seconds. [Parse] reads a five-field cron expression or a
// descriptor; [Schedule] then finds ticks without ever stepping through them one by one: an "every" interval is plain
// arithmetic, a cron expression is worked out a month at a time. A run is named after its tick ([RunName]), so that
// one tick is at most one run.
//
//   - "@every d" ticks at anchor + k×d for k = 1, 2, …, where the anchor is the creation of the ScheduledJob. The ticks
//     are therefore the same after a restart. d is at least one second and a whole number of seconds.
//   - In a cron expression the day of the month and the day of the week must both match if one of them is "*" or "?";
//     otherwise either may match, as in Kubernetes' CronJob. "*/2" is not "*" in this sense.
//
// # Clock changes
//
// A cron expression is read on the wall clock of its time zone. Where that clock is put forward (a gap) or back (an
// overlap), it matters whether the schedule means fixed times or an interval. A schedule runs through a clock change,
// and is an interval schedule there, if its hour field names every hour around it: the hour before, those skipped or
// repeated, and the hour after. "*" always does; "0-6" does at a change at two o'clock. Everything else means fixed
// times, "*/2" in the hour field included: no clock change can keep both even hours and two hours apart ("@every 2h"
// keeps the latter).
//
//   - Fixed times that a gap skips run once, at the first moment after the gap, however many of them were skipped and
//     whatever else ticks at that moment.
//   - Fixed times that an overlap repeats run the first time only.
//   - Interval schedules tick whenever the wall clock matches: in both of two repeated hours, and not extra after a gap,
//     because a gap of whole hours leaves their interval as it was. Where a gap is no whole number of hours (Lord Howe
//     Island: half an hour) the interval would be stretched, so the skipped ticks run once right after it there too.
//   - "@every" knows no wall clock and no clock changes.
//
// # What to fire
//
// [Decide] says for one ScheduledJob what to fire now, what was missed, and when to look again. Ticks at or before
// State.Since are settled. [Observe] moves Since when a schedule is edited or resumed, which is why neither ever fires
// a tick that lies before it.
//
//   - Several ticks due at once are settled by the missed-run policy: RunOnce fires the latest, RunAll fires all of
//     them, oldest first and in batches, Skip fires the latest only if it is on time. Those left out are counted.
//   - A tick later than the starting deadline never fires and is counted as missed.
//   - While too many runs are unsettled nothing fires and nothing is settled: the ticks stay due, and the policy decides
//     about them when there is room.
//   - Overlap Forbid: a tick that finds unsettled runs leaves one Skipped run; further ones in a row are only counted.
//     With RunAll the oldest of several due ticks fires and the others overlap with it.
//   - Overlap Replace: a tick that finds unsettled runs has them cancelled and stays due until they have settled. It then
//     fires alone, so there are never two at once. Ticks that pass meanwhile overtake it: the latest fires, and the others
//     are missed. That is so with RunAll too, because each of several due ticks would replace the one before it at once.
//   - The starting deadline counts from the tick also where that waits for what it replaces: if the work takes longer to
//     stop, the tick is missed, though what it replaced is cancelled. A tick that is too late when it is first looked at
//     replaces nothing. Skip on its own asks only then whether a tick is on time, and lets it wait as long as it takes.
//   - Runs that were created just before a crash and never recorded (State.Made) have fired, whatever else holds. Under
//     Forbid one that is not alone (State.Overlapping) is skipped instead, before any later tick is decided upon.
//   - A one-time schedule that is past due and not yet settled fires at once, whatever the missed-run policy. Editing
//     runAt arms it again. A time that passed while the schedule was suspended does not fire on resume.
package schedule
