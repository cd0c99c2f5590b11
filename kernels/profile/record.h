/* What a profile records: the calls of this process, by function, communicator, type and size. */
#ifndef SWP_PROFILE_RECORD_H
#define SWP_PROFILE_RECORD_H

#include "interpose.h"

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SAMPLES = 128 };

struct thread;

/* A communicator as tables see it. Those of the same ranks are one. */
struct group {
  struct group *next;
  uint64_t members; /* hash of the ranks in MPI_COMM_WORLD */
  int number, procs, nodes, ppn;
  _Atomic(struct thread *)
      owner;               /* of the collectives: those of several have no order that all ranks share */
  atomic_bool has_threads; /* several: samples do not count */
  int64_t collectives;     /* calls so far, numbered alike on all ranks */
  int samples, level;      /* of calls, of which one in 2^level is chosen */
  struct sample {
    int64_t call;
    double started, seconds;
    const struct tally *tally;
  } sample[SAMPLES];
};

/* Calls that differ in nothing but the last bits of their size. The last block of them is not in `seconds`.
 */
struct tally {
  const char *name;
  const struct group *group; /* NULL: the call has no communicator */
  const char *type;          /* "derived" for types that the program made, "" without one */
  int type_index, rounded;
  int64_t calls;
  double bytes, seconds; /* in total */
  int block_calls, block_timed;
  double timed_s;
  bool is_short;        /* so was the block before: not all calls are timed */
  struct tally *merged; /* that of the first thread with which this one was added up */
};

/* A call that has begun; without a tally, it is looked up when it has ended. */
struct call {
  struct tally *tally;
  struct group *group; /* whose samples it may join */
  int64_t bytes;
  double started;
  bool timed;
};

/* Whether calls are recorded: between MPI_Init and MPI_Finalize, if a profile was asked for. */
extern atomic_bool record_on;

enum kind { COLLECTIVE, OTHER };

/* Seconds of a clock that all processes of a node share. */
double record_now(void);

/* Returns whether MPI can be asked about the communicator of a call that has not begun. */
bool record_knows(MPI_Comm comm);

/* Added to the items of the blocks of all ranks together: their mean counts, in bytes, as in tables. */
#define OF_ALL (INT64_C(1) << 62)

/* Begins a call: `items` of a type in the largest block, as tables count them, or OF_ALL; -1 if unknown. */
struct call record_begin(const char *name, MPI_Comm comm, int64_t items, MPI_Datatype type);

/* Records a call that has ended well. */
void record_end(struct call *call, const char *name, enum kind kind, MPI_Comm comm, int64_t items,
                MPI_Datatype type);

/* Nothing is recorded any more when it returns. False: so it was before. */
bool record_stop(void);

/* Once it is stopped: the tallies, in order of their first call; NULL after the last. */
const struct tally *record_tally(int index);

/* The seconds of all calls, as estimated from those that were timed. */
double record_seconds(const struct tally *tally);

/* The index of a tally of any thread; -1: it has none. */
int record_index(const struct tally *tally);

/* The first of the list of communicators. */
const struct group *record_groups(void);

/* The calls of which the function alone is known, as there were too many different ones. */
int64_t record_lost(void);

/* Returns whether this rank is the root of a call. */
static inline bool is_root(MPI_Comm comm, int root) {
  int rank = MPI_PROC_NULL;
  if (comm != MPI_COMM_NULL)
    PMPI_Comm_rank(comm, &rank);
  return rank == root;
}

/* The mean of the counts, which are those of all ranks: see OF_ALL. */
#define MEAN(count_t, name)                                                                                  \
  static inline int64_t name(const count_t counts[], MPI_Comm comm) {                                        \
    int procs = 0, inter = 0;                                                                                \
    int64_t sum = 0;                                                                                         \
    if (comm == MPI_COMM_NULL)                                                                               \
      return 0;                                                                                              \
    PMPI_Comm_size(comm, &procs);                                                                            \
    PMPI_Comm_test_inter(comm, &inter);                                                                      \
    for (int i = 0; i < procs && !inter; i++)                                                                \
      sum += counts[i];                                                                                      \
    return OF_ALL + sum;                                                                                     \
  }
MEAN(int, mean_of)
#ifdef SWP_HAVE_LARGE_COUNTS
MEAN(MPI_Count, mean_of_c)
#endif
#undef MEAN

#endif
