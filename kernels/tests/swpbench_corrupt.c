/*
 * swpbench with exchanges, whole or in halves, discoveries, collectives, products and transforms that go
 * wrong, and messages of doubles, linked in front of the right ones by --wrap. SWP_CORRUPT says how; from the
 * call SWP_CORRUPT_CALL on, on the rank SWP_CORRUPT_RANK, and of whole exchanges only those by the method
 * SWP_CORRUPT_METHOD, if it is set. For soaks, such executions may also leak (for a while: pool), hang (last:
 * after one that goes wrong), fail to go on to the next root (turn: after one that goes wrong), or free what
 * they allocate, and a rank may hang between two sizes. Before the calls that SWP_CORRUPT_AT names, a rank
 * may be killed or stopped, exit, or have no more memory.
 */
#include "csr.h"
#include "fft.h"
#include "operation.h"

#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <switchpoint.h>
#include <sys/resource.h>
#include <unistd.h>

/* A shared libswitchpoint has these names too. */
#define VISIBLE __attribute__((visibility("default")))

int __real_swp_exchange_execute(swp_plan *plan, const void *send, void *recv);
int __real_swp_exchange_plan(MPI_Comm comm, const struct swp_exchange *problem, const char *method,
                             const struct swp_hints *hints, swp_plan **plan);
int __real_swp_discovery_plan(MPI_Comm comm, const char *method, const struct swp_hints *hints,
                              swp_plan **plan);
int __real_swp_collective_plan(MPI_Comm comm, const struct swp_collective *problem, const char *method,
                               const struct swp_hints *hints, swp_plan **plan);
int __real_swp_discovery_execute(swp_plan *plan, int nsends, const int *ranks, const int64_t *bytes,
                                 const void *const *data, swp_inbox **inbox);
int __real_swp_collective_execute(swp_plan *plan, const void *send, void *recv);
int __real_swp_collective_set(swp_plan *plan, const struct swp_collective *problem);
int __real_swp_exchange_start(swp_plan *plan, const void *send, void *recv);
int __real_swp_test(swp_plan *plan, int *done);
int __real_swp_wait(swp_plan *plan);
void __real_csr_multiply(const struct csr *csr, int32_t begin, int32_t end, int vectors, const double *x,
                         double *y);
int __real_MPI_Isend(const void *data, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
                     MPI_Request *request);
int __real_MPI_Put(const void *data, int count, MPI_Datatype type, int target, MPI_Aint place,
                   int target_count, MPI_Datatype target_type, MPI_Win window);
void __real_fft_execute(const struct fft *fft, double *row);
VISIBLE int __wrap_MPI_Isend(const void *data, int count, MPI_Datatype type, int target, int tag,
                             MPI_Comm comm, MPI_Request *request);
VISIBLE int __wrap_MPI_Put(const void *data, int count, MPI_Datatype type, int target, MPI_Aint place,
                           int target_count, MPI_Datatype target_type, MPI_Win window);
void __wrap_fft_execute(const struct fft *fft, double *row);
void __real_workload_free(struct workload *workload);
void __wrap_workload_free(struct workload *workload);
int __wrap_swp_collective_execute(swp_plan *plan, const void *send, void *recv);
int __wrap_swp_collective_set(swp_plan *plan, const struct swp_collective *problem);
int __wrap_swp_exchange_start(swp_plan *plan, const void *send, void *recv);
int __wrap_swp_test(swp_plan *plan, int *done);
int __wrap_swp_wait(swp_plan *plan);
void __wrap_csr_multiply(const struct csr *csr, int32_t begin, int32_t end, int vectors, const double *x,
                         double *y);
int __wrap_swp_exchange_execute(swp_plan *plan, const void *send, void *recv);
int __wrap_swp_exchange_plan(MPI_Comm comm, const struct swp_exchange *problem, const char *method,
                             const struct swp_hints *hints, swp_plan **plan);
int __wrap_swp_discovery_plan(MPI_Comm comm, const char *method, const struct swp_hints *hints,
                              swp_plan **plan);
int __wrap_swp_collective_plan(MPI_Comm comm, const struct swp_collective *problem, const char *method,
                               const struct swp_hints *hints, swp_plan **plan);
