// SPDX-License-Identifier: Apache-2.0

package admission

// Reason tells why an entry waits.
type Reason struct {
	// Code is one CamelCase word, one of the Code constants.
	Code string
	// Message is for a person.
	Message string
}

// Codes of a Reason.
const (
	// CodeSuspended: the queue is suspended.
	CodeSuspended = "Suspended"
	// CodeUnconfirmed: what created the run has not recorded it yet.
	CodeUnconfirmed = "Unconfirmed"
	// CodeOutOfDate: a newer version of the entry exists than the one known.
	CodeOutOfDate = "OutOfDate"
	// CodePredecessor: work of the same chain has not stopped.
	CodePredecessor = "PredecessorHoldsSlot"
	// CodeBackOff: the run's notBefore has not come.
	CodeBackOff = "BackOff"
	// CodeLimitReached: every slot is in use.
	CodeLimitReached = "LimitReached"
	// CodeReservationFirst: a direct reservation gets the next slot.
	CodeReservationFirst = "ReservationFirst"
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

// Verdict is what a policy says about a candidate. The zero value is no objection.
type Verdict struct {
	// Refused says that the candidate has to wait.
	Refused bool
	// Reason why.
	Reason Reason
	// Everyone says that whoever comes later is refused as well, so that nobody else needs to be asked.
	Everyone bool
	// Keeps says that the candidate keeps its place: its slot counts as used for those who come later.
	Keeps bool
}

// Policy is one rule of admission. All of a chain must admit. A policy is a pure function of its arguments; what a candidate
// uses is added to the Slots before the next one is asked, so that a policy sees what this decision has already given away.
type Policy interface {
	// Check says whether the candidate may have a slot now.
	Check(*Slots, *Candidate) Verdict
}

// admission is asked before anything gets a slot or becomes next in line: what the queue's owner wants first, then what is
// about the candidate alone, then what changes from moment to moment. The first to refuse is the reason that a person sees.
var admission = []Policy{suspension{}, creator{}, predecessor{}, backOff{}, currency{}, limit{}, reservation{}}

func check(s *Slots, c *Candidate) Verdict {
	for _, p := range admission {
		if v := p.Check(s, c); v.Refused {
			return v
		}
	}
	return Verdict{}
}

func refuse(code, message string) Verdict {
	return Verdict{Refused: true, Reason: Reason{Code: code, Message: message}}
}

func refuseEveryone(code, message string) Verdict {
	v := refuse(code, message)
	v.Everyone = true
	return v
}
