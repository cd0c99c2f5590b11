/*
 * The slots of kernels/src/toolkit/slots.h under the exchange `shared`: with messages between any of RANKS, by
 * slots or, WITH_MPI, by MPI, in all programs that MPI allows. A program makes LAST calls of a plan and LATER of
 * each other one of PLANS; starts and waits of the plans cross, also with its BARRIERS. To be refuted: SLOTS=1,
 * AWAITED=1, NOT_ACKNOWLEDGED, and SENT_BY_WAIT.
 */
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef AWAITED
#define AWAITED SLOTS /* how many calls before, that message must have been read */
#endif
#ifndef LATER
#define LATER 1
#endif
#ifndef BARRIERS
#define BARRIERS 0
#endif
#define EDGES (RANKS * (RANKS - 1))
#define EDGE(plan, from, to) ((plan) * EDGES + (from) * (RANKS - 1) + ((to) + RANKS - (from)) % RANKS - 1)
#define AT(edge, call) ((edge) * SLOTS + (call) % SLOTS)
#define DATA (PLANS * EDGES * SLOTS)
#define READ_NUMBER(edge) (DATA + (edge))
#define MESSAGE(edge) (DATA + PLANS * EDGES + (edge))
#define NUMBERS (DATA + 2 * PLANS * EDGES)
#define READERS 1
#include "memory.pml"

mtype = { NO_MESSAGE, BY_SLOT, BY_MPI }
mtype kind[PLANS * EDGES];

/* ---- Programs ---- */

#define CALLS(plan) ((plan) == 0 -> LAST : LATER)
#define BARRIER PLANS /* another event is of the plan of that number: its starts and waits take turns */
#define EVENTS (2 * LAST + 2 * (PLANS - 1) * LATER + BARRIERS)

byte program[RANKS * EVENTS];
byte left[PLANS + 1];

/* What a rank has come to in its program, and how often to each event. */
byte position[RANKS], times[RANKS * (PLANS + 1)];
#define NEXT(rank) program[(rank) * EVENTS + position[rank]]
#define TIMES(rank, event) times[(rank) * (PLANS + 1) + (event)]
#define STARTED(rank, plan) ((TIMES(rank, plan) + 1) / 2)
#define AT_BARRIER(rank) (position[rank] < EVENTS && NEXT(rank) == BARRIER -> 1 : 0)
#define ARE_PARTNERS(plan, a, b) (kind[EDGE(plan, a, b)] != NO_MESSAGE || kind[EDGE(plan, b, a)] != NO_MESSAGE)
hidden byte r, other;
hidden byte moved, allowed;

inline choose_messages() {
  for (n : 0 .. PLANS * EDGES - 1) {
    if
    :: kind[n] = NO_MESSAGE
    :: kind[n] = BY_SLOT
#ifdef WITH_MPI
    :: kind[n] = BY_MPI
#endif
    fi
  }
}

inline choose_program(rank) {
  for (n : 0 .. PLANS - 1) { left[n] = 2 * CALLS(n) }
  left[BARRIER] = BARRIERS;
  for (n : 0 .. EVENTS - 1) {
    event = 0;
end_without_program:
    do
    :: left[event] > 0 -> break
    :: event < PLANS -> event++
    od;
    left[event]--;
    program[(rank) * EVENTS + n] = event
  }
}

/* By MPI's rules, a wait may take until the partners have started that call. */
inline may_go_on() {
  allowed = true;
  for (other : 0 .. RANKS - 1) {
    if
    :: NEXT(r) == BARRIER ->
      allowed = allowed && TIMES(other, BARRIER) + AT_BARRIER(other) > TIMES(r, BARRIER)
    :: NEXT(r) != BARRIER && TIMES(r, NEXT(r)) % 2 == 1 && other != r ->
      allowed = allowed && (!ARE_PARTNERS(NEXT(r), r, other) || STARTED(other, NEXT(r)) >= STARTED(r, NEXT(r)))
    :: else
    fi
  }
}

/* Runs the programs as far as those rules allow. */
inline run_by_rules() {
  do
  :: moved = false;
    for (r : 0 .. RANKS - 1) {
      do
      :: position[r] < EVENTS ->
        may_go_on();
        if
        :: allowed -> TIMES(r, NEXT(r))++; position[r]++; moved = true
        :: else -> break
        fi
      :: else -> break
      od
    }
    if
    :: moved
    :: else -> break
    fi
  od
}

/* Sets allowed to whether they come to their ends so. */
inline judge_programs() {
  run_by_rules();
  allowed = true;
  for (r : 0 .. RANKS - 1) { allowed = allowed && position[r] == EVENTS; position[r] = 0 }
  for (r : 0 .. RANKS * (PLANS + 1) - 1) { times[r] = 0 }
}

/* ---- The protocol ---- */

/* Without a message back, which would show that the receiver has read. */
#define IS_ACKNOWLEDGED(plan, from, to) (kind[EDGE(plan, to, from)] == NO_MESSAGE)

inline send(plan, to) {
  if
  :: kind[EDGE(plan, me, to)] == BY_SLOT ->
    if
#ifndef NOT_ACKNOWLEDGED
    :: IS_ACKNOWLEDGED(plan, me, to) && call > AWAITED ->
      await(READ_NUMBER(EDGE(plan, me, to)), call - AWAITED)
#endif
    :: else
    fi;
    write(AT(EDGE(plan, me, to), call), call);
    reach(AT(EDGE(plan, me, to), call), call)
  :: kind[EDGE(plan, me, to)] == BY_MPI -> reach(MESSAGE(EDGE(plan, me, to)), call)
  :: else
  fi
}

inline receive(plan, from) {
  if
  :: kind[EDGE(plan, from, me)] == BY_SLOT ->
    await(AT(EDGE(plan, from, me), call), call);
    read(AT(EDGE(plan, from, me), call), 0, call);
    if
    :: IS_ACKNOWLEDGED(plan, from, me) -> reach(READ_NUMBER(EDGE(plan, from, me)), call)
    :: else
    fi
  :: kind[EDGE(plan, from, me)] == BY_MPI -> await(MESSAGE(EDGE(plan, from, me)), call)
  :: else
  fi
}

/* A message by MPI may be on its way until the receiver has started. */
inline await_sent(plan, to) {
  kind[EDGE(plan, me, to)] != BY_MPI || STARTED(to, plan) >= call
}

#define FOR_PEERS(action) \
  for (peer : 0 .. RANKS - 1) { if :: peer != me -> action(event, peer) :: else fi }

proctype rank(byte me) {
  byte event, peer, call;
  RUN {
    do
    :: position[me] < EVENTS ->
      event = NEXT(me);
      position[me]++;
      TIMES(me, event)++;
      call = STARTED(me, event);
      if
      :: event == BARRIER ->
        for (peer : 0 .. RANKS - 1) { TIMES(peer, BARRIER) >= TIMES(me, BARRIER) }
      :: event != BARRIER && TIMES(me, event) % 2 == 1 ->
#ifndef SENT_BY_WAIT
        FOR_PEERS(send)
#endif
      :: else ->
#ifdef SENT_BY_WAIT
        FOR_PEERS(send);
#endif
        FOR_PEERS(receive);
        FOR_PEERS(await_sent)
      fi
    :: else -> break
    od
  }
}

init {
  byte n, event, ranks;
  atomic {
    choose_messages();
    for (ranks : 0 .. RANKS - 1) { choose_program(ranks) }
    event = 0
  }
  d_step {
    judge_programs();
    ranks = (allowed -> RANKS : 0)
  }
  atomic {
    for (n : 1 .. ranks) { run rank(n - 1) }
  }
}
