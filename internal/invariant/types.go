// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Version is one state of one object.
type Version struct {
	// At is when the test saw it, by the test's clock. Only differences of seconds are read into it: order comes from the
	// resourceVersion.
	At time.Time
	// Type is Added, Modified or Deleted. What a first list returns is Added; what a list no longer returns is Deleted.
	Type watch.EventType
	// Object is typed (JobRun, JobGroup, ScheduledJob, JobQueue, DirectReservation, QueueLedger, batch/v1 Job, v1 Pod,
	// events.k8s.io/v1 Event; others are ignored) and is never changed: pointers to one shared copy are fine. That of a Deleted has the resourceVersion of
	// the deletion, as a watch tells it.
	Object client.Object
}

// Work says what was at work.
type Work string

const (
	// Pod is a pod of a run's Job, from the start of its containers to their end.
	Pod Work = "Pod"
	// Call is an HTTP call of a run, as its server saw it.
	Call Work = "Call"
	// Direct is a request of direct access, as its upstream saw it; or what the holder of a DirectReservation does.
	Direct Work = "Direct"
)

// Act is one entry of the independent log: work that began or ended. It is written by the work itself. Write down a beginning
// as the first thing, and an end before its answer (or its status) can have any effect.
type Act struct {
	// At is when, by the clock that Version.At and Manager have, too.
	At time.Time
	// Began tells a beginning from an end.
	Began bool
	// Work says what began or ended.
	Work Work
	// Execution joins the end to its beginning: the UID of the pod, or any name that is unique to the call. Required. A
	// beginning without an end is at work until its Manager ended, or until the history does.
	Execution string
	// Namespace and Name of the JobRun, or of the DirectReservation.
	Namespace, Name string
	// UID of the JobRun (a pod has it as a label) or of the DirectReservation, if the work knows. Otherwise it is found by the name,
	// the key and the attempt.
	UID types.UID
	// Key is the idempotency key that the work was given: the same for all runs of a chain. None for Direct.
	Key string
	// Attempt that the work was given; -1 if it does not know.
	Attempt int32
	// Manager is the ID of the process that made the call or passed on the request; "" if it is not known. It bounds the
	// work: a call has ended when its process has. None for Pod.
	Manager string
	// Aborted, of an end, says that the work did not end by itself: its caller broke the connection. See History.Notice.
	Aborted bool
}

// Interval is a span of time. A zero To is the end of the history.
type Interval struct {
	From, To time.Time
}

// Manager is one process.
type Manager struct {
	// ID is that of status.incarnation.id, and of Act.Manager.
	ID string
	// Epoch under which it led; "" if it never did, or if it is not known.
	Epoch string
	// Began is when the process was started.
	Began time.Time
	// Ended is when nothing of it could happen any more: the process was gone, or all its connections were cut, those of its
	// calls included. Zero: it lives.
	Ended time.Time
	// Paused are the times during which it stood still (SIGSTOP, or whatever keeps every one of its goroutines from going on).
	// Time during which only its calls were held up, somewhere between its look at the lease and the server, counts, too.
	Paused []Interval
	// Alone says that it was started without leader election.
	Alone bool
}

// Announcement is an event that reached a receiver.
type Announcement struct {
	// At is when.
	At time.Time
	// Receiver is its name in the JobQueue, or in the ScheduledJob.
	Receiver string
	// ScheduledJob says that it is the ScheduledJob that names it, and not the queue.
	ScheduledJob bool
	// UID of the run or group that the event is about (data.uid).
	UID types.UID
	// Event is its type, such as job.run.failed.
	Event string
	// Accepted says that the receiver answered with a 2xx status, Gone that it answered with 410: it wants no more.
	Accepted, Gone bool
}

// History is what a test knows of what happened. What it does not know it leaves out: see each field for what is then not
// checked. The zero value of everything but Versions, Settled and Until is sound.
type History struct {
	// Versions of the objects, those of one kind in the order in which they were seen; several watches may follow one after
	// another. Versions in between may be missing (see Complete), and one may be there twice.
	Versions []Version
	// Complete says that no version is missing: they come from the storage itself, or from watches that never had to list
	// again. Rules that need it look at less without it.
	Complete bool
	// Acts are the independent log, of all work together. nil: nobody wrote one.
	Acts []Act
	// Managers are the processes that there were. nil: not known.
	Managers []Manager
	// LeaseDuration of the managers. Default: 15 s.
	LeaseDuration time.Duration
	// Notice is how late the log of the work may show that its caller broke the connection, at the most: an abort ended
	// somewhere within that time before it was written down. 0: none, as under a fake clock.
	Notice time.Duration
	// Announcements that reached the receivers. nil: nobody listened; then only the outboxes are checked.
	Announcements []Announcement
	// Deleted are the UIDs of the objects that a person deleted, by the hand of the test. What goes with its owner need
	// not be listed. Without it a Queued run that a person deletes looks lost.
	Deleted []types.UID

	// Until is when the history ends, by the clock of Version.At. Default: the last time in it.
	Until time.Time
	// Settled says that at the end all faults were over, a manager led, everything was delivered and nothing changed any more
	// for long enough: the longest back-off, lease, deadline of a call plus LeaseDuration plus 5 s, and start-up window.
	Settled bool
	// Partial says that the history was cut on purpose before it settled. Then invariants 7 and 13, and what the others say of
	// the end, are not checked. Not Partial and not Settled breaks invariant 13.
	Partial bool
	// RestartChanged tells what one more restart of the manager, after everything had settled, wrote to objects of our kinds, but
	// for ledgers and leases: one text each. nil: no restart was made; empty: it wrote nothing.
	RestartChanged []string
}

// Violation is one broken promise.
type Violation struct {
	// Invariant is its number, 1 to 13.
	Invariant int
	// Subject is what it is about: kind, namespace and name.
	Subject string
	// Message tells a person what happened, with versions or times.
	Message string
}

// Invariants is how many there are.
const Invariants = 13

// Report is what Check found.
type Report struct {
	// Violations, by invariant.
	Violations []Violation
	// HTTPWindow counts overlaps of HTTP work inside the documented window (see outdated). One call may count more than once: for
	// the other attempt that it met, for the limit, and for its slot.
	HTTPWindow int
	// Checked counts, for each invariant, the facts that were looked at.
	Checked map[int]int
	// Histories is how many were checked: 1, or more after a Merge.
	Histories int
}
