/*
 * The definition of a method, the library's one extension point. A method is one file with static functions
 * and one `const struct method`, and one line in methods.def. See CONTRIBUTING.md, "Add a method".
 */
#ifndef SWP_METHOD_H
#define SWP_METHOD_H

#include "operations.h"

enum { SPEC_PARAMETERS = 3, SPEC_BYTES = 256, GRID_DIMS = 62, WORD_BYTES = 64 };

/* For functions that each execution runs: placed together, apart from planning and error handling. */
#define HOT __attribute__((hot))

struct swp_plan;
struct outbox;
struct inbox;
struct estimate;
struct tree;

enum parameter_type {
  PARAMETER_INTEGER, /* low .. high */
  PARAMETER_GRID,    /* sizes low .. high, written 8x4x2 */
  PARAMETER_CHOICE,  /* one of `choices`; its index is the value */
  PARAMETER_WORD     /* letters, digits, _ and -: known to the method only at run time */
};

struct parameter {
  const char *name; /* NULL ends the list */
  enum parameter_type type;
  long low, high;
  const char *const *choices; /* NULL-terminated */
  long otherwise;             /* the value where a spec gives none; not of grids */
};

/* The value of a parameter in a spec. */
struct argument {
  bool given;
  long value; /* the integer, the index of the choice, or the number of sizes; else the parameter's
                 `otherwise` */
  int sizes[GRID_DIMS];
  char word[WORD_BYTES];
};

/* A parsed method spec; arguments are in the order of the method's parameters. */
struct spec {
  const struct method *method;
  struct argument arguments[SPEC_PARAMETERS];
  char text[SPEC_BYTES]; /* canonical */
};

/* The facts that every rank knows about a problem; selection and `applicable` may read nothing else. */
struct features {
  enum swp_operation operation;
  int procs, nodes, ppn;
  bool shared_memory;  /* all ranks share memory, whatever nodes are imposed */
  bool alone;          /* all ranks of the job are here */
  bool without_world;  /* some rank is in a session without MPI_Init */
  bool early_ibarrier; /* of a discovery: MPI_Ibarrier completes before all have called it */
  int64_t executions;  /* that are expected; 0: unknown */
  int64_t mmax;        /* -1: unknown, for a discovery without hint */
  double mavg;         /* -1: unknown */
  int64_t bytes;       /* mean payload bytes per message; -1: unknown */

  /* For a collective, the values that MPI requires to be equal on all ranks. `bytes` is that of the vector of
     bcast, reduce and allreduce, and else of a rank's block, for allgatherv and alltoallv the mean, rounded
     down. */
  int64_t total_bytes; /* of the vector, or of the blocks of all ranks; of an alltoallv the most that a rank
                          sends or receives */
  int64_t most_bytes;  /* of the largest block; else as bytes */
  int root;            /* 0 where the operation has none */
  bool commutative;    /* the operation of a reduction; true where nothing is reduced, as the next */
  bool predefined;     /* it is predefined, and so is the type */
};

/* How a method does one collective operation. */
struct procedure {
  /* Executes plan->call, and blocks: see call.h. Absent: the method does not support this operation. */
  int (*run)(struct swp_plan *plan, const void *send, void *recv);

  /* The size of plan->call.scratch. Absent: none. Local. */
  int64_t (*scratch_bytes)(const struct swp_plan *plan);

  /* NULL when the method can do this call, otherwise why not. Absent: always. */
  const char *(*applicable)(const struct spec *spec, const struct features *features);
};

struct method {
  const char *name, *summary, *source;
  const char *usage; /* of the parameters, for people; absent when there are none */
  struct parameter parameters[SPEC_PARAMETERS + 1];

  bool node_memory; /* all plans take memory of the node; where a parameter decides: NODE_PARAMETER */

  /* NULL when the method can do it, otherwise why not. Absent: always. */
  const char *(*applicable)(const struct spec *spec, const struct features *features);

  /* NULL when this process can do it, otherwise why not: ranks, which may differ in nothing else, agree on it
     by swp_choices_agree. NULL without a parameter. Absent: every process can. Then variants that the method
     has here may differ, too. */
  const char *(*absent)(const struct spec *spec, enum swp_operation operation);

  /* Writes the index-th spec worth trying for the operation on this many processes; false past the last.
     Absent: the name. */
  bool (*variant)(enum swp_operation operation, int index, int procs, char *text, size_t length);

  /* Collective. Sets plan->method_state, and for an exchange the stages (swp_plan_stages, swp_plan_count).
     Errors need not be agreed: the caller does that; but a rank that fails must not leave others waiting. For
     a collective it is called when the method is first chosen on a plan, for calls of any bytes, root and
     types of the plan's operation; absent if there is nothing to prepare. */
  int (*plan)(struct swp_plan *plan);

  /* Called once for each call of plan, on every rank, even if plan failed on this rank or another:
     plan->method_state may then be incomplete, or still NULL. The caller releases plan->method_state
     itself. */
  void (*free)(struct swp_plan *plan);

  /* Sets *seconds to the model's estimate of an execution; negative: unknown. For an exchange from a plan of
     this method, else from the features and estimate->spec alone; not called for a collective of one rank,
     which takes no time. Absent: the method has no formula. Collective. Errors, agreed: SWP_ERR_MPI. */
  int (*estimate)(const struct swp_plan *plan, const struct estimate *estimate, double *seconds);

  /* Exchange: a method that sends the same messages, whose estimate holds for this one. */
  const char *estimated_as;

  /* Exchange: memory that the next execution can send from, when it may be written. Absent: any memory
     will do. */
  int (*buffer)(struct swp_plan *plan, char **buffer);

  /* Exchange: start, unless with SWP_ERR_STATE, and progress; with block, until *done. */
  int (*start)(struct swp_plan *plan, const char *send, char *recv);
  int (*advance)(struct swp_plan *plan, bool block, bool *done);

  /* Discovery: send the messages in the outbox, add those received to the inbox (swp_inbox_add). */
  int (*execute)(struct swp_plan *plan, const struct outbox *outbox, struct inbox *inbox);

  /* Collectives, by enum swp_operation; and this rank's place in the tree with a root, for procedures that
     go along one: see tree.h. */
  struct procedure procedures[OPERATIONS];
  void (*tree)(const struct swp_plan *plan, int root, struct tree *tree);
};

/* NULL when the method can do it, otherwise why not. */
const char *swp_not_applicable(const struct spec *spec, const struct features *features);

/* NULL when this process can do it, otherwise why not. */
const char *swp_absent(const struct spec *spec, enum swp_operation operation);

/* Parses "name:key=value,…" of a method for the operation into *spec. Errors: SWP_ERR_METHOD. */
int swp_spec_parse(enum swp_operation operation, const char *text, struct spec *spec);

/* The index-th method of the registry; NULL past the last. */
const struct method *swp_method_at(int index);

/* The method of this name for the operation, or NULL. */
const struct method *swp_method_find(enum swp_operation operation, const char *name, size_t length);

/* Writes the index-th spec of a method worth trying for the operation; false past the last, and if the method
   does not support it. */
bool swp_method_variant(const struct method *method, enum swp_operation operation, int index, int procs,
                        char *text, size_t length);

#endif
