/*
 * switchpoint.h: plan an MPI exchange or collective once, by the fastest known method, and execute it often.
 *
 * A function that returns int returns SWP_SUCCESS or one of enum swp_error, unless its comment says
 * otherwise; after an error swp_error_message() says what was wrong, where, and what to do. "Collective"
 * means: every rank of the communicator calls it, in the same order. A plan is used by one thread at a time;
 * two plans in two threads at once need MPI_THREAD_MULTIPLE. MPI must be initialised before any call that is
 * not marked "needs no MPI", and every plan must be freed before MPI_Finalize. Where MPI ends and begins
 * again in a process, by sessions, the library can be used only until MPI first ends. A function that frees
 * sets the pointer to NULL, and may be given NULL. The caller keeps ownership of the buffers that it passes.
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

/* Return codes. Planning errors are the same on every rank. */
enum swp_error {
  SWP_SUCCESS = 0,
  SWP_ERR_ARGUMENT,       /* an argument is out of range, or differs between ranks */
  SWP_ERR_MEMORY,         /* memory ran out */
  SWP_ERR_MPI,            /* an MPI call failed */
  SWP_ERR_METHOD,         /* unknown method, or a malformed method spec */
  SWP_ERR_NOT_APPLICABLE, /* the method exists but cannot solve this problem on these ranks */
  SWP_ERR_MISMATCH,       /* sends and receives do not match */
  SWP_ERR_TABLE,          /* the method table cannot be read */
  SWP_ERR_TOO_LARGE,      /* a size exceeds what MPI's int counts can carry for this method */
  SWP_ERR_STATE,   /* for another operation, already started, not started, or from a buffer kept too long */
  SWP_ERR_POISONED /* an earlier execution of this plan failed; free it */
};

/* The operations: exchange, discovery, and the collectives of MPI. */
enum swp_operation {
#define OPERATION(upper, ...) SWP_##upper,
#include "switchpoint_operations.def" /* SWP_EXCHANGE, SWP_DISCOVERY, SWP_BCAST ... */
#undef OPERATION
};

/* The name of an operation as written in tables and by swpbench, such as "reduce_scatter_block"; NULL if no
   operation has this number, so a loop from 0 finds them all. A static string. Local; needs no MPI. */
const char *swp_operation_name(int operation);

/* The library's version, "major.minor.patch". Local; needs no MPI. */
const char *swp_version(void);

/* The meaning of an error code, a static string; never NULL. Local; needs no MPI. */
const char *swp_strerror(int error);

/* The message of this thread's last failed call: one line, valid until the next call. Needs no MPI. */
const char *swp_error_message(void);

/* The code of the MPI error behind that failure: MPI_ERR_IN_STATUS if it is of one of several messages;
   MPI_SUCCESS if no MPI call of this rank failed. */
int swp_error_mpi(void);

/* ---- Methods ---------------------------------------------------------------------------------------- */

struct swp_method_info {
  unsigned operations;    /* that it supports: bit 1 << SWP_BCAST and so on */
  const char *name;       /* as written in a spec, before the colon */
  const char *parameters; /* for example "dims=2..30 | grid=AxBx..."; "" when there are none */
  const char *summary;    /* one line */
  const char *source;     /* the publication or standard that defines it */
};

/* The index-th registered method, from 0; SWP_ERR_ARGUMENT past the last. Strings are static. Local. */
int swp_method_list(int index, struct swp_method_info *info);

/*
 * Writes to specs every spec of the method `name` that is worth trying for an operation on `procs` processes,
 * separated by spaces and NUL-terminated: "stfw:dims=2 stfw:dims=3". Empty if none is applicable. Local.
 * Errors: SWP_ERR_METHOD (the operation has no such method), SWP_ERR_ARGUMENT (also if length is too small).
 */
int swp_method_specs(enum swp_operation operation, const char *name, int procs, char *specs, size_t length);

