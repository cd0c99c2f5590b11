/*
 * switchpoint.h: plan an MPI exchange or collective once, by the fastest known method, and execute it often.
 *
 * A function that returns int, but for swp_table_rules and _has, returns SWP_SUCCESS or one of enum
 * swp_error; swp_error_message() then tells what was wrong, where, and what to do. "Collective" means: every
 * rank of the communicator calls it, in the same order. A plan is used by one thread at a time; two plans in
 * two threads at once need MPI_THREAD_MULTIPLE. MPI must be initialised before the first call, unless it is
 * said to need no MPI, and every plan freed before MPI_Finalize. Buffers given to a call stay the caller's.
 */
#ifndef SWITCHPOINT_H
#define SWITCHPOINT_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

#define SWP_VERSION_MAJOR 0
#define SWP_VERSION_MINOR 1
#define SWP_VERSION_PATCH 0

/* What a call can return. Planning errors are the same on every rank. */
enum swp_error {
  SWP_SUCCESS = 0,
  SWP_ERR_ARGUMENT,       /* an argument is out of range, or differs between ranks */
  SWP_ERR_MEMORY,         /* memory ran out */
  SWP_ERR_MPI,            /* an MPI call failed */
  SWP_ERR_METHOD,         /* unknown method, or a malformed method spec */
  SWP_ERR_NOT_APPLICABLE, /* the method exists but cannot do this problem on these ranks */
  SWP_ERR_MISMATCH,       /* what the senders send is not what the receivers expect */
  SWP_ERR_TABLE,          /* the method table cannot be read */
  SWP_ERR_TOO_LARGE,      /* a size exceeds what MPI's int counts can carry for this method */
  SWP_ERR_STATE,   /* the plan of another operation, or a plan started twice or waited for without a start */
  SWP_ERR_POISONED /* an earlier execution of this plan failed; free it */
};

/* What is communicated: an exchange, a discovery, or one of the collectives of MPI. */
enum swp_operation {
#define OPERATION(upper, ...) SWP_##upper,
#include "switchpoint_operations.def" /* SWP_EXCHANGE, SWP_DISCOVERY, SWP_BCAST ... */
#undef OPERATION
};

/* The name of an operation as tables and swpbench write it, "reduce_scatter_block"; NULL when there is none
   of this number, so that a loop from 0 finds all. Static. Local; needs no MPI. */
const char *swp_operation_name(int operation);

/* The library's version, "major.minor.patch". Local; needs no MPI. */
const char *swp_version(void);

/* The meaning of an error code, a static string; never NULL. Local; needs no MPI. */
const char *swp_strerror(int error);

/* What the last failing call on this thread found: one line, valid until the next failing call. */
const char *swp_error_message(void);

/* The error code of the MPI call that failed there; MPI_SUCCESS where it was none, or another rank's. */
int swp_error_mpi(void);

/* ---- Methods ---------------------------------------------------------------------------------------- */

struct swp_method_info {
  unsigned operations;    /* that it does: bit 1 << SWP_BCAST and so on */
  const char *name;       /* as written in a spec, before the colon */
  const char *parameters; /* for example "dims=2..30 | grid=AxBx..."; "" when there are none */
  const char *summary;    /* one line */
  const char *source;     /* where it comes from */
};

/* The index-th registered method, from 0; SWP_ERR_ARGUMENT past the last. Strings are static. Local. */
int swp_method_list(int index, struct swp_method_info *info);

/*
 * Writes into specs, separated by spaces and NUL-terminated, every spec of the method `name` that is worth
 * trying for an operation on `procs` processes: "stfw:dims=2 stfw:dims=3". Empty when none is applicable.
 * Local. Errors: SWP_ERR_METHOD (the operation has no such method), SWP_ERR_ARGUMENT (no such operation, does
 * not fit in length, a NULL, or procs < 1).
 */
int swp_method_specs(enum swp_operation operation, const char *name, int procs, char *specs, size_t length);

