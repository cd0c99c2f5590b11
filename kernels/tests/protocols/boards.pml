/*
 * The boards of kernels/src/toolkit/boards.h, by the functions of the same names there, in any LAST steps of
 * those that board_steps.c makes, with any roots. To be refuted: KNOWN_TOO_EARLY and NOT_AWAITED.
 */
#define BOARDS 2
#define AT(rank, step) ((rank) * BOARDS + (step) % BOARDS)
#define FINISHED(rank) (RANKS * BOARDS + (rank))
#define DATA (RANKS * BOARDS)
#define NUMBERS (DATA + RANKS)
#define READERS RANKS
#define READ_BY_ALL RANKS
#include "memory.pml"

/* In place, a root that alone reads posts its own operand too. */
mtype = { UNKNOWN, TO_ALL, FROM_ROOT, TO_ROOT, TO_ROOT_IN_PLACE, MEET }
mtype kind[LAST + 1] = UNKNOWN;
byte root[LAST + 1], done[LAST + 1];

#define IS_ROOT (me == root[step])
#define IS_GATHER (kind[step] == TO_ROOT || kind[step] == TO_ROOT_IN_PLACE)
#define WRITES \
  (kind[step] == TO_ALL || kind[step] == TO_ROOT_IN_PLACE || (kind[step] == FROM_ROOT && IS_ROOT) || \
   (kind[step] == TO_ROOT && !IS_ROOT))
#define READS_ALL (kind[step] == TO_ALL || kind[step] == MEET || (IS_GATHER && IS_ROOT))

/* By the first rank that comes to it, for all. */
inline choose(step) {
  atomic {
    if
    :: kind[step] == UNKNOWN ->
      if
      :: kind[step] = TO_ALL
      :: kind[step] = MEET
      :: kind[step] = FROM_ROOT
      :: kind[step] = TO_ROOT
      :: kind[step] = TO_ROOT_IN_PLACE
      fi;
      do
      :: root[step] < RANKS - 1 && kind[step] != TO_ALL && kind[step] != MEET -> root[step]++
      :: break
      od
    :: else
    fi
  }
}

/* What all ranks have done makes no difference any more. */
inline forget(step) {
  d_step {
    other = 0;
    turn = 0;
    done[step]++;
    if
    :: done[step] == RANKS -> kind[step] = UNKNOWN; root[step] = 0; done[step] = 0
    :: else
    fi
  }
}

inline await_readers() {
  for (other : 0 .. RANKS - 1) {
    if
#ifndef NOT_AWAITED
    :: other != me && (reader[turn] == READ_BY_ALL || reader[turn] == other) && known[other] < written[turn] ->
      await(FINISHED(other), written[turn]);
      known[other] = written[turn]
#endif
    :: else
    fi
  }
}

inline post(to) {
  written[turn] = step;
  reader[turn] = to;
  reach(AT(me, step), step)
}

inline fetch(from) {
  await(AT(from, step), step);
#ifdef KNOWN_TOO_EARLY
  known[from] = step;
#else
  known[from] = step - 1;
#endif
  if
  :: kind[step] != MEET -> read(AT(from, step), me, step)
  :: else
  fi
}

inline fetch_all() {
  for (other : 0 .. RANKS - 1) {
    if
    :: other != me -> fetch(other)
    :: else
    fi
  }
}

active [RANKS] proctype rank() {
  byte me = _pid, step, other, turn;
  byte written[BOARDS], reader[BOARDS] = READ_BY_ALL, known[RANKS];
  RUN {
    for (step : 1 .. LAST) {
      choose(step);
      turn = step % BOARDS;
      if
      :: kind[step] == MEET -> post(READ_BY_ALL)
      :: WRITES ->
        await_readers();
        write(AT(me, step), step);
        if
        :: IS_GATHER -> post(root[step])
        :: else -> post(READ_BY_ALL)
        fi
      :: else
      fi;
      if
      :: READS_ALL -> fetch_all()
      :: kind[step] == FROM_ROOT && !IS_ROOT -> fetch(root[step])
      :: else
      fi;
      reach(FINISHED(me), step);
      forget(step)
    }
  }
}
