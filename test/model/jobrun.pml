/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a run after and beside its claim (controllers/jobrun, internal/executor). See protocol.pml.
 *
 * Evidence that decides is final (ended work stays ended, a taken name stays taken), so a look and its write are one step
 * unless something else could come in between that matters: recovery and retries have two and three.
 */

/* write: a status write with the version that was read. */
inline write(r, new) {
  if
  :: set(r, new); see(r)                                            /* answered */
  :: FAULT -> faults++; set(r, new)                                     /* answer lost */
  :: FAULT && nwrite[me] == 0 ->                              /* still in the network */
       faults++; nwrite[me] = (new) | (r << 10) | 4096; tok[r] = tok[r] | WIRE(me)
  fi
}

/* CURRENT: the version that a reconcile has read is the present one; otherwise its write meets a conflict. */
#define CURRENT(r) (tok[r] & FRESH(me))
/* SAME: a name means the object that the cache shows, not a later one of that name. */
#define SAME(r) (r == A || X(V(r)) == X(rec[r]))
/* OURS: a run at work under our epoch; an orphan is one of a lower epoch. */
#define OURS(r) (INC(V(r)) == me)
#define ORPHAN(r) ((PH(V(r)) == RUNNING || PH(V(r)) == CANCELLING) && (F_EPOCH -> INC(V(r)) < me : INC(V(r)) != me))
#define ENDED(r) (job[r] == DONEOK || job[r] == DONEFAIL)
/* a call is known to its own process alone; to others it counts as stopped once that process is known to have ended */
#define STOPPED(r) (ISHTTP(r) -> (INC(rec[r]) == me -> !LIVES(job[r]) && job[r] != NONE : st[INC(rec[r])] == DEAD || !F_HTTPDEAD) : !LIVES(job[r]) && (job[r] != NONE || !F_OCCUPY))

/* queued: a run that was asked to cancel before it started. */
inline queued(r) {
  LEADING && !ISRES(r) && PH(V(r)) == QUEUED && (V(r) & CAN) && CURRENT(r) -> write(r, WITH(rec[r], CANCELLED))
}

/* finish: the outcome of work that has ended under this manager, or was taken away. */
inline finish(r) {
  LEADING && !ISRES(r) && PH(V(r)) == RUNNING && OURS(r) && !(V(r) & CAN) && (ENDED(r) || job[r] == SEALED) && !(todo[me] & BIT(r)) && (CURRENT(r) || (!F_CAS && PH(rec[r]) != ABSENT)) ->
  if
  :: job[r] == DONEOK -> write(r, WITH(V(r), COMPLETED) & ~HELD)
  :: job[r] == DONEFAIL -> write(r, WITH(V(r), FAILED) & ~HELD)
  :: job[r] == SEALED -> write(r, WITH(V(r), FAILED))
  fi
}

/* beginCancel: the decision to stop comes before the stop, and is a compare-and-swap. */
inline beginCancel(r) {
  LEADING && !ISRES(r) && PH(V(r)) == RUNNING && OURS(r) && (V(r) & CAN) && (CURRENT(r) || (!F_CANCELCAS && PH(rec[r]) != ABSENT)) ->
  write(r, WITH(V(r), CANCELLING))
}

/* stop: a Cancelling run is Cancelled once nothing of its work lives. */
inline stop(r) {
  LEADING && !ISRES(r) && PH(V(r)) == CANCELLING && OURS(r) && CURRENT(r) && STOPPED(r) && !(todo[me] & BIT(r)) ->
  write(r, WITH(rec[r], CANCELLED) & ~HELD)
}

/* Stop: the Job is suspended; where there is none a placeholder takes its name. Only the own call can be aborted. */
inline Stop(r) {
  LEADING && !ISRES(r) &&
  ((PH(V(r)) == CANCELLING && OURS(r)) || (TERMINAL(PH(V(r))) && (V(r) & HELD)) || (!F_DECIDE && (ORPHAN(r) || (PH(V(r)) == RUNNING && (V(r) & CAN))))) &&
  (job[r] == ALIVE || (job[r] == NONE && F_OCCUPY && PH(rec[r]) != ABSENT)) && (!ISHTTP(r) || OURS(r)) && SAME(r) ->
  assert(PH(rec[r]) != RUNNING && K_a_successor_is_left_alone);
  job[r] = (job[r] == ALIVE -> STOPPING : SEALED)
}

