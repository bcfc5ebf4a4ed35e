/* SPDX-License-Identifier: Apache-2.0
 *
 * What is stored, what is in the network, and what each manager knows. See protocol.pml.
 *
 * A resourceVersion is never a number here. What the protocol asks is only ever whether a version that somebody holds is
 * still the present one, so there is one bit for each holder, and every write of an object clears all bits of it.
 */

#define A 0                     /* a run that may fail */
#define B 1                     /* another run of the same queue */
#define C 2                     /* the retry of A (RETRY), or a reservation (RESERVE) */
#define NR 3

/* A record, as its API object shows it: phase, slot Held, asked to cancel (to release), epoch, and
 * X: of A the UID in status.retry, of C its own UID, of a reservation whether its holder has renewed it. */
#define PH(x) ((x) & 15)
#define HELD 16
#define CAN 32
#define INC(x) (((x) >> 6) & 3)
#define X(x) (((x) >> 8) & 3)
#define WITH(x, phase) (((x) & ~15) | (phase))
#define EPOCH(x, m) (((x) & ~192) | ((m) << 6))
#define WITHX(x, n) (((x) & ~768) | ((n) << 8))

#define ABSENT 0
#define QUEUED 1                /* of a reservation: Pending */
#define RUNNING 2               /* of a reservation: Granted */
#define CANCELLING 3
#define ACTIVE 4                /* of a reservation alone */
#define COMPLETED 5
#define FAILED 6
#define CANCELLED 7             /* of a reservation: Released */
#define SKIPPED 8               /* of a reservation: Expired */
#define TERMINAL(p) ((p) >= COMPLETED)
#define ISRES(r) (RESERVE && (r) == C)
#define ISHTTP(r) (HTTP && (r) == A)

/* the work of a run */
#define NONE 0
#define ALIVE 1                 /* the Job has a pod, the call is in flight */
#define STOPPING 2              /* suspended, and the pod not gone yet */
#define SEALED 3                /* suspended and confirmed, or a placeholder: the name is taken, nothing lives */
#define DONEOK 4
#define DONEFAIL 5
#define DYING 6                 /* the Job was deleted, its pod is terminating */
#define LIVES(j) ((j) == ALIVE || (j) == STOPPING || (j) == DYING)

#define BIT(i) (1 << (i))

short rec[NR];
byte job[NR];
bool pod[NR];                   /* something of the work runs; of a reservation: its holder uses the slot */
byte lintents, lepoch;          /* the QueueLedger */
byte lease;                     /* the transitions of the leader Lease */

/* Versions: see above. Bits of tok[r], cleared by every write of r; m counts from 1. */
int tok[NR];
#define FRESH(m) (1 << (m))             /* m's cache shows the present version */
#define PIN(m) (1 << (4 + (m)))         /* the version in m's answered swap */
#define LATE(m) (1 << (8 + (m)))        /* the version in m's claim that is in the network */
#define HELDBY(m) (1 << (12 + (m)))     /* the version that a reconcile of m has read and will write */
#define WIRE(m) (1 << (16 + (m)))       /* the version in m's status write that is in the network */
#define SWAPPED(m) (1 << (20 + (m)))    /* the version in m's swap that is in the network */
#define PLANNED(m) (1 << (24 + (m)))    /* the version that m's plan of history has seen */
#define INTENT (1 << 28)                /* the version in the ledger's intent */
byte ltok;
#define BOOK(m) (1 << (m))              /* m knows the present version of the ledger */
#define LSWAP(m) (1 << (4 + (m)))       /* the version in m's swap that is in the network */

/* the network: at most one late request of each kind and manager, which lands at any later time */
byte nclaim[MANAGERS + 1];            /* a claim: run + 1 */
byte njob[MANAGERS + 1];              /* creations of Jobs: a mask of runs */
bool nchild[MANAGERS + 1];            /* the creation of A's retry */
byte nswap[MANAGERS + 1];             /* a swap: its intents, and 8 */
short nwrite[MANAGERS + 1];           /* a status write: the new record, run << 10, and 1 << 12 */
byte faults;
#define FAULT (faults < FAULTS)