/*
 * Puts into the environment what makes the MPI library take the algorithm `name` of its own for a collective,
 * as the method "vendor:environment=NAME" wants it. For the whole process, and before MPI_Init: a library
 * looks there when it starts, and may say nothing of a name that it does not know. Local. Errors:
 * SWP_ERR_ARGUMENT, SWP_ERR_NOT_APPLICABLE (a library of which the variables are not known).
 */
int swp_environment_set(enum swp_operation operation, const char *name);

/*
 * Puts into the environment what makes the MPI library let its algorithms be chosen later, as the method
 * "vendor:algorithm=NAME" wants it under Open MPI 4; what is there already stays. For the whole process, and
 * before MPI_Init. Local.
 */
void swp_environment_allow(void);

/* ---- Method tables ---------------------------------------------------------------------------------- */

typedef struct swp_table swp_table;

/*
 * Reads a method table on rank 0 and gives it to every rank of comm. Collective. Free with swp_table_free.
 * Errors, the same on every rank: SWP_ERR_TABLE, with file and line in swp_error_message(); SWP_ERR_ARGUMENT,
 * _MEMORY, _MPI.
 */
int swp_table_read(MPI_Comm comm, const char *path, swp_table **table);

/* The number of rules. Local. */
int swp_table_rules(const swp_table *table);

/* Whether there is a rule for the operation: 1 or 0. Local. */
int swp_table_has(const swp_table *table, enum swp_operation operation);

/* Frees a table and sets the pointer to NULL. NULL is allowed. Local. */
void swp_table_free(swp_table **table);

/* ---- Planning --------------------------------------------------------------------------------------- */

typedef struct swp_plan swp_plan;

/* What the caller knows beyond the problem; equal on every rank (checked). Start from SWP_HINTS_DEFAULT. */
struct swp_hints {
  unsigned flags;         /* SWP_ESTIMATE or SWP_MEASURE, and SWP_SAME_COMM */
  int64_t executions;     /* how often the plan will be executed; 0: unknown, taken for many */
  int64_t degree;         /* discovery: the most messages any rank will send at once; -1: unknown */
  int64_t bytes;          /* discovery: mean bytes per message; -1: unknown */
  const swp_table *table; /* used instead of the table named by SWITCHPOINT_TABLE; NULL: none */
  int ppn;         /* 0: the machine's nodes, ranks that share memory; above: virtual ones of ppn ranks */
  int placement;   /* which ranks are on one virtual node, of enum swp_placement */
  double budget_s; /* of SWP_MEASURE; 0: one second */
};

/* With ppn ranks on each of ceil(P / ppn) virtual nodes: */
enum swp_placement {
  SWP_PLACEMENT_BLOCK, /* rank r is on node r / ppn; the last may have fewer */
  SWP_PLACEMENT_CYCLIC /* rank r is on node r mod nodes */
};

#define SWP_ESTIMATE 0u  /* choose by table and model, without measuring */
#define SWP_SAME_COMM 1u /* of a collective: see swp_collective_plan */
#define SWP_MEASURE 2u   /* of an exchange or a collective: see swp_exchange_plan */
#define SWP_HINTS_DEFAULT {SWP_ESTIMATE, 0, -1, -1, NULL, 0, SWP_PLACEMENT_BLOCK, 0}

/*
 * An exchange, as one rank sees it: items of one size in a send buffer, which of them go to whom, and how
 * many come from whom. A rank appears at most once in each list; the rank itself may appear.
 *
 * Message i goes to send_ranks[i] and carries the items send_items[send_offsets[i] .. send_offsets[i+1]-1],
 * in that order; with send_items NULL, the items send_offsets[i] .. send_offsets[i+1]-1 themselves (opaque
 * messages). The data from recv_ranks[j] land in the receive buffer at items recv_offsets[j] ..
 * recv_offsets[j+1]-1, in the sender's order. A neighbour with no items is allowed and gets no message.
 */
struct swp_exchange {
  int64_t item_bytes; /* at least 1, equal on every rank; of no account where nsends and nrecvs are 0 */
  int64_t nitems;     /* items in the send buffer */
  int nsends;
  const int *send_ranks;       /* nsends */
  const int64_t *send_offsets; /* nsends + 1, non-decreasing; may be NULL when nsends is 0 */
  const int64_t *send_items;   /* each in 0 .. nitems-1, or NULL */
  int nrecvs;
  const int *recv_ranks;       /* nrecvs */
  const int64_t *recv_offsets; /* nrecvs + 1, non-decreasing; may be NULL when nrecvs is 0 */
};

