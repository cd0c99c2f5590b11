/*
 * The boards of kernels/src/toolkit/boards.h, by the functions of the same names there, in any LAST steps of
 * those that board_steps.c makes, with any roots. With SLICED, for two ranks, also the two steps of an
 * allreduce by slices: there a rank goes on writing the part of its posted board that no other reads. To be
 * refuted: KNOWN_TOO_EARLY, NOT_AWAITED, and with SLICED also SUM_WHERE_OTHERS_READ and SUM_ON_NEXT_BOARD.
 */
#define BOARDS 2
#ifdef SLICED
#define PARTS 2 /* of a board: for others, and of this rank's own slice */
#else
#define PARTS 1
#endif
#define AT(rank, step) ((rank) * BOARDS + (step) % BOARDS)
#define PART(rank, step, part) (AT(rank, step) * PARTS + (part))
#define OWN (PARTS - 1)
#define FINISHED(rank) (RANKS * BOARDS + (rank))
#define DATA (RANKS * BOARDS * PARTS)
#define NUMBERS (RANKS * BOARDS + RANKS)
#define READERS RANKS
#define READ_BY_ALL RANKS
#include "memory.pml"

/* In place, a root that alone reads posts its own operand too. The first ranks up to the root read TO_SOME.
   SUMS come after SLICES. */
mtype = { UNKNOWN, TO_ALL, TO_SOME, FROM_ROOT, TO_ROOT, TO_ROOT_IN_PLACE, MEET, SLICES, SUMS }
mtype kind[LAST + 1] = UNKNOWN;
byte root[LAST + 1], done[LAST + 1];

#define IS_ROOT (me == root[step])
#define IS_GATHER (kind[step] == TO_ROOT || kind[step] == TO_ROOT_IN_PLACE)
#define IS_FOR_ALL (kind[step] == TO_ALL || kind[step] == SLICES || kind[step] == SUMS)
#define HAS_ROOT (IS_GATHER || kind[step] == FROM_ROOT || kind[step] == TO_SOME)
#define WRITES \
  (IS_FOR_ALL || kind[step] == TO_SOME || kind[step] == TO_ROOT_IN_PLACE || (kind[step] == FROM_ROOT && IS_ROOT) || \
   (kind[step] == TO_ROOT && !IS_ROOT))
#define READS_ALL \
  (IS_FOR_ALL || kind[step] == MEET || (kind[step] == TO_SOME && me <= root[step]) || (IS_GATHER && IS_ROOT))

/* By the first rank that comes to it, for all. */
inline choose(step) {
  atomic {
    if
    :: kind[step] == UNKNOWN ->
      if
      :: kind[step] = TO_ALL
      :: kind[step] = TO_SOME
      :: kind[step] = MEET
      :: kind[step] = FROM_ROOT
      :: kind[step] = TO_ROOT
      :: kind[step] = TO_ROOT_IN_PLACE
#ifdef SLICED
      :: step < LAST -> kind[step] = SLICES; kind[step + 1] = SUMS
#endif
      fi;
      do
      :: root[step] < RANKS - 1 && HAS_ROOT -> root[step]++
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

inline write_board() {
  for (part : 0 .. PARTS - 1) { write(PART(me, step, part), step) }
  part = 0
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
  :: kind[step] != MEET -> read(PART(from, step, 0), me, step)
  :: else
  fi;
  if
  :: kind[step] != MEET && kind[step] != SLICES && PARTS > 1 -> read(PART(from, step, OWN), me, step)
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

/* Folds on its board, before and after it has operands of others. */
inline sum() {
#ifdef SUM_WHERE_OTHERS_READ
  write(PART(me, step, 0), step)
#elif defined SUM_ON_NEXT_BOARD
  write(PART(me, step + 1, 0), step)
#else
  write(PART(me, step, OWN), step)
#endif
}

inline copy_sums() {
  if
  :: kind[step] == SUMS -> read(PART(me, step - 1, OWN), me, step - 1)
  :: else
  fi
}

active [RANKS] proctype rank() {
  byte me = _pid, step, other, turn, part;
  byte written[BOARDS], reader[BOARDS] = READ_BY_ALL, known[RANKS];
  RUN {
    for (step : 1 .. LAST) {
      choose(step);
      turn = step % BOARDS;
      if
      :: kind[step] == MEET -> post(READ_BY_ALL)
      :: WRITES ->
        await_readers();
        copy_sums();
        write_board();
        if
        :: IS_GATHER -> post(root[step])
        :: else -> post(READ_BY_ALL)
        fi
      :: else
      fi;
      if
      :: kind[step] == SLICES -> sum()
      :: else
      fi;
      if
      :: READS_ALL -> fetch_all()
      :: kind[step] == FROM_ROOT && !IS_ROOT -> fetch(root[step])
      :: else
      fi;
      if
      :: kind[step] == SLICES -> sum()
      :: else
      fi;
      reach(FINISHED(me), step);
      forget(step)
    }
  }
}