/*
 * Sets the environment variables that make the MPI library use its own algorithm `name` for a collective, as
 * the method "vendor:environment=NAME" requires. Affects the whole process; call it before MPI_Init: a
 * library reads them when it starts, and may silently ignore a name that it does not know. Local; needs no
 * MPI. Errors: SWP_ERR_ARGUMENT, SWP_ERR_NOT_APPLICABLE (the variables of this library are not known).
 */
int swp_environment_set(enum swp_operation operation, const char *name);

/* Sets those that let its algorithms be chosen later, as the method "vendor:algorithm=NAME" requires under
   Open MPI 4; variables that are already set stay unchanged. Affects the whole process; call it before
   MPI_Init. Local; needs no MPI. */
void swp_environment_allow(void);

/* ---- Method tables ---------------------------------------------------------------------------------- */

typedef struct swp_table swp_table;

/*
 * Reads a method table on rank 0 and distributes it to every rank of comm. Collective. Free with
 * swp_table_free. Errors, the same on every rank: SWP_ERR_TABLE, with file and line in swp_error_message();
 * SWP_ERR_METHOD if SWITCHPOINT_OFF names no method; SWP_ERR_ARGUMENT, _MEMORY, _MPI.
 */
int swp_table_read(MPI_Comm comm, const char *path, swp_table **table);

/* Returns the number of rules. Local. */
int swp_table_rules(const swp_table *table);

/* Returns 1 if there is a rule for the operation that is not off, otherwise 0. Local. */
int swp_table_has(const swp_table *table, enum swp_operation operation);

/* Frees a table. Local. */
void swp_table_free(swp_table **table);

/* ---- Planning --------------------------------------------------------------------------------------- */

typedef struct swp_plan swp_plan;

/* What the caller knows beyond the problem, equal on every rank (checked). Start from SWP_HINTS_DEFAULT. */
struct swp_hints {
  unsigned flags;         /* SWP_ESTIMATE or SWP_MEASURE, and SWP_SAME_COMM (not checked) */
  int64_t executions;     /* how often the plan will be executed; 0: unknown, assumed to be many */
  int64_t degree;         /* discovery: the most messages any rank sends per execution; -1: unknown */
  int64_t bytes;          /* discovery: mean bytes per message; -1: unknown */
  const swp_table *table; /* used instead of the table named by SWITCHPOINT_TABLE; NULL: none */
  int ppn;                /* 0: real nodes, whose ranks share memory; above: virtual nodes of ppn ranks */
  int placement;          /* how ranks are placed on virtual nodes, one of enum swp_placement */
  double budget_s;        /* for SWP_MEASURE; 0: one second */
};

/* The placement of P ranks on ceil(P / ppn) virtual nodes of ppn ranks: */
enum swp_placement {
  SWP_PLACEMENT_BLOCK, /* rank r is on node r / ppn; the last may have fewer */
  SWP_PLACEMENT_CYCLIC /* rank r is on node r mod nodes */
};

#define SWP_ESTIMATE 0u  /* choose by table and model, without measuring */
#define SWP_SAME_COMM 1u /* for a collective: see swp_collective_plan */
#define SWP_MEASURE 2u   /* for an exchange or a collective: see swp_exchange_plan */
#define SWP_HINTS_DEFAULT {SWP_ESTIMATE, 0, -1, -1, NULL, 0, SWP_PLACEMENT_BLOCK, 0}

/*
 * An exchange as seen by one rank: items of one size in a send buffer, which of them go to which rank, and
 * how many arrive from each rank. A rank appears at most once in each list; the rank itself may appear.
 *
 * Message i goes to send_ranks[i] and carries the items send_items[send_offsets[i] .. send_offsets[i+1]-1],
 * in that order; if send_items is NULL, the items send_offsets[i] .. send_offsets[i+1]-1 themselves (opaque
 * messages). The data from recv_ranks[j] land in the receive buffer at items recv_offsets[j] ..
 * recv_offsets[j+1]-1, in the sender's order. A neighbour with no items is allowed and gets no message.
 */
