/*
 * MPI_Gatherv, MPI_Scatterv and MPI_Alltoallw of a program that knows nothing of Switchpoint, in all their
 * forms: with counts that change, and with the promise swp_fixed_counts, alone and beside
 * swp_started_together. For a preload with rules for exchanges, and without.
 * Usage: swp_planned [--break-promise NUMBER [--started] | --renew]
 *   --break-promise  two ranks change their counts in that function, of the three from 0 on
 *   --started        in starts of persistent requests, if the MPI library has them
 *   --renew          the promise is made twice, for many calls each time
 */
#include "sides.h"
#include "testing.h"

#include <stdlib.h>
#include <string.h>

enum { SERIES = 4, CALLS = 12 };

enum function { GATHERV, SCATTERV, ALLTOALLW, FUNCTIONS };

static const int most[SERIES] = {6, 60, 6, 24}; /* items of a block, by the seed of the counts */

static const char *const names[FUNCTIONS] = {"gatherv", "scatterv", "alltoallw"};

struct call {
  enum function function;
  int root;
  uint64_t counts, values; /* seeds */
  bool typeless;           /* some blocks of nothing have no type */
  struct side send, recv;
  const void *from;
  void *into;
};

static int rank, procs;
static int longer_from = -1, longer_to = -1; /* whose block has two items more */
static bool alone_moves;                     /* an alltoallw of one process minds displacements in bytes */
static bool empty_typeless;                  /* blocks of nothing may have the type MPI_DATATYPE_NULL */

/* Tries what MPI libraries differ in: see docs/reference/mpi-faults.md. */
static void try_alone(void) {
  int sent[1 + sizeof(int)] = {0, 1}, got = 0, one = 1, none = 0, start = 0, second = (int)sizeof(int);
  MPI_Datatype type = MPI_INT, no_type = MPI_DATATYPE_NULL;
  MPI_Comm alone;
  MPI_Comm_dup(MPI_COMM_SELF, &alone);
  MPI_Comm_set_errhandler(alone, MPI_ERRORS_RETURN);
  MPI_Alltoallw(sent, &one, &second, &type, &got, &one, &start, &type, alone);
  alone_moves = got == 1;
  empty_typeless =
      MPI_Alltoallw(sent, &none, &start, &no_type, &got, &none, &start, &no_type, alone) == MPI_SUCCESS;
  MPI_Comm_free(&alone);
}

/* ---- Sides ---- */

/* Returns whether each rank sends another as much as it gets, as it must in place. */
static bool is_symmetric(uint64_t counts) {
  return counts % SERIES < 2;
}

/* In place, Open MPI hangs in a nonblocking alltoallw if a rank has no data at all, not even for itself. */
static int count_of(enum function function, uint64_t counts, int from, int to) {
  const bool in_place = function == ALLTOALLW && is_symmetric(counts), swap = in_place && from > to;
  const uint64_t drawn = mix(counts, (uint64_t)(swap ? to : from), (uint64_t)(swap ? from : to), 48);
  const int count = drawn % 3 == 0 ? 0 : (int)(drawn / 3 % (uint64_t)most[counts % SERIES]);
  return count + (in_place && from == to) + (from == longer_from && to == longer_to ? 2 : 0);
}

/* How many ranks are partners of this one; of one, that is the root. */
static int partners(const struct call *call, bool sends) {
  if (call->function == ALLTOALLW)
    return procs;
  if (sends == (call->function == GATHERV))
    return 1;
  return rank == call->root ? procs : 0;
}

