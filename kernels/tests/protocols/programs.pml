/*
 * All programs of exchanges that MPI allows. A program makes LAST calls of a plan and LATER of each other one;
 * starts and waits of the plans cross, also with its BARRIERS. Included by models after their protocols.
 */
#ifndef LATER
#define LATER 1
#endif
#ifndef BARRIERS
#define BARRIERS 0
#endif
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
      :: event != BARRIER && TIMES(me, event) % 2 == 1 -> start(event)
      :: else -> wait(event)
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