/*
 * Plans an exchange. Collective on comm, of which the plan keeps a private duplicate. `method` is a spec
 * such as "direct" or "stfw:dims=3", equal on every rank; NULL or "auto" selects: by the first rule that
 * matches of the user's table, the file that SWITCHPOINT_USER_TABLE names (it may be missing); then of a
 * table, that of the hints or else the one named by SWITCHPOINT_TABLE; then by what is fastest by the
 * parameters of a model that the table may carry (estimated; exchanges and discoveries only); else the
 * default ("direct"). Every such call reads the files again.
 *
 * With SWP_MEASURE, where the user's table has no rule, all applicable methods are raced on this very
 * exchange, in buffers of the library's own, for about hints.budget_s in all (a method that is slow to plan
 * or execute may overrun it); the default stays unless another is clearly faster. A method is taken only if
 * hints.executions make up for what planning it costs more. What was found is appended to the user's table,
 * if SWITCHPOINT_USER_TABLE is set, for plans of the same exchange in later runs. When the budget is too
 * short to tell, the plan is made as without SWP_MEASURE. A discovery cannot be raced (SWP_ERR_ARGUMENT): its
 * messages are not known when it is planned.
 *
 * Methods that SWITCHPOINT_OFF lists are never used, at any operation, also if the caller names them
 * (SWP_ERR_NOT_APPLICABLE).
 *
 * hints may be NULL. The problem's arrays are no longer needed afterwards. On an error, the same on every
 * rank, *plan is NULL. Errors: SWP_ERR_ARGUMENT, _MEMORY, _MPI, _METHOD, _NOT_APPLICABLE, _MISMATCH, _TABLE
 * (also a user's table that cannot be written), _TOO_LARGE.
 */
int swp_exchange_plan(MPI_Comm comm, const struct swp_exchange *problem, const char *method,
                      const struct swp_hints *hints, swp_plan **plan);

/*
 * Plans a discovery: a sparse exchange in which no rank knows who will send to it. Collective on comm.
 * method, hints and errors as for swp_exchange_plan; the default is "pex".
 */
int swp_discovery_plan(MPI_Comm comm, const char *method, const struct swp_hints *hints, swp_plan **plan);

/*
 * A collective, with the arguments that the MPI function of its name takes, which mean what they mean there.
 * Types, and the operation of a reduction, must live as long as plans use them.
 *
 *   bcast                             recv_count, recv_type, root
 *   gather, scatter                   both sides, root; the side that MPI reads at the root only, at the root
 *   reduce                            recv_count, recv_type, op, root
 *   allreduce, reduce_scatter_block   recv_count, recv_type, op
 *   allgather, alltoall               both sides
 *   allgatherv                        send_count, send_type, recv_counts, displs, recv_type
 *
 * What MPI ignores may have any value here too; but the side that MPI_IN_PLACE is to take the place of must
 * have MPI_DATATYPE_NULL or another valid type.
 */
struct swp_collective {
  enum swp_operation operation; /* SWP_BCAST … */
  int send_count;
  MPI_Datatype send_type;
  int recv_count;
  MPI_Datatype recv_type;
  const int *recv_counts, *displs; /* a number for each rank; of no account after the call */
  MPI_Op op;
  int root;
};

/*
 * Plans a collective. Collective on comm. method, hints and errors as for swp_exchange_plan; the default is
 * "vendor". With "auto" the rules are kept in the plan, for swp_collective_set. What MPI wants equal on all
 * ranks is checked: operation, root, bytes, and whether the operation of a reduction is commutative and one
 * of MPI's.
 *
 * SWP_MEASURE races methods on this very call, reductions on operands of zero bytes; a user's operation must
 * bear them. What it finds holds for these bytes; others that swp_collective_set gives go by the rules.
 *
 * With SWP_SAME_COMM in the flags of the hints the plan communicates on comm itself, which from then on
 * returns its errors; the caller keeps it for such plans alone, executes one of them at a time, in the same
 * order on all ranks, and frees it after them. For many plans on the same ranks: communicators are few.
 */
