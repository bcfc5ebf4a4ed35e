/* SPDX-License-Identifier: Apache-2.0
 *
 * The protocol for two managers (docs/design.md), as the code carries it out, for the model checker spin. `make model`
 * searches every configuration below exhaustively, and then leaves out one rule after the other: each time an invariant
 * must break, and be the one that the table names. A rule without which nothing breaks is an error, too.
 *
 * What is here: one queue of one namespace with the run A, which may fail; the run B; and C, which is the retry of A or a
 * reservation. Up to three managers. A takeover may come at any step; the earlier manager lives on and acts on what it
 * believes (or, with CRASH, dies at any step), its requests may land at any later time. Caches are as far behind as they
 * like. Any claim, swap, creation of a Job or of a retry, and status write may lose its answer, or may still be in the
 * network while the manager goes on. There are no clocks: what time brings about may come at any step.
 *
 * What is not: back-off, order and priorities (any order is tried), types and resources, schedules and groups (created
 * runs obey the rule that retries obey here), conditions and announcements, holders that never renew (they lose a
 * reservation at a restart, by design), HTTP calls whose process cannot be seen to have ended (the documented window).
 * A manager has at most one run between the look of its recovery and the write. A leader may end at any step, so an orderly
 * end adds nothing. That something keeps going round for ever is not looked for; that everything which stops is settled is.
 *
 * The files: switches.pml (parameters), state.pml (what is stored, in the network and in memory), jobqueue.pml,
 * jobrun.pml, directreservation.pml, history.pml (the steps), and this one (the processes and the tables).
 *
 * Parameters: NM managers; LIMIT slots; FAULTS lost or late requests in all, of any kind; CRASH a manager is dead when the
 * next begins; RETRY C is the retry of A; RESERVE C is a reservation; HTTP the work of A is a call; CANCELS mask of runs
 * that a user may cancel (1 A, 2 B); DELETES mask of runs that a user may delete (2 B at work, 4 C before or after);
 * HISTORY chains are removed, and B may be made again by its name; ADOPT A has recoveryPolicy Adopt; NOB there is no B.
 *
 * Configurations: name, parameters (unless given: NM=2 LIMIT=1 FAULTS=1, the rest 0).
 *
 * config  two-runs           FAULTS=2
 * config  two-runs-cancel    CANCELS=3
 * config  three              NM=3 FAULTS=0
 * config  retry              RETRY=1
 * config  retry-faults       RETRY=1 NOB=1 FAULTS=2
 * config  retry-limit-2      RETRY=1 LIMIT=2 FAULTS=0
 * config  retry-three        NM=3 RETRY=1 NOB=1 FAULTS=0
 * config  crashes            NM=3 CRASH=1 RETRY=1
 * config  crashes-limit-2    NM=3 CRASH=1 RETRY=1 LIMIT=2 FAULTS=0
 * config  adopt              RETRY=1 NOB=1 ADOPT=1 CANCELS=1
 * config  cancel-retry       RETRY=1 NOB=1 CANCELS=1
 * config  delete             DELETES=2
 * config  delete-retry       RETRY=1 NOB=1 DELETES=4
 * config  http               HTTP=1 RETRY=1 FAULTS=0
 * config  http-faults        HTTP=1 RETRY=1 NOB=1
 * config  http-crashes       NM=3 CRASH=1 HTTP=1 RETRY=1 FAULTS=0
 * config  reservation        RESERVE=1 FAULTS=0
 * config  reservation-faults RESERVE=1 CRASH=1
 * config  reservation-three  NM=3 RESERVE=1 CRASH=1 FAULTS=0
 * config  reservation-limit2 RESERVE=1 LIMIT=2 FAULTS=0
 * config  history            HISTORY=1 FAULTS=0
 * config  history-retry      HISTORY=1 RETRY=1 NOB=1 FAULTS=0
 * config  history-crash      HISTORY=1 RETRY=1 NOB=1 CRASH=1
 *
 * Invariants: those of docs/reliability.md by number, and K: a manager that was replaced fails or stops no work of its
 * successor. I3 no double execution, I4 at most the limit (of records, and of works alive), I5 one retry a failure, and
 * none of what was asked to cancel, I10 terminal is final, I12 nothing deleted comes back, I13 it settles: when nothing can
 * move any more, every run is terminal, every slot free, every retry that is due on record. I1 as far as history goes.
 *
 * Rules: switch, the invariant that breaks without it, the configuration in which it does, and the rule.
 *
 * rule  F_LEDGER       I4   two-runs       a batch is swapped into the ledger before its claims
 * rule  F_EPOCH        K    two-runs       only runs of a lower epoch are orphans; who meets a higher one ends
 * rule  F_KEEP         I4   three          a takeover keeps the intents that were left
 * rule  F_TOUCH        I4   two-runs       a takeover touches what they name
 * rule  F_ORDER        I4   two-runs       and only then lists
 * rule  F_LIVE         I4   two-runs       what holds slots, past the cache
 * rule  F_PINRV        I4   two-runs       a claim has exactly the version that the swap recorded
 * rule  F_SWAPRES      I4   two-runs       after an unanswered swap nothing is claimed before a later one is answered
 * rule  F_RESOLVE      I4   two-runs       an unanswered claim keeps its slot until it is resolved
 * rule  F_OWN          I4   two-runs       own writes count at once
 * rule  F_ANSWERED     I4   two-runs       work begins only after an answered claim
 * rule  F_GRANT        I4   reservation    grants are intents, as claims are
 * rule  F_SLOT         I4   retry          a slot is free when the work has stopped, not at the record
 * rule  F_SIGNS        I4   delete         work of a deleted run keeps its slot
 * rule  F_CHAIN        I3   retry-limit-2  a run is admitted only while nothing else of its chain holds a slot
 * rule  F_MARK         I5   delete-retry   a created run is admitted only if its creator's status names its UID
 * rule  F_MARKCAS      I5   delete-retry   that name is written by compare-and-swap
 * rule  F_NORETRY      I5   cancel-retry   a run that was asked to cancel is not retried
 * rule  F_CAS          I10  two-runs       an outcome is written with the version that was read
 * rule  F_CANCELCAS    I10  two-runs-cancel so is Cancelling
 * rule  F_DECIDE       K    adopt          the decision on the run comes before the stop of its work
 * rule  F_OCCUPY       I3   retry          that there is no Job is believed once its name is taken
 * rule  F_SUSPEND      I3   retry          a Job is stopped by suspending it, which keeps the name taken
 * rule  F_VERDICT      I4   two-runs       a verdict rests on a live look right before the write
 * rule  F_HTTPDEAD     I3   http           a call has stopped when its process is known to have ended
 * rule  F_EXPIRECAS    I10  reservation    the end of a reservation is written with the version that was read
 * rule  F_ALLOW        I4   reservation    a slot is freed by time only when the holder's clock has come to it, too
 * rule  F_CUT          I4   reservation    and at that time the holder has cut what it does
 * rule  F_ACK          I4   reservation    a holder begins only after it has renewed on the version that shows the grant
 * rule  F_HISTSETTLED  I5   history-retry  history removes a chain only when it is settled
 * rule  F_HISTSTOPPED  I4   history        and stopped
 * rule  F_HISTPRE      I1   history        with UID and resourceVersion as they were judged
 * rule  A_QUIET        I12  history        (an assumption: no request outlives the wait of history, see history.pml)
 *
 * Steps: name here, file, function. A test holds this table against the code.
 *
 * step  Begin           internal/incarnation/incarnation.go         Begin
 * step  Takeover        internal/ledger/ledger.go                   Takeover
 * step  touch           controllers/jobqueue/takeover.go            touch
 * step  listHolders     controllers/jobqueue/takeover.go            listHolders
 * step  observe         controllers/jobqueue/observe.go             upsert
 * step  attend          controllers/jobqueue/abandoned.go           attend
 * step  Swap            internal/ledger/ledger.go                   Swap
 * step  refresh         internal/ledger/ledger.go                   refresh
 * step  take            controllers/jobqueue/claim.go               take
 * step  claimed         internal/run/transition.go                  Apply
 * step  unresolved      controllers/jobqueue/claim.go               take
 * step  resolve         controllers/jobqueue/claim.go               resolve
 * step  begin           controllers/jobqueue/claim.go               begin
 * step  activate        controllers/jobqueue/pass.go                activate
 * step  created         internal/executor/job/executor.go           Start
 * step  write           controllers/jobrun/scope.go                 write
 * step  queued          controllers/jobrun/queued.go                queued
 * step  finish          controllers/jobrun/scope.go                 finish
 * step  beginCancel     controllers/jobrun/work.go                  beginCancel
 * step  stop            controllers/jobrun/work.go                  stop
 * step  Stop            internal/executor/job/executor.go           Stop
 * step  evidence        controllers/jobrun/recover.go               evidence
 * step  Seal            internal/executor/job/executor.go           Seal
 * step  carryOut        controllers/jobrun/recover.go               carryOut
 * step  confirmStopped  controllers/jobrun/terminal.go              confirmStopped
 * step  retry           controllers/jobrun/retry.go                 retry
 * step  createChild     controllers/jobrun/retry.go                 createChild
 * step  markRetry       controllers/jobrun/retry.go                 markRetry
 * step  parent          controllers/jobrun/creator.go               parent
 * step  decide          controllers/directreservation/reconciler.go decide
 * step  renew           internal/direct/hold.go                     renew
 * step  expiry          internal/direct/hold.go                     expiry
 * step  release         internal/direct/release.go                  release
 * step  removable       controllers/history/remove.go               remove
 * step  delete          controllers/history/remove.go               delete
 * step  deleteB         controllers/history/remove.go               delete
 */

