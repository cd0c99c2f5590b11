/*
 * The public header: usable on its own, in C++ too (header_cxx.cpp), every error with a text and an entry in
 * the reference. Usage: swp_header docs/reference/errors.md
 */
#include "switchpoint.h"

#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  int code;
  const char *name;
} errors[] = {{SWP_SUCCESS, "SWP_SUCCESS"},
              {SWP_ERR_ARGUMENT, "SWP_ERR_ARGUMENT"},
              {SWP_ERR_MEMORY, "SWP_ERR_MEMORY"},
              {SWP_ERR_MPI, "SWP_ERR_MPI"},
              {SWP_ERR_METHOD, "SWP_ERR_METHOD"},
              {SWP_ERR_NOT_APPLICABLE, "SWP_ERR_NOT_APPLICABLE"},
              {SWP_ERR_MISMATCH, "SWP_ERR_MISMATCH"},
              {SWP_ERR_TABLE, "SWP_ERR_TABLE"},
              {SWP_ERR_TOO_LARGE, "SWP_ERR_TOO_LARGE"},
              {SWP_ERR_STATE, "SWP_ERR_STATE"},
              {SWP_ERR_POISONED, "SWP_ERR_POISONED"}};
enum { ERRORS = sizeof errors / sizeof errors[0] };

static void every_error_has_its_own_text(void) {
  test_case("swp_strerror");
  const char *unknown = swp_strerror(-1);
  EXPECT(unknown != NULL && unknown[0] != '\0', "no text for unknown codes");
  EXPECT(strcmp(swp_strerror(ERRORS), unknown) == 0, "code %d has a text, and no place in this test", ERRORS);
  EXPECT(strcmp(swp_strerror(1 << 30), unknown) == 0, "code 2^30 has a text");
  for (int i = 0; i < ERRORS; i++) {
    const char *text = swp_strerror(errors[i].code);
    EXPECT_EQUAL(errors[i].code, i);
    EXPECT(text != NULL && text[0] != '\0' && strcmp(text, unknown) != 0, "%s has no text", errors[i].name);
    for (int k = 0; k < i; k++)
      EXPECT(strcmp(text, swp_strerror(errors[k].code)) != 0, "%s has the text of %s", errors[i].name,
             errors[k].name);
  }
}

static void every_error_is_in_the_reference(const char *page) {
  enum { PAGE_BYTES = 65536 };
  static char text[PAGE_BYTES];
  test_case("%s", page);
  FILE *file = fopen(page, "r");
  EXPECT(file != NULL, "cannot be read");
  if (file == NULL)
    return;
  text[fread(text, 1, PAGE_BYTES - 1, file)] = '\0';
  fclose(file);
  for (int i = 0; i < ERRORS; i++) {
    char row[256];
    snprintf(row, sizeof row, "| %d | `%s` | %s |", errors[i].code, errors[i].name,
             swp_strerror(errors[i].code));
    EXPECT(strstr(text, row) != NULL, "has no row '%s'", row);
  }
}

static void the_version_is_that_of_the_header(void) {
  char version[32];
  test_case("swp_version");
  snprintf(version, sizeof version, "%d.%d.%d", SWP_VERSION_MAJOR, SWP_VERSION_MINOR, SWP_VERSION_PATCH);
  EXPECT(strcmp(swp_version(), version) == 0, "is %s, expected %s", swp_version(), version);
}

/* All numbers up to 64, and then powers of two. */
static int next_step(int procs) {
  return procs < 64 ? 1 : procs;
}

static void expect_possible(const char *specs, int operation, int procs) {
  const bool power_of_two = (procs & (procs - 1)) == 0;
  EXPECT(procs == 2 || strstr(specs, "two_proc") == NULL, "on %d processes: %s", procs, specs);
  EXPECT(power_of_two || operation != SWP_ALLTOALL || strstr(specs, "bine") == NULL,
         "for an alltoall on %d processes: %s", procs, specs);
}

static void every_method_says_what_it_is(void) {
  struct swp_method_info info;
  int count = 0;
  for (; swp_method_list(count, &info) == SWP_SUCCESS; count++) {
    char specs[4096];
    test_case("method %d", count);
    EXPECT(info.name[0] != '\0' && info.summary[0] != '\0' && info.source[0] != '\0', "%s says too little",
           info.name);
    EXPECT(info.parameters != NULL, "%s has no parameter text", info.name);
    EXPECT(info.operations != 0, "%s does nothing", info.name);
    for (int operation = 0; swp_operation_name(operation) != NULL; operation++)
      for (int procs = 1; procs <= 4096 && (info.operations >> operation & 1); procs += next_step(procs)) {
        EXPECT_ERROR(swp_method_specs((enum swp_operation)operation, info.name, procs, specs, sizeof specs),
                     SWP_SUCCESS);
        expect_possible(specs, operation, procs);
      }
  }
  EXPECT(count >= 8, "only %d methods", count);
}

int main(int argc, char **argv) {
  EXPECT(strlen(swp_version()) > 0, "no version before MPI_Init");
  swp_environment_allow(); /* so that Open MPI 4 has names of algorithms */
  test_begin(&argc, &argv, "swp_header");
  every_error_has_its_own_text();
  every_error_is_in_the_reference(argc == 2 ? argv[1] : "errors.md");
  the_version_is_that_of_the_header();
  every_method_says_what_it_is();
  return test_end();
}
