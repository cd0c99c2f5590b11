/*
 * What the kernel tests share: expectations that say in which case they failed, and a watchdog that turns a
 * hang into a failure with the same words.
 */
#ifndef TESTING_H
#define TESTING_H

#include "switchpoint.h"

#include <stdbool.h>

/* MPI_Init, unless the program has done it; `name` begins every line that it prints. Several threads may then
   use what follows, each in a case of its own. */
void test_begin(int *argc, char ***argv, const char *name);

/* Says what the next expectations are about, and gives them the watchdog's full time (SWP_TEST_TIMEOUT
   seconds, 60 if unset): a rank that overruns it prints the case and ends the job. */
void test_case(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints the number of cases and failures over all ranks, and finalises. Returns the exit status. */
int test_end(void);

/* Records a failure of this rank with the case's name, and goes on; at the 50th it ends the job. */
void test_failed(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

#define EXPECT(condition, ...) ((condition) ? (void)0 : test_failed(__FILE__, __LINE__, __VA_ARGS__))

/* Two integers, with both values in the report. */
#define EXPECT_EQUAL(value, expected)                                                                        \
  do {                                                                                                       \
    long long value_ = (long long)(value), expected_ = (long long)(expected);                                \
    EXPECT(value_ == expected_, "%s is %lld, expected %lld", #value, value_, expected_);                     \
  } while (0)

/* Expects that `error` is `expected`, with its text in the report. */
#define EXPECT_ERROR(error, expected)                                                                        \
  do {                                                                                                       \
    int error_ = (error), expected_ = (expected);                                                            \
    EXPECT(error_ == expected_, "error %d (%s), expected %d (%s)", error_,                                   \
           error_ == SWP_SUCCESS ? "success" : swp_error_message(), expected_, swp_strerror(expected_));     \
  } while (0)

/* Expects that all ranks of comm got the same error and, unless it is success, that this rank has a message.
   Ranks that differ would deadlock sooner or later, so then the job ends. Collective. Returns the error. */
int test_agreed(MPI_Comm comm, int error);

/* malloc that ends the job when memory runs out. */
void *test_allocate(size_t bytes);

/* A well-mixed 64-bit number from four, the source of all test data. */
uint64_t mix(uint64_t a, uint64_t b, uint64_t c, uint64_t d);

/* Fills memory with bytes that are a function of the seed. */
void test_fill(void *memory, int64_t bytes, uint64_t seed);

/* An alltoallv with as many items for each rank as from it, in the same places. */
struct swp_collective test_alltoallv(MPI_Datatype type, const int *counts, const int *displs);

/* All specs worth trying on `procs` ranks of all methods that do the operation, separated by spaces; to be
 * freed. */
char *all_specs(enum swp_operation operation, int procs);

#endif
