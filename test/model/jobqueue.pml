/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue: takeover, swap, claims (controllers/jobqueue, internal/ledger). See protocol.pml.
 */

/* What the picture of the queue counts as a holder: a record whose slot is Held, a claim on the way, work without a record. */
#define HOLDS(r) (((V(r) & HELD) && (F_SLOT || !TERMINAL(PH(V(r))))) || (unres & BIT(r)) || (signs & BIT(r)))
#define OCCUPIED (HOLDS(A) + HOLDS(B) + HOLDS(C))
#define FREE (LIMIT - OCCUPIED)

/* confirmed: the creator of C names its UID, or is gone (then it was asked live). */
#define CONFIRMED (!F_MARK || (X(V(A)) != 0 && X(V(A)) == X(V(C))) || PH(rec[A]) == ABSENT)
/* admissible: what the picture shows may be admitted. A chain is fenced while anything of it holds a slot. */
#define WAITS(r) (!(V(r) & CAN) && !(unres & BIT(r)) && PH(V(r)) == (ISRES(r) -> ACTIVE : QUEUED))
#define MAYADMIT(r) (WAITS(r) && ((r) != C || RESERVE || (CONFIRMED && (!F_CHAIN || !HOLDS(A)))))
#define NADMIT (MAYADMIT(A) + MAYADMIT(B) + MAYADMIT(C))
#define MAYACTIVATE (RESERVE && PH(V(C)) == QUEUED && !(V(C) & CAN))
/* whose epoch is compared with the own one by who meets it */
#define ATWORK(r) (PH(rec[r]) >= RUNNING && !TERMINAL(PH(rec[r])))
#define LEADING (st[me] >= LEADS && st[me] != DEAD)
/* what goes through the ledger */
#define FENCED(r) (F_LEDGER && (F_GRANT || !ISRES(r)))

/* Begin: the election is won, the epoch is read live. Epochs only rise. In configurations with CRASH the earlier manager is
 * dead by then, and may have died at any step; otherwise it lives on for as long as it likes, and no rule tells it. */
inline Begin() {
  st[me] == STANDBY && lease < me && (!CRASH || me == 1 || st[me - 1] == DEAD) -> lease = me; st[me] = (F_LEDGER -> LEADS : LISTS)
}
inline crash() { CRASH && me < NM && LEADING -> die() }
/* The process of a call that has to be known to have ended may end once another one leads. */
inline processEnds() { HTTP && !CRASH && LEADING && lease > me -> die() }

/* takeover, and Takeover of the ledger: when there is something to admit. */
inline Takeover() {
  st[me] == LEADS && ((FREE > 0 && NADMIT > 0) || MAYACTIVATE) ->
  if
  :: F_EPOCH && lepoch > me -> die()
  :: !(F_EPOCH && lepoch > me) ->
       lepoch = me; ltok = BOOK(me); left = (F_TOUCH -> lintents : 0); win = 0;
       if :: !F_KEEP -> lintents = 0; tok[A] = tok[A] & ~INTENT; tok[B] = tok[B] & ~INTENT; tok[C] = tok[C] & ~INTENT; left = 0 :: else fi;
       st[me] = (F_ORDER -> TOUCHES : LISTS)
  fi
}

/* touch: a left-over intent whose version is still the present one is fenced. */
inline touch(r) {
  st[me] == TOUCHES && (left & BIT(r)) ->
  left = left & ~BIT(r);
  if :: tok[r] & INTENT -> tok[r] = 0 :: else fi
}

/* listHolders: what holds slots, past the cache; then the queue is ours. */
inline listHolders() {
  (st[me] == TOUCHES && left == 0 && F_ORDER) || st[me] == LISTS ->
  if
  :: F_LIVE ->
       if :: rec[A] & HELD -> see(A) :: else fi;
       if :: rec[B] & HELD -> see(B) :: else fi;
       if :: rec[C] & HELD -> see(C) :: else fi;
       if :: F_SIGNS && PH(rec[A]) == ABSENT && LIVES(job[A]) && !HTTP -> signs = signs | BIT(A) :: else fi;
       if :: F_SIGNS && PH(rec[B]) == ABSENT && LIVES(job[B]) -> signs = signs | BIT(B) :: else fi;
       if :: F_SIGNS && PH(rec[C]) == ABSENT && LIVES(job[C]) -> signs = signs | BIT(C) :: else fi
  :: else
  fi;
  st[me] = ((st[me] == LISTS && F_LEDGER && left != 0) -> TOUCHES : OPEN);
  if :: F_EPOCH && (INC(rec[A]) > me || INC(rec[B]) > me || INC(rec[C]) > me) -> die() :: else fi
}
/* Without F_ORDER the touches come last. */
inline touchedLast() { st[me] == TOUCHES && left == 0 && !F_ORDER -> st[me] = OPEN }