static void make_side(const struct call *call, struct side *side, bool sends) {
  const int layout = (int)(mix(call->values, (uint64_t)rank, sends ? 49 : 50, 0) % LAYOUTS);
  const bool one = call->function != ALLTOALLW && sends == (call->function == GATHERV);
  side_begin(side, partners(call, sends));
  side->ranks = test_allocate(((size_t)side->n + 1) * sizeof *side->ranks);
  side->shared = false;
  side->mixed = call->function == ALLTOALLW;
  for (int i = 0; i < side->n; i++) {
    const int peer = one ? call->root : i;
    side->ranks[i] = peer;
    side->counts[i] = sends ? count_of(call->function, call->counts, rank, peer)
                            : count_of(call->function, call->counts, peer, rank);
  }
  side->count = side->n > 0 ? side->counts[0] : 0;
  side_lay(side, layout, layout % 2 != 0 && (call->function != ALLTOALLW || procs > 1 || alone_moves));
  for (int i = 0; i < side->n && layout < LAYOUTS / 2 && call->typeless; i++)
    if (side->counts[i] == 0)
      side->types[i] = MPI_DATATYPE_NULL;
}

static void end_side(struct side *side) {
  free(side->ranks);
  side_end(side);
}

/* MPI_IN_PLACE is for the root alone, or for all ranks of an alltoallw. */
static void place_buffers(struct call *call, bool in_place) {
  in_place = in_place && (call->function == ALLTOALLW ? is_symmetric(call->counts) : rank == call->root);
  call->from = call->function == GATHERV ? side_item(&call->send, 0, 0) : call->send.memory;
  call->into = call->function == SCATTERV ? side_item(&call->recv, 0, 0) : call->recv.memory;
  if (in_place && call->function == SCATTERV)
    call->into = MPI_IN_PLACE;
  else if (in_place)
    call->from = MPI_IN_PLACE;
}

static void fill(const struct call *call) {
  const struct side *side = call->from == MPI_IN_PLACE ? &call->recv : &call->send;
  for (int i = 0; i < side->n; i++)
    if (side == &call->send || call->function == ALLTOALLW || i == rank)
      side_fill(side, i, call->values, rank, side->ranks[i]);
}

/* Checks what was received, and that what was sent is still there. */
static void check(const struct call *call) {
  for (int i = 0; i < call->recv.n && call->into != MPI_IN_PLACE; i++)
    side_check(&call->recv, i, call->values, call->recv.ranks[i], rank);
  for (int i = 0; i < call->send.n && call->from != MPI_IN_PLACE; i++)
    side_check(&call->send, i, call->values, rank, call->send.ranks[i]);
  side_check_gaps(&call->recv);
  side_check_gaps(&call->send);
}

/* ---- Calls ---- */

/* What the functions take besides comes last. */
#define DEFINE_CALL(name, gatherv, scatterv, alltoallw, Counts, Displs, Places, ...)                         \
  static int name(const struct call *call, MPI_Comm comm, MPI_Request *request) {                            \
    const struct side *s = &call->send, *r = &call->recv;                                                    \
    (void)request;                                                                                           \
    switch (call->function) {                                                                                \
    case GATHERV:                                                                                            \
      return gatherv(call->from, s->count, s->type, call->into, r->Counts, r->Displs, r->type, call->root,   \
                     __VA_ARGS__);                                                                           \
    case SCATTERV:                                                                                           \
      return scatterv(call->from, s->Counts, s->Displs, s->type, call->into, r->count, r->type, call->root,  \
                      __VA_ARGS__);                                                                          \
    default:                                                                                                 \
      return alltoallw(call->from, s->Counts, s->Places, s->types, call->into, r->Counts, r->Places,         \
                       r->types, __VA_ARGS__);                                                               \
    }                                                                                                        \
  }

/* The calls with counts of int, or with large ones. */
#define DEFINE_PLAIN(suffix, ...)                                                                            \
  DEFINE_CALL(plain##suffix, MPI_Gatherv##suffix, MPI_Scatterv##suffix, MPI_Alltoallw##suffix, __VA_ARGS__,  \
              comm)
#define DEFINE_BEGUN(suffix, ...)                                                                            \
  DEFINE_CALL(begun##suffix, MPI_Igatherv##suffix, MPI_Iscatterv##suffix, MPI_Ialltoallw##suffix,            \
              __VA_ARGS__, comm, request)
