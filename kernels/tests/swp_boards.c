/*
 * The protocol of boards, explored: the functions of boards.h are run in every order in which the ranks of a
 * node may get to call them. A rank's step is cut where another may come between: while it writes its board,
 * and while it reads one. None must be written while it is read, and what is read must be of the step. Then
 * by threads for ranks, as fast as they can, for ThreadSanitizer to see.
 */
#include "boards.h"
#include "testing.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3, STEPS = 4, EVERYONE = READ_BY_ALL, MOST_STATES = 1 << 20, THREAD_STEPS = 20000 };

/* The step's one writer, or EVERYONE; its one reader, or EVERYONE. */
struct step {
  int writer, reader;
};

/* What the ranks do, one after the other. */
static const struct program {
  const char *name;
  struct step steps[STEPS];
} programs[] = {
    {"allgather", {{EVERYONE, EVERYONE}, {EVERYONE, EVERYONE}, {EVERYONE, EVERYONE}, {EVERYONE, EVERYONE}}},
    {"bcast", {{0, EVERYONE}, {0, EVERYONE}, {0, EVERYONE}, {0, EVERYONE}}},
    {"bcast, changing roots", {{0, EVERYONE}, {1, EVERYONE}, {0, EVERYONE}, {2, EVERYONE}}},
    {"gather", {{EVERYONE, 0}, {EVERYONE, 0}, {EVERYONE, 0}, {EVERYONE, 0}}},
    {"gather, changing roots", {{EVERYONE, 0}, {EVERYONE, 2}, {EVERYONE, 1}, {EVERYONE, 0}}},
    {"all kinds", {{1, EVERYONE}, {EVERYONE, 2}, {EVERYONE, EVERYONE}, {1, EVERYONE}}},
};

static bool hasty; /* to see what is found: writers do not wait for readers */

/* ---- The state ---- */

struct part {
  char bytes[BOARDS_PART_BYTES];
};

/* Where a rank is in its step. */
enum phase { TO_WRITE, WRITING, TO_READ, READING, ENDED };

struct rank {
  struct boards boards;
  uint64_t finished[RANKS];
  enum phase phase;
  int step, source;
};

/* A state, with all of the boards that counts: the numbers and the first datum. */
struct packed {
  struct rank ranks[RANKS];
  uint64_t posted[RANKS][BOARDS], done[RANKS], data[RANKS][BOARDS];
};

static struct part *parts;
static struct rank ranks[RANKS];

static struct board *board_at(int rank, int turn) {
  return (struct board *)(void *)(parts[rank].bytes + turn * BOARD_STRIDE);
}

static call_number *done_of(int rank) {
  return (call_number *)(void *)(parts[rank].bytes + BOARDS * BOARD_STRIDE);
}

static uint64_t *datum(struct board *board) {
  return (uint64_t *)(void *)board->data;
}

static void save(struct packed *to) {
  memset(to, 0, sizeof *to);
  memcpy(to->ranks, ranks, sizeof ranks);
  for (int r = 0; r < RANKS; r++) {
    to->done[r] = atomic_load(done_of(r));
    for (int turn = 0; turn < BOARDS; turn++) {
      to->posted[r][turn] = atomic_load(&board_at(r, turn)->posted);
      to->data[r][turn] = *datum(board_at(r, turn));
    }
  }
}

static void restore(const struct packed *from) {
  memcpy(ranks, from->ranks, sizeof ranks);
  for (int r = 0; r < RANKS; r++) {
    atomic_store(done_of(r), from->done[r]);
    for (int turn = 0; turn < BOARDS; turn++) {
      atomic_store(&board_at(r, turn)->posted, from->posted[r][turn]);
      *datum(board_at(r, turn)) = from->data[r][turn];
    }
  }
}

static void begin(void) {
  const struct share share = {parts[0].bytes, (int64_t)sizeof *parts, (int64_t)sizeof *parts, NULL};
  memset(parts, 0, RANKS * sizeof *parts);
  memset(ranks, 0, sizeof ranks);
  for (int r = 0; r < RANKS; r++) {
    ranks[r].boards.share = share;
    swp_boards_begin(&ranks[r].boards, r, RANKS, ranks[r].finished);
  }
}

/* ---- One move of a rank ---- */

static uint64_t value_of(uint64_t step, int rank) {
  return step * RANKS + (uint64_t)rank;
}

static bool is_one(int of, int rank) {
  return of == EVERYONE || of == rank;
}

static void end_step(struct rank *rank) {
  swp_boards_finish(&rank->boards);
  rank->boards.step++;
  rank->phase = ++rank->step == STEPS ? ENDED : TO_WRITE;
}

/* Goes on to the next rank whose board is to be read, or to the end of the step. */
static void seek(const struct step *step, struct rank *rank, int from) {
  rank->source = from;
  while (rank->source < RANKS && (rank->source == rank->boards.rank || !is_one(step->writer, rank->source) ||
                                  !is_one(step->reader, rank->boards.rank)))
    rank->source++;
  rank->phase = TO_READ;
  if (rank->source == RANKS)
    end_step(rank);
}

/* Returns whether another reads this board just now. */
static bool is_read(const struct boards *boards) {
  for (int r = 0; r < RANKS; r++)
    if (ranks[r].phase == READING && ranks[r].source == boards->rank &&
        ranks[r].boards.step % BOARDS == boards->step % BOARDS)
      return true;
  return false;
}

