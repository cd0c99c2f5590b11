/* Checks of one method against what the traffic says every rank must get. All are collective on comm. */
#ifndef ORACLE_H
#define ORACLE_H

#include "traffic.h"

enum { FIELDS = 4 };

/* Instead of the bytes of an item: fields of these bytes, fused. */
extern const int64_t field_bytes[FIELDS];
enum { FUSED = 0 };

/* An exchange of the oracle, of one field or of several that are fused: a plan, its buffers with guards
   around them, and what must arrive. */
struct exchange_run {
  swp_plan *plan;
  struct traffic *traffic;
  MPI_Comm comm;
  int rank;
  int64_t item_bytes, gap, recv_items; /* item_bytes: of all fields */
  struct field_run {
    int64_t item_bytes;
    unsigned char *send, *recv; /* each between guard bytes */
    unsigned char *from;        /* what is sent in this call: `send`, or memory of the plan */
  } fields[FIELDS];
  int nfields; /* 0: one, not fused */
};

/* Plans the method, for items of so many bytes or FUSED; false, with nothing to close, if that failed (which
   is reported). */
bool run_open(struct exchange_run *run, MPI_Comm comm, const char *method, const struct family *family,
              uint64_t seed, int64_t item_bytes, int64_t gap);
/* Call the library with the run's buffers, and return its error. */
int run_execute(struct exchange_run *run);
int run_start(struct exchange_run *run);
/* Fills the send buffers with the data of call `call`, and the receive buffers with none. */
void run_fill(struct exchange_run *run, uint64_t call);
/* Expects the data of that call in the receive buffers, and nothing else changed. */
void run_check(const struct exchange_run *run, uint64_t call);
void run_close(struct exchange_run *run);

/* Payload, guards and reuse, for one family. */
void check_exchange(MPI_Comm comm, const char *method, const struct family *family, int64_t item_bytes);

/* Many executions of one plan, each with its own data, ranks drifting apart. */
void check_exchange_repeated(MPI_Comm comm, const char *method, double seconds);

/* Some ranks wait before they meet the others in a barrier, and some behind it, as methods without stages
 * allow. */
void check_exchange_crossing(MPI_Comm comm, const char *method, const struct family *family);

/* Two started plans, whose waits cross with a message and a barrier of the application in many orders, with
 * `every` in all of two ranks; by methods without stages. */
void check_exchange_orders(MPI_Comm comm, const char *const methods[2], bool every);

/* Three started plans at the same time on one communicator, completed in another order. */
void check_exchange_outstanding(MPI_Comm comm, const char *const methods[3]);

/* Plans a discovery; NULL where it is expected not to be applicable. */
swp_plan *discovery_open(MPI_Comm comm, const char *method);
/* One execution into *inbox, checked. */
void discovery_execute(MPI_Comm comm, swp_plan *plan, const struct traffic *traffic, int64_t unit_bytes,
                       uint64_t call, swp_inbox **inbox);

/* Inbox against the oracle: sources, sizes, payload, order, reuse, lifetime. */
void check_discovery(MPI_Comm comm, const char *method, const struct family *family, int64_t unit_bytes);

/* A discovery while an exchange is under way on the same communicator. */
void check_discovery_during_exchange(MPI_Comm comm, const char *exchange, const char *discovery);

/* Many executions of one plan, each with its own pattern, ranks drifting apart. */
void check_discovery_repeated(MPI_Comm comm, const char *method, double seconds);

/* How many repetitions, at least so many, fit into about so many seconds, the same on every rank, given that
   the least took `elapsed_s` on this one. */
enum { AT_LEAST = 50 };
int repetitions(MPI_Comm comm, double elapsed_s, double seconds);

#endif