#define DEFINE_MADE(suffix, ...)                                                                             \
  DEFINE_CALL(made##suffix, MPI_Gatherv_init##suffix, MPI_Scatterv_init##suffix, MPI_Alltoallw_init##suffix, \
              __VA_ARGS__, comm, MPI_INFO_NULL, request)

DEFINE_PLAIN(, counts, displs, places)
DEFINE_BEGUN(, counts, displs, places)
#ifdef SWP_HAVE_LARGE_COUNTS
DEFINE_PLAIN(_c, large_counts, large_displs, large_places)
DEFINE_BEGUN(_c, large_counts, large_displs, large_places)
#endif
#ifdef SWP_HAVE_PERSISTENT
DEFINE_MADE(, counts, displs, places)
#ifdef SWP_HAVE_LARGE_COUNTS
DEFINE_MADE(_c, large_counts, large_displs, large_places)
#endif
#endif

struct form {
  int (*call)(const struct call *, MPI_Comm, MPI_Request *);
  bool waits, starts;
};

static const struct form forms[] = {
    {plain, false, false},   {begun, true, false},
#ifdef SWP_HAVE_LARGE_COUNTS
    {plain_c, false, false}, {begun_c, true, false},
#endif
#ifdef SWP_HAVE_PERSISTENT
    {made, true, true},
#ifdef SWP_HAVE_LARGE_COUNTS
    {made_c, true, true},
#endif
#endif
};

enum { FORMS = sizeof forms / sizeof *forms };

static void execute(const struct call *call, const struct form *form, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  EXPECT_EQUAL(form->call(call, comm, &request), MPI_SUCCESS);
  if (form->starts)
    EXPECT_EQUAL(MPI_Start(&request), MPI_SUCCESS);
  if (form->waits)
    EXPECT_EQUAL(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
  if (form->starts)
    MPI_Request_free(&request);
}

/* Layouts of places and types differ from call to call and rank to rank. */
static void check_call(enum function function, int root, uint64_t counts, int number, MPI_Comm comm) {
  struct call call = {.function = function, .root = root, .counts = counts};
  call.values = 1000 * counts + (uint64_t)(100 * number + root);
  /* MPICH 4.0.2 exchanges wrong data in place in a nonblocking alltoallw of such blocks. */
  call.typeless = empty_typeless && !forms[number % FORMS].waits;
  test_case("%s to or from rank %d, counts %d, call %d", names[function], root, (int)counts, number);
  make_side(&call, &call.send, true);
  make_side(&call, &call.recv, false);
  place_buffers(&call, number / FORMS % 2 != 0);
  fill(&call);
  execute(&call, &forms[number % FORMS], comm);
  check(&call);
  end_side(&call.send);
  end_side(&call.recv);
}

/* ---- What is checked ---- */

static MPI_Comm promised(bool together) {
  MPI_Comm copy;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "swp_fixed_counts", "true");
  MPI_Info_set(info, "swp_started_together", together ? "true" : "false");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &copy);
  MPI_Info_free(&info);
  return copy;
}

static void promise(MPI_Comm comm, const char *value) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "swp_fixed_counts", value);
  MPI_Comm_set_info(comm, info);
  MPI_Info_free(&info);
}

/* Other counts in each call. */
static void check_changing(MPI_Comm comm, uint64_t seed) {
  for (int function = 0; function < FUNCTIONS; function++)
    for (int i = 0; i < CALLS; i++)
      check_call((enum function)function, i % procs, seed + (uint64_t)i, i, comm);
}

/* The same counts for each root; then other ones, without the promise of them. */
static void check_fixed(void) {
  for (uint64_t series = 0; series < SERIES; series++) {
    MPI_Comm comm = promised(series % 2 != 0);
    for (int function = 0; function < FUNCTIONS; function++)
      for (int root = 0; root < (function == ALLTOALLW ? 1 : procs); root++)
        for (int i = 0; i < CALLS; i++)
          check_call((enum function)function, root, series, i, comm);
    promise(comm, "false");
    check_changing(comm, series);
    MPI_Comm_free(&comm);
  }
}

