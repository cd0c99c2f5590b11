/*
 * The slots of kernels/src/toolkit/slots.h under the exchange `shared`: with messages between any ranks, by
 * slots or, WITH_MPI, by MPI, in all programs of programs.pml. To be refuted: SLOTS=1, AWAITED=1,
 * NOT_ACKNOWLEDGED, and SENT_BY_WAIT.
 */
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef AWAITED
#define AWAITED SLOTS /* how many calls before, that message must have been read */
#endif
#define AT(edge, call) ((edge) * SLOTS + (call) % SLOTS)
#define DATA (PLANS * EDGES * SLOTS)
#define READ_NUMBER(edge) (DATA + (edge))
#define MESSAGE(edge) (DATA + PLANS * EDGES + (edge))
#define NUMBERS (DATA + 2 * PLANS * EDGES)
#define READERS 1
#include "messages.pml"

byte posted[PLANS * EDGES]; /* the call of which a receive by MPI has started */

/* Without a message back, which would show that the receiver has read. */
#define IS_ACKNOWLEDGED(plan, from, to) (kind[EDGE(plan, to, from)] == NO_MESSAGE)

inline send(plan, to) {
  if
  :: kind[EDGE(plan, me, to)] == BY_MEMORY ->
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
  :: kind[EDGE(plan, from, me)] == BY_MEMORY ->
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
inline post(plan, from) {
  posted[EDGE(plan, from, me)] = call
}

inline await_sent(plan, to) {
  kind[EDGE(plan, me, to)] != BY_MPI || posted[EDGE(plan, me, to)] >= call
}

inline start(plan) {
  FOR_PEERS(post, plan);
#ifndef SENT_BY_WAIT
  FOR_PEERS(send, plan)
#endif
}

inline wait(plan) {
#ifdef SENT_BY_WAIT
  FOR_PEERS(send, plan);
#endif
  FOR_PEERS(receive, plan);
  FOR_PEERS(await_sent, plan)
}

#include "programs.pml"
