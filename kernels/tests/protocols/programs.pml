/*
 * All programs of exchanges that MPI allows. A program makes LAST calls of a plan and LATER of each other one;
 * starts and waits of the plans cross, also with its BARRIERS, and with its MESSAGES from one rank to another,
 * of which it may not know whether MPI sends them before they are received. Included by models after their
 * protocols.
 */
#ifndef LATER
#define LATER 1
#endif
#ifndef BARRIERS
#define BARRIERS 0
#endif
#ifndef MESSAGES
#define MESSAGES 0
#endif
#define CALLS(plan) ((plan) == 0 -> LAST : LATER)
#define BARRIER PLANS /* another event is of the plan of that number: its starts and waits take turns */
#define BETWEEN (PLANS + 1) /* a message of the program: its sender sends it, its receiver receives it */
#define KINDS (PLANS + 2)
#define EVENTS (2 * LAST + 2 * (PLANS - 1) * LATER + BARRIERS + MESSAGES)

byte program[RANKS * EVENTS];
byte left[KINDS];
byte sender, receiver; /* of messages of the program; what a third rank has instead is nothing */

/* What a rank has come to in its program, and how often to each event. */
byte position[RANKS], times[RANKS * KINDS];
#define NEXT(rank) program[(rank) * EVENTS + position[rank]]
#define TIMES(rank, event) times[(rank) * KINDS + (event)]
#define STARTED(rank, plan) ((TIMES(rank, plan) + 1) / 2)
#define IS_AT(rank, event) (position[rank] < EVENTS && NEXT(rank) == (event) -> 1 : 0)
#define IS_BETWEEN(a, b) (((a) == sender && (b) == receiver) || ((a) == receiver && (b) == sender))
#define MEET(event, a, b) ((event) == BARRIER || ((event) == BETWEEN && IS_BETWEEN(a, b)))
#define ARE_PARTNERS(plan, a, b) (kind[EDGE(plan, a, b)] != NO_MESSAGE || kind[EDGE(plan, b, a)] != NO_MESSAGE)
hidden byte r, other;
hidden byte moved, allowed;

inline choose_ends() {
#if MESSAGES > 0
  select(sender : 0 .. RANKS - 1);
  select(receiver : 0 .. RANKS - 1);
end_without_ends:
  sender != receiver
#else
  skip
#endif
}

inline choose_program(rank) {
  for (n : 0 .. PLANS - 1) { left[n] = 2 * CALLS(n) }
  left[BARRIER] = BARRIERS;
  left[BETWEEN] = MESSAGES;
  for (n : 0 .. EVENTS - 1) {
    event = 0;
end_without_program:
    do
    :: left[event] > 0 -> break
    :: event < BETWEEN -> event++
    od;
    left[event]--;
    program[(rank) * EVENTS + n] = event
  }
}

/* By MPI's rules, a wait may take until the partners have started that call, and sending until it is received. */
inline may_go_on() {
  allowed = true;
  for (other : 0 .. RANKS - 1) {
    if
    :: MEET(NEXT(r), r, other) ->
      allowed = allowed && TIMES(other, NEXT(r)) + IS_AT(other, NEXT(r)) > TIMES(r, NEXT(r))
    :: NEXT(r) < PLANS && TIMES(r, NEXT(r)) % 2 == 1 && other != r ->
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
  for (r : 0 .. RANKS * KINDS - 1) { times[r] = 0 }
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
      :: event == BETWEEN && me == sender
      :: event == BETWEEN && me == sender -> TIMES(receiver, BETWEEN) >= TIMES(me, BETWEEN)
      :: event == BETWEEN && me == receiver -> TIMES(sender, BETWEEN) >= TIMES(me, BETWEEN)
      :: event == BETWEEN && me != sender && me != receiver
      :: event < PLANS && TIMES(me, event) % 2 == 1 -> start(event)
      :: event < PLANS && TIMES(me, event) % 2 == 0 -> wait(event)
      fi
    :: else -> break
    od
  }
}

init {
  byte n, event, ranks;
  atomic {
    choose_messages();
    choose_ends();
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
