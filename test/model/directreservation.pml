/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of a reservation (controllers/directreservation), and its holder (internal/direct). See protocol.pml.
 *
 * Time is two events: the lease of the grant is over, and the lease of the renewal is over, by the holder's clock. What
 * frees the slot by time adds an allowance for clocks, so it comes after them.
 */

/* decide: Released as the holder asks; Expired when the time is over, or when an earlier manager gave the slot and the holder
 * has never renewed. One that waits may expire at any time. */
#define DUERES ((PH(V(C)) == QUEUED || PH(V(C)) == ACTIVE) || (PH(V(C)) == RUNNING && (over > (X(V(C)) != 0) - !F_ALLOW || (INC(V(C)) < me && X(V(C)) == 0))))
inline decide() {
  RESERVE && LEADING && PH(V(C)) != ABSENT && !TERMINAL(PH(V(C))) && (CURRENT(C) || (!F_EXPIRECAS && PH(rec[C]) != ABSENT)) && ((V(C) & CAN) || DUERES) ->
  if
  :: V(C) & CAN -> write(C, WITH(V(C), CANCELLED) & ~HELD)
  :: !(V(C) & CAN) && DUERES -> write(C, WITH(V(C), SKIPPED) & ~HELD)
  fi
}

/* renew: the holder acknowledges the grant on the very version that it saw. What it uses begins only after the answer. */
inline renew() {
  RESERVE && PH(rec[C]) == RUNNING && !(rec[C] & CAN) && X(rec[C]) == 0 && over == 0 && (F_ACK || !(begun & BIT(C))) ->
  if
  :: F_ACK -> rec[C] = WITHX(rec[C], 1); tok[C] = 0; if :: started(C) :: FAULT -> faults++ fi
  :: !F_ACK -> started(C)
  fi
}

/* expiry: the holder's clock. At its end the proxied request is cut, before the slot counts as free. */
inline expiry() {
  RESERVE && (PH(rec[C]) == RUNNING || pod[C]) && over <= (X(rec[C]) != 0) ->
  over++;
  if :: F_CUT && over > (X(rec[C]) != 0) -> pod[C] = 0; job[C] = NONE :: else fi
}

/* holderEnds: it would, some time later. */
inline holderEnds() { RESERVE && !F_CUT && pod[C] && over > (X(rec[C]) != 0) -> pod[C] = 0; job[C] = NONE }

/* release: the holder has done with it, or gives up waiting. */
inline release() {
  RESERVE && PH(rec[C]) != ABSENT && !TERMINAL(PH(rec[C])) && !(rec[C] & CAN) ->
  pod[C] = 0; job[C] = NONE; rec[C] = rec[C] | CAN; tok[C] = 0
}