int swp_collective_plan(MPI_Comm comm, const struct swp_collective *problem, const char *method,
                        const struct swp_hints *hints, swp_plan **plan);

/*
 * Gives the plan other counts, types, root, or operation of a reduction. Every rank calls it, with what MPI
 * wants of the call that follows; nothing is compared between ranks. A plan for which the method was selected
 * selects again, by a binary search among the rules and from what MPI makes equal on all ranks. It
 * communicates only when a method is chosen for the first time on this plan that has something to prepare.
 * A plan for a method of the caller's keeps it.
 *
 * Errors: SWP_ERR_NOT_APPLICABLE (of the caller's method), the same on all ranks; SWP_ERR_ARGUMENT (also
 * another operation than planned), _MEMORY, _MPI, _STATE, _POISONED, of this rank alone where the others did
 * not meet the same. After an error the plan is as before, but the others wait for this rank if they go on.
 */
int swp_collective_set(swp_plan *plan, const struct swp_collective *problem);

/* ---- Selecting without a plan ----------------------------------------------------------------------- */

/* The rules of a table for one collective operation on ranks of a known layout. For what stands between an
   application and its MPI, and wants a plan only where the table has another method than "vendor". */
typedef struct swp_selector swp_selector;

/* Where ranks are. */
struct swp_layout {
  int procs, nodes;
  int ppn;   /* the most ranks on one node */
  int alone; /* not 0: there is no other rank in the job */
};

/* What MPI makes equal on all ranks of a call. */
struct swp_facts {
  int64_t bytes;       /* as rules count them: docs/reference/table.md */
  int64_t total_bytes; /* of the vector, or of the blocks of all ranks */
  int64_t most_bytes;  /* of the largest block; else as bytes */
  int root;            /* 0 where the operation has none */
  MPI_Op op;           /* MPI_OP_NULL where it is no reduction */
};

/*
 * Makes a selector; the table must live as long. *selector is NULL when the table has no other method than
 * "vendor" for any call, not even one that is off, and on an error. Local; needs no MPI. Free with
 * swp_selector_free. Errors: SWP_ERR_ARGUMENT, _MEMORY.
 */
int swp_selector_create(const swp_table *table, enum swp_operation operation, const struct swp_layout *layout,
                        swp_selector **selector);

/* Whether a call of so many bytes (as in struct swp_facts) may have another method than "vendor": 0 if it
   certainly has not. Local, for several threads at once, as all up to swp_selector_passed. */
int swp_selector_asks(const swp_selector *selector, int64_t bytes);

/* The bytes from which on swp_selector_asks gives another answer, in increasing order: the first from which
   it is 1, and so on by turns. Returns how many. For who has no time for a call. They are the selector's. */
int swp_selector_changes(const swp_selector *selector, const int64_t **bytes);

/* What a selector has for a call. Strings are valid as long as the selector. */
struct swp_choice {
  const char *method; /* the spec; NULL: "vendor", as it chooses by itself */
  const char *passed; /* the spec of the rule that comes first, where its method is off or cannot do the call;
                         NULL: it is not passed over */
  const char *why;    /* the reason for that */
  int index, passed_index; /* the selector's own; -1: none */
};

/* Finds the choice for a call, by one search among the rules. */
void swp_selector_choose(const swp_selector *selector, const struct swp_facts *facts,
                         struct swp_choice *choice);

/* The members of that choice: its method; and what is passed over, with the reason in *why. */
const char *swp_selector_find(const swp_selector *selector, const struct swp_facts *facts);
const char *swp_selector_passed(const swp_selector *selector, const struct swp_facts *facts,
                                const char **why);

/*
 * swp_collective_plan and swp_collective_set by a choice that was found for the problem, without another
 * search unless its method cannot be prepared: then by the next that can. The choice is that of the same
 * rule on all ranks; it is one of a selector for the problem's operation and the layout of comm. The plan
 * shares the selector, which must live until the plan is freed, and reads no table: of the hints, table and
 * SWP_MEASURE have no meaning. Errors as there; SWP_ERR_ARGUMENT also of a choice that is not the selector's.
 */
