// SPDX-License-Identifier: Apache-2.0

package admission

import "time"

// Reason tells why an entry waits.
type Reason struct {
	// Code is one CamelCase word, one of the Code constants.
	Code string
	// Message is for a person.
	Message string
}

// Codes of a Reason. Those of entries that can never be admitted are beside Fit.
const (
	// CodeSuspended: the queue is suspended.
	CodeSuspended = "Suspended"
	// CodeUnconfirmed: what created the run has not recorded it yet.
	CodeUnconfirmed = "Unconfirmed"
	// CodePredecessor: work of the same chain has not stopped.
	CodePredecessor = "PredecessorHoldsSlot"
	// CodeBackOff: the run's notBefore has not come.
	CodeBackOff = "BackOff"
	// CodeLimitReached: every slot is in use.
	CodeLimitReached = "LimitReached"
	// CodeReservationFirst: a direct reservation gets the next slot.
	CodeReservationFirst = "ReservationFirst"
	// CodeStartupThrottle: a manager has begun to lead, and the queue admits runs bit by bit.
	CodeStartupThrottle = "StartupThrottle"
	// CodeTypeLimitReached: as many of the type hold slots as may.
	CodeTypeLimitReached = "TypeLimitReached"
	// CodeResourceShort: less of a resource is free than is claimed.
	CodeResourceShort = "ResourceShort"
	// CodeBehindOthers: an entry before it waits for what it needs, too.
	CodeBehindOthers = "BehindOthers"
	// CodeOutOfDate: a newer version of the entry exists than the one known.
	CodeOutOfDate = "OutOfDate"
	// CodeNextInTurn: nothing stands in the way but the entries before it.
	CodeNextInTurn = "NextInTurn"
	// CodeAdmitted: the entry has a slot, or its claim is on the way.
	CodeAdmitted = "Admitted"
)

// Candidate is a waiting entry that policies are asked about.
type Candidate struct {
	Entry
	// OutOfDate says that a newer version of the entry is known to exist.
	OutOfDate bool
}

// pending reports whether it is a reservation that wants to become next in line, for which it needs nothing yet.
func (c *Candidate) pending() bool { return c.Kind == DirectReservation && !c.Active }

// Scope says who is refused by a verdict.
type Scope int

const (
	// Alone: the candidate. It keeps nothing from anybody.
	Alone Scope = iota
	// Alike: the candidate, and whoever comes later and needs what it needs: its type, if that has a limit, or a resource
	// that it claims. So it keeps its place for everything it needs, though not for a slot of the queue.
	Alike
	// Everyone: the candidate and whoever comes later, so that nobody else needs to be asked.
	Everyone
)

// Verdict is what a policy says about a candidate. The zero value is no objection.
type Verdict struct {
	// Refused says that the candidate has to wait.
	Refused bool
	// Reason why.
	Reason Reason
	// Scope says for whom else.
	Scope Scope
	// Reserves says that what the candidate would use counts as used for those who come later.
	Reserves bool
	// Until is when the passing of time alone may change the verdict; zero: never.
	Until time.Time
}

// Policy is one rule of admission. All of a chain must admit. A policy is a pure function of its arguments; what a candidate
// uses is added to the Slots before the next one is asked, so that a policy sees what this decision has already given away.
type Policy interface {
	// Check says whether the candidate may have a slot now.
	Check(*Slots, *Candidate) Verdict
}

// admission is asked before anything gets a slot or becomes next in line: what the queue's owner wants first, then what is
// about the candidate alone, then what changes from moment to moment, for everyone first. The first to refuse is the reason
// that a person sees. The last reserves what the candidate would use, and so has to know that nobody else objects.
func admission() []Policy {
	return []Policy{
		suspension{}, fit{}, creator{}, predecessor{}, backOff{},
		limit{}, reservation{}, throttle{},
		typeLimit{}, resource{}, place{},
		currency{},
	}
}

func refuse(code, message string) Verdict {
	return Verdict{Refused: true, Reason: Reason{Code: code, Message: message}}
}

func refuseAlike(code, message string) Verdict {
	v := refuse(code, message)
	v.Scope = Alike
	return v
}

func refuseEveryone(code, message string) Verdict {
	v := refuse(code, message)
	v.Scope = Everyone
	return v
}