struct swp_exchange {
  int64_t item_bytes; /* at least 1, equal on all ranks; any if nsends = nrecvs = 0, read only if on all */
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
 * Plans an exchange. Collective on comm, of which the plan keeps a private duplicate. `method` is a spec such
 * as "direct" or "stfw:dims=3", equal on every rank. NULL or "auto" selects: the first matching rule of the
 * user's table (the file named by SWITCHPOINT_USER_TABLE, which may be missing); else the first matching rule
 * of the table in the hints, or of the one named by SWITCHPOINT_TABLE if the hints have none; else the method
 * estimated to be fastest, if that table has the parameters of a model (exchanges and discoveries only); else
 * the default ("direct"), also where the one chosen cannot be used, as for want of memory of the node. Every
 * such call reads the files again.
 *
 * With SWP_MEASURE, if the user's table has no matching rule, all applicable methods are raced on this very
 * exchange, in buffers of the library's own, for about hints.budget_s in total (a method that is slow to plan
 * or execute may exceed it). The default is used unless another method is clearly faster and hints.executions
 * make up for its higher planning cost. The result is appended to the user's table, if SWITCHPOINT_USER_TABLE
 * is set, for plans of the same exchange in later runs. If the budget is too short for a result, the plan is
 * made as without SWP_MEASURE. A discovery cannot be raced (SWP_ERR_ARGUMENT): its messages are unknown.
 *
 * Methods in SWITCHPOINT_OFF are not used by any plan, even if the caller names one (SWP_ERR_NOT_APPLICABLE).
 *
 * hints may be NULL. The problem's arrays are no longer needed afterwards. On an error, the same on every
 * rank, *plan is NULL. Errors: SWP_ERR_ARGUMENT, _MEMORY, _MPI, _METHOD, _NOT_APPLICABLE, _MISMATCH, _TABLE
 * (also if the user's table cannot be written), _TOO_LARGE.
 */
int swp_exchange_plan(MPI_Comm comm, const struct swp_exchange *problem, const char *method,
                      const struct swp_hints *hints, swp_plan **plan);

/*
 * Plans an exchange of several fields, each with a send and a receive buffer of its own, by one message to a
 * neighbour: the item of field f has field_bytes[f] bytes, and the exchange is that of items which have all
 * fields. problem->item_bytes is ignored. Rules, models and statistics see these whole items. The plan packs
 * and unpacks the fields in buffers of its own; neither copied_bytes nor SWP_MEASURE counts that. Collective,
 * with the errors of swp_exchange_plan; SWP_ERR_MISMATCH also if the fields differ between ranks. A rank
 * without sends and receives need not know the fields.
 */
int swp_fields_plan(MPI_Comm comm, const struct swp_exchange *problem, int nfields,
                    const int64_t *field_bytes, const char *method, const struct swp_hints *hints,
                    swp_plan **plan);

/* Plans a discovery: a sparse exchange in which no rank knows who will send to it. Collective on comm.
   method, hints and errors as for swp_exchange_plan; the default is "pex". */
int swp_discovery_plan(MPI_Comm comm, const char *method, const struct swp_hints *hints, swp_plan **plan);

/*
 * A collective, with the arguments of the MPI function of the same name, which have the same meaning. Types,
 * and the operation of a reduction, must stay valid as long as plans use them.
 *
 *   bcast                             recv_count, recv_type, root
 *   gather, scatter                   both sides, root; a side that MPI reads only at the root, only there
 *   reduce                            recv_count, recv_type, op, root
 *   allreduce, reduce_scatter_block   recv_count, recv_type, op
 *   allgather, alltoall               both sides
 *   allgatherv                        send_count, send_type, recv_counts, displs, recv_type
 *   alltoallv                         send_counts, send_displs, send_type, recv_counts, displs, recv_type
 *   barrier                           nothing; rules take it for a call of one byte
 *
 * Arguments that MPI ignores may have any value here too, but the type of a side that MPI_IN_PLACE replaces
 * must be MPI_DATATYPE_NULL or another valid type, the latter in an alltoallv with valid lists.
 */
struct swp_collective {
  enum swp_operation operation; /* SWP_BCAST … */
  int send_count;
  MPI_Datatype send_type;
  int recv_count;
  MPI_Datatype recv_type;
  const int *recv_counts, *displs; /* one entry per rank; not read after the call */
  MPI_Op op;
  int root;
  const int *send_counts, *send_displs; /* as recv_counts and displs */
};

/*
 * Plans a collective. Collective on comm. method, hints and errors as for swp_exchange_plan; the default is
 * "vendor". Of an alltoallv, whose counts each rank has for itself, the ranks agree on the values that rules
 * read, and on whether each receives from every other what that sends it: SWP_ERR_MISMATCH. With "auto" the
 * plan keeps the rules, for swp_collective_set. The values that MPI requires to be equal on all ranks are
 * checked: operation, root, bytes, whether op commutes, and whether it and its type are predefined.
 *
 * SWP_MEASURE races methods on this very call, reductions on operands of all bits zero, which a user-defined
 * operation must accept. The result is for this number of bytes; to others, set later, the rules apply.
 *
 * With SWP_SAME_COMM in the flags of the hints the plan communicates on comm itself, which from then on
 * returns its errors. The caller must use comm for such plans only, execute one of them at a time, in the
 * same order on all ranks, and free comm after them. This is for many plans on the same ranks, as the number
 * of communicators is limited.
 */
int swp_collective_plan(MPI_Comm comm, const struct swp_collective *problem, const char *method,
                        const struct swp_hints *hints, swp_plan **plan);

/*
 * Gives the plan other counts, types, root, or operation of a reduction. Every rank must call it, with
 * arguments that MPI would accept for the call that follows; nothing is compared between ranks, except for an
 * alltoallv, whose ranks agree as when it is planned: it is for counts that stay. If the method was selected,
 * the plan selects again, by a binary search among the rules and from values that MPI requires to be equal on
 * all ranks. Otherwise it communicates only when it first chooses a method that needs preparation. A method
 * that the caller named is kept.
 *
 * Errors: SWP_ERR_NOT_APPLICABLE (the caller's method cannot do the call) and, for an alltoallv,
 * SWP_ERR_MISMATCH, the same on all ranks; SWP_ERR_ARGUMENT (also for an operation other than planned),
 * _MEMORY, _MPI, _TOO_LARGE, _STATE, _POISONED, on this rank only unless other ranks fail likewise. After an
 * error the plan is unchanged, but the others wait for this rank if they go on.
 */
int swp_collective_set(swp_plan *plan, const struct swp_collective *problem);

/* ---- Selecting without a plan ----------------------------------------------------------------------- */

/* The rules of a table for one collective operation on ranks of a known layout. For software between an
   application and its MPI that needs a plan only where the table has a method other than "vendor". */
typedef struct swp_selector swp_selector;

/* The layout of the ranks; procs, nodes and ppn are at least 1. */
struct swp_layout {
  int procs, nodes;
  int ppn;   /* the most ranks on one node */
  int alone; /* not 0: the job has no other ranks */
};

/* The values of a call that MPI requires to be equal on all ranks. */
struct swp_facts {
  int64_t bytes;       /* as rules count them: docs/reference/table.md */
  int64_t total_bytes; /* of the vector, or of the blocks of all ranks */
  int64_t most_bytes;  /* of the largest block; equal to bytes where blocks do not differ */
  int root;            /* 0 if the operation has none */
  MPI_Op op;           /* MPI_OP_NULL if it is not a reduction */
};

/*
 * Makes a selector; the table must outlive it. *selector is NULL on an error, and if the table has no method
 * other than "vendor" for any call, not even one that is off. Local; needs no MPI. Free with
 * swp_selector_free. Errors: SWP_ERR_ARGUMENT (not a collective, or a wrong layout), SWP_ERR_MEMORY.
 */
int swp_selector_create(const swp_table *table, enum swp_operation operation, const struct swp_layout *layout,
                        swp_selector **selector);

/* Returns 0 if a call of this many bytes (as in struct swp_facts) certainly has no method but "vendor", else
   1. Local. Several threads may call all functions from here to swp_selector_passed at once. */
int swp_selector_asks(const swp_selector *selector, int64_t bytes);

/* Returns the number of sizes at which the answer of swp_selector_asks changes, and points *bytes at them, in
   increasing order: from the first on it is 1, from the second on 0, and so on. For callers that have no time
   for a call. The selector owns the array. */
int swp_selector_changes(const swp_selector *selector, const int64_t **bytes);

/* The choice of a selector for a call. Strings are valid as long as the selector. */
struct swp_choice {
  const char *method; /* the spec; NULL: "vendor", whose algorithm the MPI library chooses */
  const char *passed; /* the spec of the first rule that matches, if its method is off or cannot do the call;
                         NULL: it is not passed over */
  const char *why;    /* the reason for passing it over */
  int index, passed_index; /* internal to the selector; -1: none */
};

/* Finds the choice for a call, by one search among the rules. */
void swp_selector_choose(const swp_selector *selector, const struct swp_facts *facts,
                         struct swp_choice *choice);

/* Return single members of that choice: `method`; and `passed`, with the reason in *why. */
const char *swp_selector_find(const swp_selector *selector, const struct swp_facts *facts);
const char *swp_selector_passed(const swp_selector *selector, const struct swp_facts *facts,
                                const char **why);

/*
 * Like swp_collective_plan and swp_collective_set, with a choice already found for the problem; they search
 * again only if its method cannot be prepared, and then use the next one that can be. The choice must come
 * from the same rule on all ranks, and from a selector for the problem's operation and the layout of comm. An
 * alltoallv is set without communication: as many bytes go from each rank to each other as when it was
 * planned; a block, or blocks together, of more bytes are refused (SWP_ERR_ARGUMENT). The plan shares the
 * selector, which must live until the plan is freed, and reads no table: the table and SWP_MEASURE in the
 * hints are ignored. Errors as there; SWP_ERR_ARGUMENT also if the choice is not the selector's, or its
 * layout is not that of comm, by the hints.
 */
int swp_selector_plan(MPI_Comm comm, const struct swp_collective *problem, const swp_selector *selector,
                      const struct swp_choice *choice, const struct swp_hints *hints, swp_plan **plan);
int swp_selector_set(swp_plan *plan, const struct swp_collective *problem, const struct swp_choice *choice);

/* Frees a selector; free all plans that share it first. Local. */
void swp_selector_free(swp_selector **selector);

/* ---- Plans ------------------------------------------------------------------------------------------ */

/*
 * Describes the plan in one line: method, arrangement, and how it was chosen (caller, rule with file and
 * line, model with the estimated times, or default; and the first matching rule if its method cannot be used,
 * with the reason). Writes at most length-1 characters and a NUL. Local.
 */
int swp_plan_describe(const swp_plan *plan, char *text, size_t length);

/* The spec of the method that the plan uses; valid as long as the plan. Local. */
const char *swp_plan_method(const swp_plan *plan);

/* Like swp_selector_passed, for the call that the plan of a collective is set to; it also reports methods
   that could not be prepared. NULL for other plans. Valid until the plan is set again. Local. */
const char *swp_plan_passed(const swp_plan *plan, const char **why);

/* What a plan does at each execution; the same on every rank unless stated otherwise. Messages to oneself are
   not counted. */
struct swp_statistics {
  int procs, nodes, ppn; /* ppn: the most ranks on one node */
  int stages;            /* of an exchange: 1, except for methods that forward */
  int64_t mmax;          /* most messages sent by a rank */
  double mavg;           /* mean messages sent by a rank */
  double vavg_bytes;     /* mean bytes sent by a rank */
  int64_t vmax_bytes;    /* most bytes sent by a rank */
  int64_t buffer_bytes;  /* largest over ranks: original sends and receives, and data to be forwarded */
  int64_t copied_bytes;  /* sum over ranks: bytes that the method itself copies to pack and unpack */
  int64_t hop_bytes;     /* sum over ranks: bytes sent; a forwarded byte counts once per hop */
  int64_t plan_bytes;    /* this rank: memory that the plan holds, excluding MPI's own objects */
  /* Sums over ranks, by whether sender and receiver of a message are on the same node: */
  int64_t on_node_messages, off_node_messages;
  int64_t on_node_bytes, off_node_bytes;
  int64_t off_node_mmax;       /* most messages to other nodes sent by a rank */
  int64_t off_node_vmax_bytes; /* most bytes to other nodes sent by a rank */
  /* By sockets, if the library is built with hwloc; -1: unknown, for example on virtual nodes. */
  int sockets; /* the most on one node */
  /* On-node ones with sender and receiver on one socket; -1 also if a rank is not bound to one. */
  int64_t on_socket_messages, on_socket_bytes;
};

/* The features of the problem itself (what `direct` would do) and the statistics of the plan; either may be
   NULL. For a discovery or collective only procs, nodes, ppn, sockets and plan_bytes are set. Local. */
int swp_plan_statistics(const swp_plan *plan, struct swp_statistics *problem, struct swp_statistics *method);

/* Messages and bytes of stage `stage` (from 0): the total over ranks, and the maximum of one rank. Any
   pointer may be NULL. Local. Errors: SWP_ERR_ARGUMENT (no such stage). */
int swp_plan_stage(const swp_plan *plan, int stage, int64_t *messages, int64_t *messages_max, int64_t *bytes,
                   int64_t *bytes_max);

/* Frees a plan. Collective on the plan's ranks, which it may synchronise: free several plans in the same
   order everywhere. If an error has poisoned the plan, memory that MPI may still use is not released. Errors:
   SWP_ERR_STATE (started but not waited for; the plan is kept), SWP_ERR_MPI. */
int swp_plan_free(swp_plan **plan);

/* ---- Executing -------------------------------------------------------------------------------------- */

/*
 * Executes an exchange. send holds nitems items, recv recv_offsets[nrecvs]; they must not overlap, and may
 * change from call to call. Collective over the plan's ranks. Allocates nothing. Errors: SWP_ERR_MPI,
 * SWP_ERR_STATE, SWP_ERR_POISONED; they are local to this rank. After an MPI error the plan can only be
 * freed, MPI may use the buffers of the failed call until MPI_Finalize, and other ranks may wait for this one
 * for ever: end the job.
 */
int swp_exchange_execute(swp_plan *plan, const void *send, void *recv);

/*
 * The same in two steps, for overlap: start, compute, then call swp_wait. Until it returns, send must not be
 * written and recv must not be accessed. Errors as for swp_exchange_execute.
 *
 * Start is collective. By the node's memory it may wait until the ranks that this one sends to, or through,
 * have completed the execution before the last; otherwise it waits for no rank. If no swp_wait of a program
 * can hang, no start can.
 *
 * Methods with several stages progress only inside the library, and other ranks depend on each stage.
 * swp_exchange_execute, swp_test and swp_wait of any plan progress all exchanges that this process has
 * started, so every rank may complete its exchanges in its own order. Any other call that blocks for another
 * rank (an MPI call of the application, planning, freeing, a discovery) does not, and deadlocks if that rank
 * waits for such an exchange: all ranks must make such calls in one order, as with collective calls.
 */
int swp_exchange_start(swp_plan *plan, const void *send, void *recv);

/*
 * Sets *send to memory of the plan for the nitems items that the next execution sends. With the method `lent`
 * receivers read them there, and nobody copies them before; with any other it is memory like the caller's
 * own, which may be used as well. Two buffers may take turns: call this before each execution, and write what
 * it sends to where *send points then; what was there before is lost. With `lent` receivers may still read
 * this memory after swp_wait: do not write it until this function returns it again; to send from it without
 * that is refused (SWP_ERR_STATE). Local, but may wait for the ranks to which this one sends to complete the
 * execution before the last. Freed with the plan. Errors: SWP_ERR_ARGUMENT (send is NULL), SWP_ERR_STATE
 * (under way, or a plan of fields), SWP_ERR_MEMORY, _MPI, _POISONED.
 */
int swp_exchange_buffer(swp_plan *plan, void **send);

/*
 * The same for a plan of fields, which is completed by swp_wait and swp_test too: send[f] and recv[f] are the
 * buffers of field f. The arrays themselves are no longer needed afterwards; they may be NULL where nothing
 * is sent or received. Errors: as above, and SWP_ERR_ARGUMENT (one is NULL).
 */
int swp_fields_execute(swp_plan *plan, const void *const *send, void *const *recv);
int swp_fields_start(swp_plan *plan, const void *const *send, void *const *recv);

/* Progresses a started exchange. Sets *done to 1 when it is complete (then swp_wait must not be called), and
   to 0 on an error: a loop until done must check the error too. Local. Errors: as for swp_wait, and
   SWP_ERR_ARGUMENT (done is NULL). */
int swp_test(swp_plan *plan, int *done);

/* Completes a started exchange. Waits until the ranks that this one receives from have started it, and may
   wait until those that it sends to have; by a method that forwards or calls a collective of MPI, until all
   have. Errors: SWP_ERR_MPI, SWP_ERR_STATE, SWP_ERR_POISONED. */
int swp_wait(swp_plan *plan);

/*
 * Executes a collective like the MPI function of the same name, with MPI_IN_PLACE where MPI allows it; the
 * buffer of a bcast is recv, and a barrier has none. Collective over the plan's ranks, and blocking as in
 * MPI: all but a barrier may return before other ranks have called. With nothing to communicate it does
 * nothing. Allocates nothing. Errors: SWP_ERR_ARGUMENT (a required buffer or side is missing, or the size of
 * the rank's own block differs from that of the others), SWP_ERR_MPI, _STATE, _POISONED; local to this rank,
 * as for swp_exchange_execute.
 */
int swp_collective_execute(swp_plan *plan, const void *send, void *recv);

/* The messages that a discovery delivered: nsources, by increasing source rank. A message of zero bytes is
   delivered like any other. The inbox owns all its arrays and data. */
typedef struct swp_inbox {
  int nsources;
  const int *sources;   /* nsources */
  const int64_t *bytes; /* nsources */
  void *const *data;    /* nsources, each aligned to 16 bytes */
} swp_inbox;

/*
 * Sends data[i], bytes[i] long, to ranks[i] for each of nsends destinations (each at most once, the rank
 * itself allowed), and returns the messages sent to this rank. Collective. *inbox must be NULL, to create an
 * inbox, or an earlier inbox, which is emptied and reused.
 *
 * Errors are local to this rank. SWP_ERR_ARGUMENT (except for a NULL plan) and SWP_ERR_TOO_LARGE (over
 * 2 GiB - 1): this rank has sent nothing and its inbox is empty, the other ranks' calls go on without its
 * messages, and the plan stays usable. SWP_ERR_MEMORY: the same while the arguments are read; later, like
 * SWP_ERR_MPI, it poisons the plan as in swp_exchange_execute, and sets *inbox to NULL: end the job. So it
 * does where a method forwards more than 2 GiB - 1 from a rank to another at once. SWP_ERR_STATE,
 * SWP_ERR_POISONED: nothing was done.
 */
int swp_discovery_execute(swp_plan *plan, int nsends, const int *ranks, const int64_t *bytes,
                          const void *const *data, swp_inbox **inbox);

/* Frees an inbox, before or after its plan. Local. */
void swp_inbox_free(swp_inbox **inbox);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