int swp_selector_plan(MPI_Comm comm, const struct swp_collective *problem, const swp_selector *selector,
                      const struct swp_choice *choice, const struct swp_hints *hints, swp_plan **plan);
int swp_selector_set(swp_plan *plan, const struct swp_collective *problem, const struct swp_choice *choice);

/* Frees a selector and sets the pointer to NULL, after all plans that share it. NULL is allowed. Local. */
void swp_selector_free(swp_selector **selector);

/* ---- Plans ------------------------------------------------------------------------------------------ */

/*
 * Describes the plan in one line: method, layout, and what it was chosen by (caller, rule with file and line,
 * model with the estimated times, or default; and the first rule that holds, where its method cannot be used,
 * with the reason). At most length-1 characters and a NUL. Local.
 */
int swp_plan_describe(const swp_plan *plan, char *text, size_t length);

/* The spec of the method that the plan uses; valid as long as the plan. Local. */
const char *swp_plan_method(const swp_plan *plan);

/* As swp_selector_passed, of the call that the plan of a collective is set to, and of methods too that could
   not be prepared; NULL for other plans. Valid until the plan is set again. Local. */
const char *swp_plan_passed(const swp_plan *plan, const char **why);

/* What a plan does at each execution, the same on every rank unless said otherwise. Self-sends move no
   message and do not count. */
struct swp_statistics {
  int procs, nodes, ppn; /* ppn: the most ranks on one node */
  int stages;            /* of an exchange: 1 but for methods that forward */
  int64_t mmax;          /* most messages sent by a rank */
  double mavg;           /* mean messages sent by a rank */
  double vavg_bytes;     /* mean bytes sent by a rank */
  int64_t vmax_bytes;    /* most bytes sent by a rank */
  int64_t buffer_bytes;  /* largest over ranks: original sends and receives, and what it gets to pass on */
  int64_t copied_bytes;  /* sum over ranks: bytes that the method copies itself, packing and unpacking */
  int64_t hop_bytes;     /* sum over ranks: bytes sent, which counts a forwarded byte once per hop */
  int64_t plan_bytes;    /* this rank: memory that the plan holds, without that of MPI's own objects */
  /* Sums over ranks, by whether sender and receiver of a message are on one node: */
  int64_t on_node_messages, off_node_messages;
  int64_t on_node_bytes, off_node_bytes;
  int64_t off_node_mmax;       /* most messages to other nodes sent by a rank */
  int64_t off_node_vmax_bytes; /* most bytes to other nodes sent by a rank */
  /* By sockets, where the library is built with hwloc; -1: unknown, as of virtual nodes. */
  int sockets; /* the most of one node */
  /* Those on a node with sender and receiver on one socket; -1 where a rank is bound to none, too. */
  int64_t on_socket_messages, on_socket_bytes;
};

/*
 * The features of the problem itself (what `direct` would do) and the statistics of the plan. Either
 * pointer may be NULL. For a discovery or collective plan only procs, nodes, ppn, sockets and plan_bytes are
 * set. Local.
 */
int swp_plan_statistics(const swp_plan *plan, struct swp_statistics *problem, struct swp_statistics *method);

/*
 * Messages and bytes of stage `stage` (from 0): total over ranks, and the most of one rank. Any pointer may
 * be NULL. Local. Errors: SWP_ERR_ARGUMENT (no such stage).
 */
int swp_plan_stage(const swp_plan *plan, int stage, int64_t *messages, int64_t *messages_max, int64_t *bytes,
                   int64_t *bytes_max);

/* Frees a plan and sets the pointer to NULL. NULL is allowed. Collective on the plan's ranks, which it may
   synchronise: free several plans in the same order everywhere. Of a plan that an error has poisoned the
   memory that MPI may still use is kept. Errors: SWP_ERR_STATE (started and not waited for; the plan stays),
   SWP_ERR_MPI. */
