/*
 * The buffers of kernels/methods/exchange/lent.c, with messages between any ranks, in all programs of
 * programs.pml. To be refuted: BUFFERS=1, AWAITED=1, and NOT_AWAITED.
 */
#ifndef BUFFERS
#define BUFFERS 2
#endif
#ifndef AWAITED
#define AWAITED BUFFERS /* how many calls before, receivers must have completed */
#endif
#define AT(plan, rank, call) (((plan) * RANKS + (rank)) * BUFFERS + (call) % BUFFERS)
#define LENT(plan, rank) ((plan) * RANKS + (rank))
#define COMPLETED(plan, rank) (PLANS * RANKS + (plan) * RANKS + (rank))
#define DATA (PLANS * RANKS * BUFFERS)
#define NUMBERS (2 * PLANS * RANKS)
#define READERS RANKS
#include "messages.pml"

inline await_receiver(plan, to) {
  if
#ifndef NOT_AWAITED
  :: kind[EDGE(plan, me, to)] == BY_MEMORY && call > AWAITED -> await(COMPLETED(plan, to), call - AWAITED)
#endif
  :: else
  fi
}

inline start(plan) {
  FOR_PEERS(await_receiver, plan);
  write(AT(plan, me, call), call);
  reach(LENT(plan, me), call)
}

inline receive(plan, from) {
  if
  :: kind[EDGE(plan, from, me)] == BY_MEMORY ->
    await(LENT(plan, from), call);
    read(AT(plan, from, call), me, call)
  :: else
  fi
}

inline wait(plan) {
  FOR_PEERS(receive, plan);
  reach(COMPLETED(plan, me), call)
}

#include "programs.pml"
