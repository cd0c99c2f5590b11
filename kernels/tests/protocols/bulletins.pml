/*
 * The bulletins of kernels/src/toolkit/bulletins.c: in each of LAST calls, every one of RANKS writes its own
 * and reads all others. To be refuted: BULLETINS=1.
 */
#ifndef BULLETINS
#define BULLETINS 2
#endif
#define AT(rank, call) ((rank) * BULLETINS + (call) % BULLETINS)
#define DATA (RANKS * BULLETINS)
#define NUMBERS DATA
#define READERS RANKS
#include "memory.pml"

active [RANKS] proctype rank() {
  byte me = _pid, call, other;
  RUN {
    for (call : 1 .. LAST) {
      write(AT(me, call), call);
      reach(AT(me, call), call);
      for (other : 0 .. RANKS - 1) {
        if
        :: other != me ->
          await(AT(other, call), call);
          read(AT(other, call), me, call)
        :: else
        fi
      }
    }
  }
}
