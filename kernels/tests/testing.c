/* Functions that the kernel tests share. */
#include "testing.h"

#include "random.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REPORTED_FAILURES = 5, MOST_FAILURES = 50, SPECS_BYTES = 65536 };

static const char *program;
static _Thread_local char current[256];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the last words */
static char last_words[320];
static size_t last_words_length;
static int rank, procs;
static unsigned timeout_s;
static atomic_long cases, failures; /* of this rank */

/* Only async-signal-safe calls, and one write, so that the ranks' words do not mix. */
static void overrun(int number) {
  (void)number;
  _exit(write(STDERR_FILENO, last_words, last_words_length) < 0 ? 3 : 2);
}

void test_begin(int *argc, char ***argv, const char *name) {
  int initialized;
  program = name;
  MPI_Initialized(&initialized);
  if (!initialized)
    MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  const char *timeout = getenv("SWP_TEST_TIMEOUT");
  timeout_s = timeout != NULL ? (unsigned)atoi(timeout) : 60;
  signal(SIGALRM, overrun);
  test_case("the start");
}

void test_case(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(current, sizeof current, format, arguments);
  va_end(arguments);
  pthread_mutex_lock(&lock);
  snprintf(last_words, sizeof last_words, "%s: rank %d of %d makes no progress in: %s\n", program, rank,
           procs, current);
  last_words_length = strlen(last_words);
  pthread_mutex_unlock(&lock);
  cases++;
  alarm(timeout_s);
}

void test_failed(const char *file, int line, const char *format, ...) {
  long number = ++failures;
  if (number == MOST_FAILURES)
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  if (number > REPORTED_FAILURES)
    return;
  const char *slash = strrchr(file, '/');
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fprintf(stderr, "%s: rank %d of %d, %s: %s (%s:%d)\n", program, rank, procs, current, text,
          slash != NULL ? slash + 1 : file, line);
}

int test_end(void) {
  test_case("the end");
  cases -= 2; /* start and end are none */
  long mine = failures, all_failures;
  MPI_Allreduce(&mine, &all_failures, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && all_failures == 0)
    printf("%s: %ld cases passed on %d ranks\n", program, (long)cases, procs);
  if (rank == 0 && all_failures > 0)
    fprintf(stderr, "%s: %ld failures in %ld cases on %d ranks\n", program, all_failures, (long)cases, procs);
  MPI_Finalize();
  return all_failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int test_agreed(MPI_Comm comm, int error) {
  int mine[2] = {error, -error}, most[2];
  MPI_Allreduce(mine, most, 2, MPI_INT, MPI_MAX, comm);
  if (most[0] != -most[1]) {
    fprintf(stderr, "%s: rank %d, %s: errors differ between ranks: %d here, %d to %d everywhere\n", program,
            rank, current, error, -most[1], most[0]);
    sleep(1); /* so that every rank gets to say it */
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  }
  EXPECT(error == SWP_SUCCESS || swp_error_message()[0] != '\0', "error %d without a message", error);
  EXPECT(error == SWP_SUCCESS || strchr(swp_error_message(), '\n') == NULL, "a message of several lines: %s",
         swp_error_message());
  return error;
}

void *test_allocate(size_t bytes) {
  void *memory = malloc(bytes > 0 ? bytes : 1);
  if (memory == NULL) {
    fprintf(stderr, "%s: no memory for %zu bytes\n", program, bytes);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  }
  return memory;
}

uint64_t mix(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  uint64_t words[4] = {a, b, c, d}, mixed = 0;
  for (int i = 0; i < 4; i++) {
    mixed ^= words[i];
    mixed = swp_random(&mixed);
  }
  return mixed;
}

void test_fill(void *memory, int64_t bytes, uint64_t seed) {
  for (int64_t at = 0; at < bytes; at += (int64_t)sizeof seed) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    uint64_t word = seed ^ seed >> 32; /* the low bits of a congruential generator repeat soon */
    memcpy((char *)memory + at, &word, (size_t)(bytes - at < 8 ? bytes - at : 8));
  }
}

struct swp_collective test_alltoallv(MPI_Datatype type, const int *counts, const int *displs) {
  return (struct swp_collective){.operation = SWP_ALLTOALLV,
                                 .send_type = type,
                                 .recv_type = type,
                                 .recv_counts = counts,
                                 .displs = displs,
                                 .op = MPI_OP_NULL,
                                 .send_counts = counts,
                                 .send_displs = displs};
}

char *all_specs(enum swp_operation operation, int count) {
  char *specs = test_allocate(SPECS_BYTES);
  size_t length = 0;
  specs[0] = '\0';
  struct swp_method_info info;
  for (int i = 0; swp_method_list(i, &info) == SWP_SUCCESS; i++) {
    if ((info.operations >> operation & 1) == 0)
      continue;
    EXPECT_ERROR(swp_method_specs(operation, info.name, count, specs + length, SPECS_BYTES - 1 - length),
                 SWP_SUCCESS);
    length += strlen(specs + length);
    if (length > 0 && specs[length - 1] != ' ')
      specs[length++] = ' ';
    specs[length] = '\0';
  }
  return specs;
}
