/* The ranks of a launch: shared nodes and cores, waiting that yields, and joint failure. */
#ifndef BENCH_TEAM_H
#define BENCH_TEAM_H

#include <mpi.h>
#include <stdbool.h>
#include <switchpoint.h>
#include <stddef.h>
#include <stdint.h>

struct team {
  MPI_Comm comm; /* for the bench's own messages */
  MPI_Comm node; /* the ranks that share memory with this one */
  /* The ranks of this machine, and the first ranks of all, null on other ranks. Both are null where there is
     one machine. */
  MPI_Comm machine, leaders;
  int rank, procs;
  int nodes, ppn;      /* ppn: most ranks on one node */
  int cores;           /* cores that the ranks of rank 0's node could use together */
  int machines;        /* fewer than nodes where nodes are virtual; ranks on one share its clock and cores */
  bool oversubscribed; /* more ranks than cores on some machine */
};

/* Collective on MPI_COMM_WORLD, as is team_free. */
void team_create(struct team *team);
void team_free(struct team *team);

/*
 * For each of n ranks, whether it shares this rank's node: near[i]. The nodes are those that the hints give
 * to plans. Local.
 */
void team_find_near(const struct team *team, const struct swp_hints *hints, int n, const int *ranks,
                    bool *near);

/* Waits for all requests; yields the core meanwhile if ranks outnumber cores. */
void team_wait(const struct team *team, int count, MPI_Request *requests);

/* A message of numbers between ranks of a communicator. */
void team_send(const struct team *team, MPI_Comm comm, const int64_t *data, int count, int target, int tag);
void team_receive(const struct team *team, MPI_Comm comm, int64_t *data, int count, int source, int tag);

/* Unlike libraries' collectives, these yield if ranks outnumber cores. From rank 0 to all. Collective. */
void team_bcast(const struct team *team, void *data, int count, MPI_Datatype type);

/* The reduction in place, on all ranks. Collective. */
void team_allreduce(const struct team *team, void *data, int count, MPI_Datatype type, MPI_Op op);

/* A number for every rank, and from every rank. Collective. */
void team_alltoall(const struct team *team, const int64_t *sent, int64_t *received);

/*
 * Collective. 0 when status is 0 on every rank; else -1 on every rank, after the lowest failing rank has
 * printed its failure_text() as the one line on stderr.
 */
int team_agree(const struct team *team, int status);

/* Prints the text, or an earlier failure_text(), and ends the job at once: for failures that cannot be agreed
   with the other ranks. */
_Noreturn void team_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* malloc and realloc for the small things of set-up: running out of memory ends the job. */
void *allocate(size_t bytes);
void *allocate_zeros(size_t bytes);
void *reallocate(void *memory, size_t bytes);

#endif