/* managers */
#define STANDBY 0
#define LEADS 1                 /* the epoch is known; the queue is not taken over */
#define TOUCHES 2               /* the ledger has our epoch; left-over intents are touched */
#define LISTS 3                 /* (only without F_ORDER) */
#define OPEN 4                  /* the queue is ours */
#define DEAD 5
byte st[MANAGERS + 1];
byte todo[MANAGERS + 1];              /* works to begin */
byte child[MANAGERS + 1];             /* a retry under way: 1 refreshed, 1 + UID created */
/* and, of each process alone (see Manager): */
#define MANAGER \
  short vw[NR];                 /* the cache, own writes included */ \
  byte left;                    /* left-over intents to touch */ \
  byte win;                     /* claims of the batch to send */ \
  byte unres;                   /* unresolved: claims without an answer */ \
  byte signs;                   /* work of runs that are gone, which may live */ \
  byte look;                    /* a reconcile between its look and its write: run + 1, evidence << 2 */ \
  byte plan;                    /* history under way: 1 C goes next, 2 A goes next */ \
  byte batch, cur, seen; bool sent, keep
#define V(r) vw[r]

/* kept for the checks alone */
byte begun;                     /* works that were begun once */
byte gone;                      /* runs that were deleted; C only once A has recorded it */
byte uids;                      /* retries of A that were created */
byte caller;                    /* who makes the call of A */
bool deleted, again;            /* the user's deletion, and B's second life, happen once */
byte asked;                     /* the user's cancels */
byte over;                      /* leases of the reservation that are over by its holder's clock */

hidden byte I1_no_lost_run = 1;
hidden byte I3_no_double_execution = 1;
hidden byte I4_at_most_the_limit = 1;
hidden byte I5_one_retry_per_failure = 1;
hidden byte I10_terminal_is_final = 1;
hidden byte I12_nothing_deleted_comes_back = 1;
hidden byte I13_it_settles = 1;
hidden byte K_a_successor_is_left_alone = 1;

inline see(r) { d_step { vw[r] = rec[r]; tok[r] = tok[r] | FRESH(me) } }

/* set writes a record that is there; what it wrote is nobody's present version yet. */
inline set(r, new) {
  assert((!TERMINAL(PH(rec[r])) || PH(rec[r]) == PH(new)) && I10_terminal_is_final);
  assert(!(PH(rec[r]) > QUEUED && PH(new) == QUEUED) && I3_no_double_execution);
  d_step {
    rec[r] = new;
    tok[r] = 0;
    if                          /* what nobody asks for any more is dropped, so that fewer states differ */
    :: TERMINAL(PH(rec[r])) && !(rec[r] & HELD) ->
         rec[r] = rec[r] & (15 | 768 | (r == A -> CAN : 0));
         if :: job[r] == DONEOK || job[r] == DONEFAIL -> job[r] = SEALED :: else fi;
         if :: ISRES(r) && !pod[C] -> rec[C] = rec[C] & 15; over = 2; begun = begun | BIT(C) :: else fi
    :: else
    fi
  }
}

/* started is work that begins. */
inline started(r) {
  job[r] = ALIVE; pod[r] = 1;
  assert(!(gone & BIT(r)) && I12_nothing_deleted_comes_back);
  assert(!(r == C && (begun & BIT(r))) && I5_one_retry_per_failure);
  assert(!(begun & BIT(r)) && I3_no_double_execution);
  assert(!(RETRY && pod[A] && pod[C]) && I3_no_double_execution);
  assert(pod[A] + pod[B] + pod[C] <= LIMIT && I4_at_most_the_limit);
  begun = begun | BIT(r)
}

/* created is the creation of a Job that reaches the API server. */
inline created(r) {
  if
  :: job[r] == NONE && PH(rec[r]) != ABSENT -> started(r)
  :: job[r] == NONE && PH(rec[r]) == ABSENT && !A_QUIET -> started(r)     /* its owner is gone; the garbage collector comes late */
  :: else
  fi
}

/* remove deletes an object, and its Job with it. */
inline remove(r) {
  rec[r] = 0; tok[r] = 0;
  if
  :: ISHTTP(r)
  :: !ISHTTP(r) && LIVES(job[r]) -> job[r] = DYING
  :: else -> job[r] = NONE
  fi
}

/* die ends a process: its calls end with it, and what it has sent stays in the network. */
inline die() {
  if :: HTTP && caller == me && (job[A] == ALIVE || job[A] == STOPPING) -> pod[A] = 0; job[A] = SEALED :: else fi;
  d_step {
    st[me] = DEAD;
    vw[A] = 0; vw[B] = 0; vw[C] = 0;
    left = 0; win = 0; unres = 0; todo[me] = 0; signs = 0; look = 0; child[me] = 0; plan = 0;
    tok[A] = tok[A] & ~(FRESH(me) | PIN(me) | HELDBY(me) | PLANNED(me));
    tok[B] = tok[B] & ~(FRESH(me) | PIN(me) | HELDBY(me) | PLANNED(me));
    tok[C] = tok[C] & ~(FRESH(me) | PIN(me) | HELDBY(me) | PLANNED(me));
    ltok = ltok & ~BOOK(me)
  }
}
