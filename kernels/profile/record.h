/* What a profile records: the calls of this process, by function, communicator, type and size. */
#ifndef SWP_PROFILE_RECORD_H
#define SWP_PROFILE_RECORD_H

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define EXPORTED __attribute__((visibility("default")))

enum { SAMPLES = 128 };

/* A communicator as tables see it. Those of the same ranks are one. */
struct group {
  struct group *next;
  uint64_t members; /* hash of the ranks in MPI_COMM_WORLD */
  int number, procs, nodes, ppn;
  pthread_t thread;    /* of the collectives: those of several have no order that all ranks share */
  bool has_threads;    /* several: nothing is sampled */
  int64_t collectives; /* calls so far, numbered alike on all ranks */
  int samples, level;  /* of calls whose scrambled number ends with at least so many zero bits */
  struct sample {
    int64_t call;
    double started, seconds;
    const struct tally *tally;
  } sample[SAMPLES];
};

/* Calls that differ in nothing but the last bits of their size. */
struct tally {
  const char *name;
  const struct group *group;      /* NULL: the call has no communicator */
  char type[MPI_MAX_OBJECT_NAME]; /* "derived" for types that the program made, "" without one */
  int64_t calls;
  double bytes, seconds; /* in total */
};

/* Whether calls are recorded: between MPI_Init and MPI_Finalize, if a profile was asked for. */
extern atomic_bool record_on;

enum kind { COLLECTIVE, OTHER };

/* Seconds of a clock that all processes of a node share. */
double record_now(void);

/* Records a call that has ended well: `items` of a type in the largest block, as tables count them. */
void record_call(const char *name, enum kind kind, MPI_Comm comm, int64_t items, MPI_Datatype type,
                 double started, double seconds);

/* Nothing is recorded any more when it returns. False: so it was before. */
bool record_stop(void);

/* The tallies, in order of their first call; NULL after the last. */
const struct tally *record_tally(int index);

/* The first of the list of communicators. */
const struct group *record_groups(void);

/* The calls that are not recorded, as the memory for different calls was used up. */
int64_t record_lost(void);

#endif