/* observe: an event of the cache, or the answer of a live read. */
inline observe(r) {
  LEADING && !(tok[r] & FRESH(me)) ->
  if :: F_SIGNS && PH(rec[r]) == ABSENT && ((V(r) & HELD) || LIVES(job[r])) && !ISRES(r) -> signs = signs | BIT(r) :: else fi;
  see(r);
  if :: F_PINRV -> win = win & ~BIT(r) :: else fi;
  if :: !F_RESOLVE && PH(V(r)) == RUNNING && INC(V(r)) == me && job[r] == NONE && !ISRES(r) -> todo[me] = todo[me] | BIT(r) :: else fi;
  if :: F_EPOCH && ATWORK(r) && INC(rec[r]) > me -> die() :: else fi
}

/* attend: the work of a deleted run keeps its slot until a live look shows nothing of it. */
inline attend(r) {
  LEADING && (signs & BIT(r)) && !LIVES(job[r]) && !(todo[me] & BIT(r)) -> signs = signs & ~BIT(r)
}

/* Swap: the batch goes into the ledger, with the versions that were decided upon. */
inline Swap() {
  F_LEDGER && st[me] == OPEN && win == 0 && unres == 0 && FREE > 0 && (MAYADMIT(A) || MAYADMIT(B) || (MAYADMIT(C) && FENCED(C))) ->
  if
  :: ltok & BOOK(me) ->
       if                       /* the order is the user's business, so it is any */
       :: MAYADMIT(A) && (FREE == 1 || !(MAYADMIT(B) || (MAYADMIT(C) && FENCED(C)))) -> batch = 1
       :: MAYADMIT(B) && (FREE == 1 || !(MAYADMIT(A) || (MAYADMIT(C) && FENCED(C)))) -> batch = 2
       :: MAYADMIT(C) && FENCED(C) && (FREE == 1 || !(MAYADMIT(A) || MAYADMIT(B))) -> batch = 4
       :: FREE >= 2 && MAYADMIT(A) && MAYADMIT(B) -> batch = 3
       :: FREE >= 2 && MAYADMIT(A) && MAYADMIT(C) && FENCED(C) -> batch = 5
       :: FREE >= 2 && MAYADMIT(B) && MAYADMIT(C) && FENCED(C) -> batch = 6
       fi;
       sent = 0;
       if
       :: swapped(); sent = 1; ltok = BOOK(me)                          /* answered */
       :: FAULT -> faults++; swapped(); sent = !F_SWAPRES               /* answer lost: the ledger is read again first */
       :: FAULT && nswap[me] == 0 ->                          /* still in the network */
            faults++; nswap[me] = batch | 8; ltok = ltok | LSWAP(me); sent = !F_SWAPRES;
            if :: (batch & 1) && (tok[A] & FRESH(me)) -> tok[A] = tok[A] | SWAPPED(me) :: else fi;
            if :: (batch & 2) && (tok[B] & FRESH(me)) -> tok[B] = tok[B] | SWAPPED(me) :: else fi;
            if :: (batch & 4) && (tok[C] & FRESH(me)) -> tok[C] = tok[C] | SWAPPED(me) :: else fi
       fi;
       if
       :: sent ->
            win = batch;
            tok[A] = ((batch & 1) && (tok[A] & FRESH(me)) -> tok[A] | PIN(me) : tok[A] & ~PIN(me));
            tok[B] = ((batch & 2) && (tok[B] & FRESH(me)) -> tok[B] | PIN(me) : tok[B] & ~PIN(me));
            tok[C] = ((batch & 4) && (tok[C] & FRESH(me)) -> tok[C] | PIN(me) : tok[C] & ~PIN(me))
       :: else
       fi;
       batch = 0; sent = 0
  :: else -> refresh()
  fi
}
inline swapped() {
  lintents = batch; ltok = 0;
  tok[A] = ((batch & 1) && (tok[A] & FRESH(me)) -> tok[A] | INTENT : tok[A] & ~INTENT);
  tok[B] = ((batch & 2) && (tok[B] & FRESH(me)) -> tok[B] | INTENT : tok[B] & ~INTENT);
  tok[C] = ((batch & 4) && (tok[C] & FRESH(me)) -> tok[C] | INTENT : tok[C] & ~INTENT)
}