int __wrap_swp_discovery_execute(swp_plan *plan, int nsends, const int *ranks, const int64_t *bytes,
                                 const void *const *data, swp_inbox **inbox);

static int number(const char *name) {
  const char *text = getenv(name);
  return text ? atoi(text) : 0;
}

/* Returns whether this call is to go wrong in the given way. */
static int is_due(const char *way, int call) {
  const char *wanted = getenv("SWP_CORRUPT");
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return wanted && strcmp(wanted, way) == 0 && rank == number("SWP_CORRUPT_RANK") &&
         call >= number("SWP_CORRUPT_CALL");
}

/* Memory that is never freed, which the compiler must not see through. */
static void *volatile leaked;

static void take_all_memory(void) {
  enum { MOST_BYTES = 1 << 20, LEAST_BYTES = 16 };
  setrlimit(RLIMIT_AS, &(struct rlimit){0, 0});
  for (size_t bytes = MOST_BYTES; bytes >= LEAST_BYTES; bytes /= 2)
    while ((leaked = malloc(bytes)) != NULL)
      continue;
}

/* Ends this rank, or stops it, or takes it all further memory. */
static void befall(const char *place) {
  static int calls;
  const char *wanted = getenv("SWP_CORRUPT_AT");
  if (wanted == NULL || strcmp(wanted, place) != 0)
    return;
  const int call = calls++;
  if (is_due("kill", call))
    raise(SIGKILL);
  if (is_due("stop", call))
    raise(SIGSTOP);
  if (is_due("exit", call))
    exit(EXIT_SUCCESS);
  if (is_due("memory", call))
    take_all_memory();
}

/* The compiler must not see that it has no end. */
__attribute__((noinline)) static void hang_here(void) {
  for (;;)
    usleep(10000);
}

/* Frees all that it allocates: more and more blocks of each size, which the C library keeps for later. */
static void allocate_for_a_while(int call) {
  enum { SIZES = 64, CALLS_OF_SIZE = 5, MOST = 7 };
  static void *volatile blocks[MOST];
  const int step = call / CALLS_OF_SIZE, most = step / SIZES + 1;
  for (int i = 0; i < most && i < MOST; i++)
    blocks[i] = malloc((size_t)(16 + 16 * (step % SIZES)));
  for (int i = 0; i < most && i < MOST; i++)
    free(blocks[i]);
}

static void leak_or_hang(int call) {
  enum { POOL_CALLS = 2500 };
  if (is_due("leak", call) || (call < POOL_CALLS && is_due("pool", call)))
    leaked = malloc(48);
  if (is_due("free", call))
    allocate_for_a_while(call);
  if (is_due("hang", call) || is_due("last", call - 1))
    hang_here();
}

/* Hangs between the methods of two sizes. */
void __wrap_workload_free(struct workload *workload) {
  static int calls;
  if (is_due("between", calls++))
    hang_here();
  __real_workload_free(workload);
}

/* Corrupts the first byte that a completed exchange delivered. */
static int deliver(unsigned char *first, int error) {
  static int calls;
  static unsigned char before;
  const int call = calls++;
  leak_or_hang(call);
  if (is_due("byte", call) || is_due("last", call) || is_due("turn", call))
    *first ^= 0x10;
  if (is_due("stale", call))
    *first = before;
  before = *first;
  return is_due("error", call) ? SWP_ERR_MPI : error;
}

int __wrap_swp_exchange_plan(MPI_Comm comm, const struct swp_exchange *problem, const char *method,
                             const struct swp_hints *hints, swp_plan **plan) {
  befall("exchange_plan");
  return __real_swp_exchange_plan(comm, problem, method, hints, plan);
}

int __wrap_swp_discovery_plan(MPI_Comm comm, const char *method, const struct swp_hints *hints,
                              swp_plan **plan) {
  befall("discovery_plan");
  return __real_swp_discovery_plan(comm, method, hints, plan);
}

int __wrap_swp_collective_plan(MPI_Comm comm, const struct swp_collective *problem, const char *method,
                               const struct swp_hints *hints, swp_plan **plan) {
  befall("collective_plan");
  return __real_swp_collective_plan(comm, problem, method, hints, plan);
}