#include "switches.pml"
#include "state.pml"
#include "jobqueue.pml"
#include "jobrun.pml"
#include "directreservation.pml"
#include "history.pml"

/* One alternative for each run; one alternative. */
#define RUNS(step) \
  :: atomic { step(A) SAY(step, of A) } \
  :: atomic { step(B) SAY(step, of B) } \
  :: atomic { step(C) SAY(step, of C) }
#define STEP(step) :: atomic { step() SAY(step, .) }
#ifdef TRAIL                    /* a trail in words: process 1 to 3 are the managers, the last is the world */
#define SAY(step, of) ; printf("  process %d: ", _pid); printf(#step); printf(" "); printf(#of); printf("\n")
#else
#define SAY(step, of)
#endif

/* One manager process: standby, then leader, for as long as it likes. */
proctype Manager(byte me) {
  MANAGER;
  atomic { see(A); see(B); see(C) }
  end: do
  STEP(Begin)
  STEP(crash)
  STEP(processEnds)
  RUNS(observe)
  STEP(Takeover)
  RUNS(touch)
  STEP(listHolders)
  STEP(touchedLast)
  STEP(Swap)
  RUNS(take)
  RUNS(resolve)
  RUNS(begin)
  RUNS(attend)
  RUNS(queued)
  RUNS(finish)
  RUNS(beginCancel)
  RUNS(Stop)
  RUNS(stop)
  RUNS(evidence)
  STEP(carryOut)
  RUNS(confirmStopped)
  STEP(retry)
  STEP(createChild)
  STEP(markRetry)
  STEP(parent)
  STEP(activate)
  STEP(decide)
  STEP(removable)
  STEP(delete)
  STEP(deleteB)
  od
}

