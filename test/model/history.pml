/* SPDX-License-Identifier: Apache-2.0
 *
 * History removes whole chains (controllers/history). See protocol.pml.
 *
 * Assumption A_QUIET: the ten minutes that history waits, and the time that an API request may take, are longer than any
 * request for the chain is under way or is yet to be sent.
 */
#define QUIET(r) (!A_QUIET || !something_late(r))
#define something_late(r) ((late_jobs & BIT(r)) || ((r) != B && late_children))
#define late_jobs (njob[1] | todo[1] | njob[2] | todo[2] | njob[3] | todo[3])
#define late_children (nchild[1] || child[1] || nchild[2] || child[2] || nchild[3] || child[3])

/* Settled and Stopped, of the chain of A as the cache shows it; of B's. */
#define OVER(r) (TERMINAL(PH(V(r))) && (!(V(r) & HELD) || !F_HISTSTOPPED))
#define CHAINOVER (OVER(A) && (!RETRY || !F_HISTSETTLED || !DUE(V(A))) && (PH(V(C)) == ABSENT || OVER(C)))

/* remove: the plan, by the cache; every retry that is recorded is known or gone, by a live read. */
inline removable() {
  HISTORY && !RESERVE && LEADING && plan == 0 && CHAINOVER && QUIET(A) && QUIET(C) &&
  (X(V(A)) == 0 || PH(V(C)) != ABSENT || PH(rec[C]) == ABSENT || X(rec[C]) != X(V(A))) ->
  plan = (PH(V(C)) == ABSENT -> 2 : 1);
  if :: CURRENT(A) -> tok[A] = tok[A] | PLANNED(me) :: else fi;
  if :: CURRENT(C) -> tok[C] = tok[C] | PLANNED(me) :: else fi
}

/* delete: each object exactly as it was judged, the root last. */
inline delete() {
  LEADING && plan != 0 ->
  if
  :: plan == 1 && ((tok[C] & PLANNED(me)) || (!F_HISTPRE && PH(rec[C]) != ABSENT)) -> removed(C); plan = 2
  :: plan == 1 && !(tok[C] & PLANNED(me)) && PH(rec[C]) == ABSENT -> plan = 2
  :: plan == 2 && ((tok[A] & PLANNED(me)) || (!F_HISTPRE && PH(rec[A]) != ABSENT)) ->
       assert((!RETRY || !DUE(rec[A])) && I5_one_retry_per_failure);    /* a failure whose retry is due is not lost */
       removed(A); plan = 0
  :: else -> plan = 0
  fi;
  if :: plan == 0 -> tok[A] = tok[A] & ~PLANNED(me); tok[C] = tok[C] & ~PLANNED(me) :: else fi
}
inline deleteB() {
  HISTORY && LEADING && OVER(B) && PH(rec[B]) != ABSENT && (CURRENT(B) || !F_HISTPRE) && QUIET(B) -> removed(B)
}
inline removed(r) {
  assert(TERMINAL(PH(rec[r])) && I1_no_lost_run);
  assert(!LIVES(job[r]) && I4_at_most_the_limit);          /* no slot is forgotten while work uses it */
  gone = gone | BIT(r); remove(r)
}