int __wrap_swp_exchange_execute(swp_plan *plan, const void *send, void *recv) {
  befall("exchange_execute");
  const char *method = getenv("SWP_CORRUPT_METHOD");
  const int error = __real_swp_exchange_execute(plan, send, recv);
  return method && strcmp(method, swp_plan_method(plan)) != 0 ? error : deliver(recv, error);
}

int __wrap_swp_collective_execute(swp_plan *plan, const void *send, void *recv) {
  befall("collective_execute");
  return deliver(recv, __real_swp_collective_execute(plan, send, recv));
}

int __wrap_swp_collective_set(swp_plan *plan, const struct swp_collective *problem) {
  static int calls;
  return is_due("turn", calls++) ? SWP_ERR_MPI : __real_swp_collective_set(plan, problem);
}

static void *started; /* where the exchange that was started last delivers */

int __wrap_swp_exchange_start(swp_plan *plan, const void *send, void *recv) {
  befall("exchange_start");
  started = recv;
  return __real_swp_exchange_start(plan, send, recv);
}

int __wrap_swp_test(swp_plan *plan, int *done) {
  befall("exchange_wait");
  const int error = __real_swp_test(plan, done);
  return *done ? deliver(started, error) : error;
}

int __wrap_swp_wait(swp_plan *plan) {
  befall("exchange_wait");
  return deliver(started, __real_swp_wait(plan));
}

void __wrap_csr_multiply(const struct csr *csr, int32_t begin, int32_t end, int vectors, const double *x,
                         double *y) {
  static int calls;
  __real_csr_multiply(csr, begin, end, vectors, x, y);
  if (is_due("row", calls++) && end > begin)
    y[csr->rows ? csr->rows[begin] : begin] += 1e-9;
}

int __wrap_swp_discovery_execute(swp_plan *plan, int nsends, const int *ranks, const int64_t *bytes,
                                 const void *const *data, swp_inbox **inbox) {
  static int calls;
  const int call = calls++;
  befall("discovery_execute");
  leak_or_hang(call);
  const int error = __real_swp_discovery_execute(plan, nsends, ranks, bytes, data, inbox);
  if (error)
    return error;
  if (is_due("byte", call))
    ((unsigned char *)(*inbox)->data[0])[0] ^= 0x10;
  if (is_due("size", call))
    ((int64_t *)(*inbox)->bytes)[0]--;
  if (is_due("source", call))
    ((int *)(*inbox)->sources)[0]++;
  if (is_due("lost", call))
    (*inbox)->nsources--;
  return is_due("error", call) ? SWP_ERR_MPI : error;
}

/* The data, or when they are due a copy with a wrong byte, which is kept for ever. */
static const void *spoil(const char *way, const void *data, int count, MPI_Datatype type) {
  static int calls;
  if (type != MPI_DOUBLE || count == 0 || !is_due(way, calls++))
    return data;
  unsigned char *copy = malloc((size_t)count * sizeof(double));
  memcpy(copy, data, (size_t)count * sizeof(double));
  copy[(size_t)count * sizeof(double) - 1] ^= 0x01;
  return copy;
}

int __wrap_MPI_Isend(const void *data, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
                     MPI_Request *request) {
  if (count > 0 && type != MPI_INT64_T) /* what is measured, not the bench's own */
    befall("isend");
  return __real_MPI_Isend(spoil("isend", data, count, type), count, type, target, tag, comm, request);
}

int __wrap_MPI_Put(const void *data, int count, MPI_Datatype type, int target, MPI_Aint place,
                   int target_count, MPI_Datatype target_type, MPI_Win window) {
  return __real_MPI_Put(spoil("put", data, count, type), count, type, target, place, target_count,
                        target_type, window);
}

void __wrap_fft_execute(const struct fft *fft, double *row) {
  static int calls;
  __real_fft_execute(fft, row);
  if (is_due("transform", calls++))
    for (int i = 0; i < 4; i++) /* of two elements: all that the test transforms */
      row[i] += 1e-9;
}