/* False where the rank has to wait; *wrong is counted up. */
static bool move(const struct program *program, struct rank *rank, int *wrong) {
  struct boards *boards = &rank->boards;
  const struct step *step = &program->steps[rank->step];
  switch (rank->phase) {
  case TO_WRITE:
    if (!is_one(step->writer, boards->rank)) {
      seek(step, rank, 0);
      return true;
    }
    if (!hasty && swp_boards_missing(boards) >= 0)
      return false;
    *wrong += is_read(boards);
    *datum(swp_board(boards, boards->rank)) = 0;
    rank->phase = WRITING;
    return true;
  case WRITING:
    *wrong += is_read(boards);
    *datum(swp_board(boards, boards->rank)) = value_of(boards->step, boards->rank);
    swp_boards_post(boards, step->reader);
    seek(step, rank, 0);
    return true;
  case TO_READ:
    if (!swp_boards_posted(boards, rank->source))
      return false;
    rank->phase = READING;
    return true;
  case READING:
    *wrong += *datum(swp_board(boards, rank->source)) != value_of(boards->step, rank->source);
    seek(step, rank, rank->source + 1);
    return true;
  case ENDED:
    break;
  }
  return false;
}

/* ---- All orders ---- */

static struct packed *seen; /* states, in a table by hash */
static bool *is_seen;
static long nseen;

/* Returns whether the state is new. */
static bool add_state(const struct packed *state) {
  const unsigned char *bytes = (const unsigned char *)state;
  uint64_t hash = UINT64_C(1469598103934665603);
  for (size_t i = 0; i < sizeof *state; i++)
    hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
  size_t place = hash % MOST_STATES;
  while (is_seen[place]) {
    if (memcmp(&seen[place], state, sizeof *state) == 0)
      return false;
    place = (place + 1) % MOST_STATES;
  }
  is_seen[place] = true;
  seen[place] = *state;
  nseen++;
  return nseen < MOST_STATES / 2;
}

/* Explores all states from the present one on; the depth is bounded by the moves of all ranks. */
static void explore(const struct program *program, int *wrong, int *stuck) {
  struct packed here;
  bool moved = false, ended = true;
  save(&here);
  if (!add_state(&here))
    return;
  for (int r = 0; r < RANKS; r++) {
    ended = ended && ranks[r].phase == ENDED;
    if (move(program, &ranks[r], wrong)) {
      moved = true;
      explore(program, wrong, stuck);
    }
    restore(&here);
  }
  *stuck += !moved && !ended;
}

static int explored(const struct program *program) {
  int wrong = 0, stuck = 0;
  memset(is_seen, 0, MOST_STATES * sizeof *is_seen);
  nseen = 0;
  begin();
  explore(program, &wrong, &stuck);
  EXPECT_EQUAL(stuck, 0);
  EXPECT(nseen > 200 && nseen < MOST_STATES / 2, "%ld states", nseen);
  return wrong;
}

static void all_orders_are_right(void) {
  for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
    test_case("%s, in all orders", programs[i].name);
    EXPECT_EQUAL(explored(&programs[i]), 0);
  }
}

/* A reader that sends nothing back is overtaken, and the exploration says so. */
static void writers_that_do_not_wait_are_found(void) {
  test_case("writers that do not wait");
  hasty = true;
  EXPECT(explored(&programs[1]) > 0, "nothing wrong is found in a bcast");
  EXPECT(explored(&programs[3]) > 0, "nothing wrong is found in a gather");
  hasty = false;
}

/* ---- Threads ---- */

static const struct program *running;

static void *run_rank(void *argument) {
  struct rank *rank = argument;
  int *wrong = malloc(sizeof *wrong);
  *wrong = 0;
  for (int turn = 0; turn < THREAD_STEPS / STEPS; turn++) {
    rank->step = 0;
    rank->phase = TO_WRITE;
    while (rank->phase != ENDED) {
      struct boards *boards = &rank->boards;
      const struct step *step = &running->steps[rank->step];
      if (is_one(step->writer, boards->rank)) {
        while (swp_boards_missing(boards) >= 0)
          sched_yield();
        *datum(swp_board(boards, boards->rank)) = value_of(boards->step, boards->rank);
        swp_boards_post(boards, step->reader);
      }
      for (int source = 0; source < RANKS; source++)
        if (source != boards->rank && is_one(step->writer, source) && is_one(step->reader, boards->rank)) {
          while (!swp_boards_posted(boards, source))
            sched_yield();
          *wrong += *datum(swp_board(boards, source)) != value_of(boards->step, source);
        }
      end_step(rank);
    }
  }
  return wrong;
}

static void threads_agree(void) {
  for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
    pthread_t threads[RANKS];
    int *wrong;
    test_case("%s, by threads", programs[i].name);
    begin();
    running = &programs[i];
    for (int r = 0; r < RANKS; r++)
      pthread_create(&threads[r], NULL, run_rank, &ranks[r]);
    for (int r = 0; r < RANKS; r++) {
      pthread_join(threads[r], (void **)&wrong);
      EXPECT_EQUAL(*wrong, 0);
      free(wrong);
    }
  }
}

int main(int argc, char **argv) {
  static const uint64_t begins[] = {0, (UINT64_C(1) << 32) - 2, UINT64_MAX - 1};
  test_begin(&argc, &argv, "swp_boards");
  parts = aligned_alloc(LINE_BYTES, RANKS * sizeof *parts);
  seen = malloc(MOST_STATES * sizeof *seen);
  is_seen = malloc(MOST_STATES * sizeof *is_seen);
  for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
    swp_calls_begin = begins[i];
    all_orders_are_right();
    writers_that_do_not_wait_are_found();
    threads_agree();
  }
  free(parts), free(seen), free(is_seen);
  return test_end();
}