/* A late request of manager m lands. */
#define LANDS(m) \
  :: atomic { landsClaim(m) SAY(claim, of m lands late) } \
  :: atomic { landsJob(m, A) SAY(creation of the Job of A, of m lands late) } \
  :: atomic { landsJob(m, B) SAY(creation of the Job of B, of m lands late) } \
  :: atomic { landsJob(m, C) SAY(creation of the Job of C, of m lands late) } \
  :: atomic { landsChild(m) SAY(creation of C, of m lands late) } \
  :: atomic { landsSwap(m) SAY(swap, of m lands late) } \
  :: atomic { landsWrite(m) SAY(status write, of m lands late) }

inline landsClaim(m) {
  nclaim[m] != 0 -> i = nclaim[m] - 1; nclaim[m] = 0;
  if :: tok[i] & LATE(m) -> claimed(i, m) :: else fi;
  i = 0
}
inline landsJob(m, r) { njob[m] & BIT(r) -> njob[m] = njob[m] & ~BIT(r); created(r) }
inline landsChild(m) { nchild[m] -> nchild[m] = 0; if :: PH(rec[C]) == ABSENT -> childCreated() :: else fi }
inline landsSwap(m) {
  nswap[m] != 0 ->
  if
  :: ltok & LSWAP(m) ->
       lintents = nswap[m] & 7; ltok = 0;
       tok[A] = (tok[A] & SWAPPED(m) -> tok[A] | INTENT : tok[A] & ~INTENT);
       tok[B] = (tok[B] & SWAPPED(m) -> tok[B] | INTENT : tok[B] & ~INTENT);
       tok[C] = (tok[C] & SWAPPED(m) -> tok[C] | INTENT : tok[C] & ~INTENT)
  :: else
  fi;
  nswap[m] = 0; tok[A] = tok[A] & ~SWAPPED(m); tok[B] = tok[B] & ~SWAPPED(m); tok[C] = tok[C] & ~SWAPPED(m)
}
inline landsWrite(m) {
  nwrite[m] != 0 -> i = (nwrite[m] >> 10) & 3;
  if :: tok[i] & WIRE(m) -> set(i, nwrite[m] & 1023) :: else fi;
  nwrite[m] = 0; i = 0
}