int swp_plan_free(swp_plan **plan);

/* ---- Executing -------------------------------------------------------------------------------------- */

/*
 * Executes an exchange. send holds nitems items, recv recv_offsets[nrecvs]; they must not overlap, and may
 * change from call to call. Collective over the plan's ranks. Allocates nothing.
 * Errors: SWP_ERR_MPI, SWP_ERR_STATE, SWP_ERR_POISONED; they are this rank's alone. After an MPI error the
 * plan can only be freed, MPI may use the buffers of the failed call until MPI_Finalize, and other ranks may
 * wait for this one for ever: end the job.
 */
int swp_exchange_execute(swp_plan *plan, const void *send, void *recv);

/*
 * The same in two halves, for overlap: start, compute, then swp_wait. Until then send must not be written
 * and recv not be touched. Errors as for swp_exchange_execute; start is collective, but waits for no rank.
 *
 * Methods of several stages go on only inside the library, and other ranks need each stage.
 * swp_exchange_execute, swp_test and swp_wait of any plan progress all exchanges that this process has
 * started, so every rank may complete its exchanges in its own order. Any other call that blocks for another
 * rank (an MPI call of the application, planning, freeing, a discovery) does not, and deadlocks if that rank
 * waits for such an exchange: there all ranks must keep one order, as of collective calls.
 */
int swp_exchange_start(swp_plan *plan, const void *send, void *recv);

/* Progresses a started exchange. *done is 1 when it is complete (then no swp_wait is due), and 0 on an error:
   a loop until done must look at the error too. Local. Errors: as swp_wait, and SWP_ERR_ARGUMENT (done is
   NULL). */
int swp_test(swp_plan *plan, int *done);

/* Completes a started exchange; waits for the ranks that send to this one.
   Errors: SWP_ERR_MPI, SWP_ERR_STATE, SWP_ERR_POISONED. */
int swp_wait(swp_plan *plan);

/*
 * Executes a collective, as the MPI function of its name does, with MPI_IN_PLACE where that may be given; a
 * bcast has its buffer in recv. Collective over the plan's ranks, and blocking as in MPI: it may return
 * before other ranks have called. With nothing to communicate it does nothing. Allocates nothing.
 * Errors: SWP_ERR_ARGUMENT (a buffer or side that is needed is missing, or the rank's own block has not the
 * bytes of the others), SWP_ERR_MPI, _STATE, _POISONED; this rank's alone, as of swp_exchange_execute.
 */
int swp_collective_execute(swp_plan *plan, const void *send, void *recv);

/* What a discovery delivered: nsources messages by increasing source rank. A message of zero bytes is
   delivered like any other. Everything in it belongs to the inbox. */
typedef struct swp_inbox {
  int nsources;
  const int *sources;   /* nsources */
  const int64_t *bytes; /* nsources */
  void *const *data;    /* nsources, each aligned to 16 bytes */
} swp_inbox;

/*
 * Sends data[i], bytes[i] long, to ranks[i] for each of nsends destinations (each at most once, the rank
 * itself allowed), and returns what came here. Collective. *inbox is NULL, for a new one, or an earlier
 * inbox, which is emptied and reused.
 *
 * Errors are this rank's alone. SWP_ERR_ARGUMENT (a NULL plan apart) and SWP_ERR_TOO_LARGE (over 2 GiB - 1):
 * this rank has sent nothing and its inbox is empty, the other ranks' calls go on without its messages, and
 * the plan stays good. SWP_ERR_MEMORY: the same while the arguments are read; later, as SWP_ERR_MPI, it
 * poisons the plan and takes the inbox away (*inbox is NULL), MPI may use data until MPI_Finalize, and other
 * ranks may wait for this one for ever: end the job. SWP_ERR_STATE, SWP_ERR_POISONED: nothing was done.
 */
int swp_discovery_execute(swp_plan *plan, int nsends, const int *ranks, const int64_t *bytes,
                          const void *const *data, swp_inbox **inbox);

/* Frees an inbox, before or after its plan, and sets the pointer to NULL. NULL is allowed. Local. */
void swp_inbox_free(swp_inbox **inbox);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