/* evidence: the work of an orphan, live. That nothing of it is seen is believed once its name is taken (Seal). */
inline evidence(r) {
  LEADING && !ISRES(r) && look == 0 && !(r == A && child[me] != 0) && ORPHAN(r) && SAME(r) ->
  if :: !ISHTTP(r) && job[r] == NONE && PH(rec[r]) != ABSENT && F_VERDICT -> Seal(r) :: else fi;
  if
  :: CURRENT(r) -> look = (r + 1) | ((F_VERDICT && !ISHTTP(r) -> job[r] : NONE) << 2); tok[r] = tok[r] | HELDBY(me)
  :: else                                                               /* the write will meet a conflict */
  fi
}
inline Seal(r) { if :: F_OCCUPY -> job[r] = SEALED :: else fi }

/* carryOut: what becomes of the orphan, with the version that was read before the look. */
inline carryOut() {
  LEADING && look != 0 ->
  cur = (look & 3) - 1; seen = look >> 2; look = 0;
  if
  :: tok[cur] & HELDBY(me) ->
       tok[cur] = tok[cur] & ~HELDBY(me);
       assert(INC(rec[cur]) <= me && K_a_successor_is_left_alone);
       keep = (ISHTTP(cur) -> !STOPPED(cur) : seen == ALIVE || seen == STOPPING);
       if
       :: (ISHTTP(cur) || PH(rec[cur]) == CANCELLING) && keep -> write(cur, WITH(rec[cur], FAILED))
       :: (ISHTTP(cur) || PH(rec[cur]) == CANCELLING) && !keep -> write(cur, WITH(rec[cur], FAILED) & ~HELD)
       :: else ->
            if
            :: seen == DONEOK -> write(cur, WITH(rec[cur], COMPLETED) & ~HELD)
            :: seen == ALIVE && ADOPT && cur == A -> write(cur, EPOCH(rec[cur], me))
            :: keep && !(seen == ALIVE && ADOPT && cur == A) -> write(cur, WITH(rec[cur], FAILED))
            :: !keep && seen != DONEOK -> write(cur, WITH(rec[cur], FAILED) & ~HELD)
            fi
       fi;
       keep = 0
  :: else
  fi;
  cur = 0; seen = 0
}

/* confirmStopped: the slot of a run that has its outcome is freed once nothing of the work lives. */
inline confirmStopped(r) {
  LEADING && !ISRES(r) && TERMINAL(PH(V(r))) && (V(r) & HELD) && CURRENT(r) && STOPPED(r) -> write(r, rec[r] & ~HELD)
}

/* retry: a failure that nobody asked to cancel gets one retry. The parent is read live first, or is what was answered to the write
   of its failure. */
#define DUE(x) (PH(x) == FAILED && X(x) == 0 && (!((x) & CAN) || !F_NORETRY))
inline retry() {
  RETRY && LEADING && child[me] == 0 && (look & 3) != A + 1 && DUE(V(A)) && DUE(rec[A]) ->
  child[me] = 1; tok[A] = tok[A] | HELDBY(me)
}
inline createChild() {
  LEADING && child[me] == 1 ->
  if
  :: PH(rec[C]) != ABSENT -> child[me] = 1 + X(rec[C])                           /* made by an earlier try */
  :: PH(rec[C]) == ABSENT -> childCreated(); child[me] = 1 + X(rec[C])           /* answered */
  :: PH(rec[C]) == ABSENT && FAULT -> faults++; childCreated(); noRetry()        /* answer lost */
  :: FAULT && !nchild[me] -> faults++; nchild[me] = 1; noRetry()       /* still in the network */
  fi
}
inline childCreated() { assert(uids < 3); uids++; set(C, QUEUED | (uids << 8)) }
inline noRetry() { child[me] = 0; tok[A] = tok[A] & ~HELDBY(me) }

/* markRetry: the durable mark, with the version that was read. */
inline markRetry() {
  LEADING && child[me] > 1 ->
  cur = child[me] - 1;
  if
  :: (tok[A] & HELDBY(me)) || (!F_MARKCAS && PH(rec[A]) != ABSENT) ->
       assert((X(rec[A]) == 0 || X(rec[A]) == cur) && I5_one_retry_per_failure);
       assert(!(rec[A] & CAN) && I5_one_retry_per_failure);             /* a run that was asked to cancel is not retried */
       write(A, WITHX(rec[A], cur))
  :: else
  fi;
  noRetry(); cur = 0
}

/* parent: a retry that its parent does not name, and will not, is set aside. The parent is read live. */
inline parent() {
  RETRY && F_MARK && LEADING && PH(V(C)) == QUEUED && CURRENT(C) && X(rec[A]) != X(rec[C]) && TERMINAL(PH(rec[A])) && !DUE(rec[A]) ->
  write(C, WITH(rec[C], SKIPPED))
}