/* What the Job controller and the kubelet do. */
inline works(r) {
  job[r] == ALIVE && !ISRES(r) -> pod[r] = 0;
  if :: job[r] = DONEOK :: r == A -> job[r] = DONEFAIL fi
}
inline stops(r) {
  (job[r] == STOPPING || job[r] == DYING) && !ISRES(r) -> pod[r] = 0;
  job[r] = ((job[r] == STOPPING && F_SUSPEND) -> SEALED : NONE)
}

/* What users do. */
inline cancel(r) {
  (CANCELS & BIT(r)) && !(asked & BIT(r)) && PH(rec[r]) != ABSENT && !ISRES(r) && (!TERMINAL(PH(rec[r])) || (r == A && DUE(rec[A]))) ->
  asked = asked | BIT(r); rec[r] = rec[r] | CAN; tok[r] = 0
}
/* The retry, before it begins or after its end; or B at any time, once nothing that would begin it is under way. */
inline deleteC() {
  (DELETES & 4) && RETRY && !deleted && (PH(rec[C]) == QUEUED || (TERMINAL(PH(rec[C])) && !(rec[C] & HELD))) && !(A_QUIET && (late_jobs & BIT(C))) ->
  deleted = 1;
  if :: X(rec[A]) == X(rec[C]) -> gone = gone | BIT(C) :: else fi;
  remove(C)
}
inline deleteBAnyTime() {
  (DELETES & 2) && !deleted && PH(rec[B]) != ABSENT && !(A_QUIET && (late_jobs & BIT(B))) -> deleted = 1; gone = gone | BIT(B); remove(B)
}
/* B, once it has ended, is made again by its name. */
inline createBAgain() {
  HISTORY && !again && TERMINAL(PH(rec[B])) && !(rec[B] & HELD) && QUIET(B) -> again = 1; remove(B); rec[B] = QUEUED | (1 << 8); begun = begun & ~BIT(B)
}

proctype World() {
  byte i;
  end: do
  RUNS(works)
  RUNS(stops)
  LANDS(1)
  LANDS(2)
  LANDS(3)
  RUNS(cancel)
  STEP(deleteC)
  STEP(deleteBAnyTime)
  STEP(createBAgain)
  STEP(renew)
  STEP(expiry)
  STEP(holderEnds)
  STEP(release)
  od
}

#define ATREST(r) (PH(rec[r]) == ABSENT || (TERMINAL(PH(rec[r])) && !(rec[r] & HELD) && !pod[r]))
#define SETTLED (ATREST(A) && ATREST(B) && ATREST(C) && (!RETRY || !DUE(rec[A])))

init {
  atomic {
    configure();
    rec[A] = QUEUED; rec[B] = (NOB -> COMPLETED : QUEUED); rec[C] = (RESERVE -> QUEUED : ABSENT);
    run Manager(1);
    if :: NM > 1 -> run Manager(2) :: else fi;
    if :: NM > 2 -> run Manager(3) :: else fi;
    run World()
  }
  end: timeout -> assert((st[NM] == DEAD || SETTLED) && I13_it_settles)
}