/* A root that is no rank is refused by MPI. */
static void check_refused(void) {
  MPI_Comm comm = promised(true);
  int *counts = test_allocate(2 * (size_t)procs * sizeof *counts), number = 0;
  for (int i = 0; i < 2 * procs; i++)
    counts[i] = 0;
  test_case("a root that is no rank");
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  EXPECT(MPI_Gatherv(&number, 0, MPI_INT, &number, counts, counts + procs, MPI_INT, procs, comm) !=
             MPI_SUCCESS,
         "MPI gathers to it");
  EXPECT(MPI_Scatterv(&number, counts, counts + procs, MPI_INT, &number, 0, MPI_INT, -7, comm) != MPI_SUCCESS,
         "MPI scatters from it");
#ifdef SWP_HAVE_PERSISTENT
  MPI_Request request;
  EXPECT(MPI_Gatherv_init(&number, 0, MPI_INT, &number, counts, counts + procs, MPI_INT, procs, comm,
                          MPI_INFO_NULL, &request) != MPI_SUCCESS,
         "MPI makes a request that gathers to it");
  EXPECT(MPI_Scatterv_init(&number, counts, counts + procs, MPI_INT, &number, 0, MPI_INT, -7, comm,
                           MPI_INFO_NULL, &request) != MPI_SUCCESS,
         "MPI makes a request that scatters from it");
#endif
  free(counts);
  MPI_Comm_free(&comm);
}

/* Half of the ranks send their numbers to the first one of the others. */
static void check_between_groups(void) {
  const int half = procs / 2, upper = rank >= half;
  int *numbers = test_allocate(3 * (size_t)procs * sizeof *numbers), *counts = numbers + procs,
      *displs = counts + procs;
  MPI_Comm own, both;
  test_case("a gatherv between two groups");
  MPI_Comm_split(MPI_COMM_WORLD, upper, rank, &own);
  MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, upper ? 0 : half, 6, &both);
  for (int i = 0; i < procs; i++) {
    counts[i] = 1;
    displs[i] = i;
  }
  const int root = upper ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  EXPECT_EQUAL(MPI_Gatherv(&rank, 1, MPI_INT, numbers, counts, displs, MPI_INT, root, both), MPI_SUCCESS);
  for (int i = 0; i < procs - half && rank == 0; i++)
    EXPECT_EQUAL(numbers[i], half + i);
  free(numbers);
  MPI_Comm_free(&both);
  MPI_Comm_free(&own);
}

/* Rank 1 and the root know; right without the promise. */
static void break_promise(enum function function, bool started) {
  MPI_Comm comm = promised(started);
  for (int i = 0; i < 3; i++) {
    if (i == 2) {
      longer_from = function == SCATTERV ? 0 : 1;
      longer_to = 1 - longer_from;
    }
    check_call(function, 0, 3, started ? FORMS - 1 : 0, comm);
  }
  MPI_Comm_free(&comm);
}

/* More calls each time than the guard needs. */
static void renew_promise(void) {
  enum { PROMISES = 2, CALLS_OF_EACH = 600 };
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int i = 0; i < PROMISES; i++) {
    promise(comm, "true");
    for (int k = 0; k < CALLS_OF_EACH; k++)
      check_call(GATHERV, 0, 3, 0, comm);
  }
  MPI_Comm_free(&comm);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  test_begin(&argc, &argv, "swp_planned");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  sides_begin();
  try_alone();
  if (argc > 2 && strcmp(argv[1], "--break-promise") == 0) {
    break_promise((enum function)atoi(argv[2]), argc > 3 && strcmp(argv[3], "--started") == 0);
  } else if (argc > 1 && strcmp(argv[1], "--renew") == 0) {
    renew_promise();
  } else {
    check_changing(MPI_COMM_WORLD, 100);
    check_fixed();
    check_refused();
    if (procs > 1)
      check_between_groups();
  }
  sides_end();
  return test_end();
}
