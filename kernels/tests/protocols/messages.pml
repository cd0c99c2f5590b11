/*
 * The messages of each call of PLANS between RANKS, chosen at the beginning. Included by models of exchanges,
 * before their protocols.
 */
#define EDGES (RANKS * (RANKS - 1))
#define EDGE(plan, from, to) ((plan) * EDGES + (from) * (RANKS - 1) + ((to) + RANKS - (from)) % RANKS - 1)
#include "memory.pml"

mtype = { NO_MESSAGE, BY_MEMORY, BY_MPI }
mtype kind[PLANS * EDGES];

#define FOR_PEERS(action, plan) \
  for (peer : 0 .. RANKS - 1) { if :: peer != me -> action(plan, peer) :: else fi }

inline choose_messages() {
  for (n : 0 .. PLANS * EDGES - 1) {
    if
    :: kind[n] = NO_MESSAGE
    :: kind[n] = BY_MEMORY
#ifdef WITH_MPI
    :: kind[n] = BY_MPI
#endif
    fi
  }
}