/* refresh: the ledger is read again after a swap without an answer, or after a late one of ours. */
inline refresh() {
  if
  :: lepoch == me -> ltok = ltok | BOOK(me)
  :: lepoch != me && F_EPOCH -> die()
  :: else -> st[me] = LEADS; left = 0
  fi
}

/* take: one claim of the batch, with exactly the version that the swap recorded. What has changed since is left out. */
inline take(r) {
  st[me] == OPEN && ((win & BIT(r)) || (!FENCED(r) && FREE > 0 && MAYADMIT(r))) ->
  if
  :: MAYADMIT(r) ->
       if
       :: tok[r] & ((F_PINRV && FENCED(r)) -> PIN(me) : FRESH(me)) ->
            if
            :: claimed(r, me); if :: F_OWN -> see(r) :: else fi; begins(r)                          /* answered */
            :: FAULT -> faults++; claimed(r, me); unresolved(r)                                          /* answer lost */
            :: FAULT && nclaim[me] == 0 ->                                                     /* still in the network */
                 faults++; nclaim[me] = r + 1; tok[r] = tok[r] | LATE(me); unresolved(r);
                 if :: !F_ANSWERED -> begins(r) :: else fi
            fi
       :: else -> unresolved(r)                                                                          /* a conflict */
       fi
  :: else                                                                                                /* assume says no */
  fi;
  win = win & ~BIT(r); tok[r] = tok[r] & ~PIN(me)
}
inline unresolved(r) { if :: F_RESOLVE -> unres = unres | BIT(r) :: else fi }
inline begins(r) { if :: !ISRES(r) -> todo[me] = todo[me] | BIT(r) :: else fi }

/* claimed: a claim lands. */
inline claimed(r, m) {
  assert((PH(rec[r]) == QUEUED || PH(rec[r]) == ACTIVE) && I3_no_double_execution);
  set(r, EPOCH(WITH(rec[r], RUNNING), m) | HELD);
  assert(((rec[A] & HELD) + (rec[B] & HELD) + (rec[C] & HELD)) / HELD <= LIMIT && I4_at_most_the_limit)
}

/* resolve: a live read shows that a claim without an answer is ours, or it is touched and void. */
inline resolve(r) {
  st[me] == OPEN && (unres & BIT(r)) ->
  unres = unres & ~BIT(r);
  if
  :: PH(rec[r]) == RUNNING && INC(rec[r]) == me -> begins(r)
  :: tok[r] & LATE(me) -> tok[r] = 0
  :: else
  fi;
  see(r);
  if :: F_EPOCH && ATWORK(r) && INC(rec[r]) > me -> die() :: else fi
}

/* begin: the work of a claimed run. Start finds the name taken by its own Job, or by a seal. */
inline begin(r) {
  LEADING && (todo[me] & BIT(r)) ->
  if
  :: ISHTTP(r) ->
       if :: job[r] == NONE -> caller = me; started(r) :: else fi;
       todo[me] = todo[me] & ~BIT(r)
  :: !ISHTTP(r) -> created(r); todo[me] = todo[me] & ~BIT(r)                                    /* answered */
  :: !ISHTTP(r) && job[r] == NONE && FAULT -> faults++; created(r)                              /* answer lost: tried again */
  :: !ISHTTP(r) && FAULT && !(njob[me] & BIT(r)) -> faults++; njob[me] = njob[me] | BIT(r)      /* still in the network: tried again */
  fi
}

/* activate: the next free slot is the reservation's. */
inline activate() {
  st[me] == OPEN && MAYACTIVATE && (tok[C] & FRESH(me)) -> write(C, EPOCH(WITH(rec[C], ACTIVE), me))
}
