/*
 * What algorithms of the environment are made of: which variables swp_environment_set sets, and in which
 * processes the method vendor:environment=NAME is then applicable. Of Open MPI; other libraries have no names
 * with several variables.
 */
#include "testing.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 3 };

static const char *const variables[PARTS] = {"OMPI_MCA_coll_han_bcast_low_module",
                                             "OMPI_MCA_coll_han_bcast_up_module",
                                             "OMPI_MCA_coll_han_bcast_segsize"};

static const struct {
  const char *name, *values[PARTS]; /* "": not set */
} names[] = {{"han", {"", "", ""}},
             {"han-sm", {"1", "", ""}},
             {"han-adapt", {"", "1", ""}},
             {"han-16384", {"", "", "16384"}},
             {"han-sm-adapt", {"1", "1", ""}},
             {"han-sm-adapt-4096", {"1", "1", "4096"}}};

enum { NAMES = sizeof names / sizeof names[0] };

static const char *value_of(const char *variable) {
  const char *value = getenv(variable);
  return value != NULL ? value : "";
}

static bool is_applicable(enum swp_operation operation, const char *name) {
  const struct swp_collective problem = {.operation = operation,
                                         .send_type = operation == SWP_BCAST ? MPI_DATATYPE_NULL : MPI_INT,
                                         .recv_type = MPI_INT,
                                         .recv_count = 1,
                                         .send_count = operation == SWP_BCAST ? 0 : 1,
                                         .op = MPI_SUM};
  char method[80] = "vendor:environment=";
  struct swp_plan *plan = NULL;
  strncat(method, name, sizeof method - strlen(method) - 1);
  int error = swp_collective_plan(MPI_COMM_WORLD, &problem, method, NULL, &plan);
  swp_plan_free(&plan);
  EXPECT(error == SWP_SUCCESS || error == SWP_ERR_NOT_APPLICABLE, "%s", swp_error_message());
  return error == SWP_SUCCESS;
}

static void a_name_sets_its_variables_and_no_others(int index) {
  test_case("%s", names[index].name);
  EXPECT_ERROR(swp_environment_set(SWP_BCAST, names[index].name), SWP_SUCCESS);
  EXPECT(strcmp(value_of("OMPI_MCA_coll_han_priority"), "99") == 0, "han does not come first");
  for (int i = 0; i < PARTS; i++)
    EXPECT(strcmp(value_of(variables[i]), names[index].values[i]) == 0, "%s is '%s', expected '%s'",
           variables[i], value_of(variables[i]), names[index].values[i]);
  for (int i = 0; i < NAMES; i++)
    EXPECT(is_applicable(SWP_BCAST, names[i].name) == (i == index), "%s is wrongly applicable, or not",
           names[i].name);
}

static void other_names_are_not_those_of_han(void) {
  static const char *const others[] = {"han-",        "han-adapt-sm", "han-sm-sm", "han-04096",
                                       "han-4096-sm", "han-x",        "hans"};
  for (int i = 0; i < (int)(sizeof others / sizeof others[0]); i++) {
    test_case("%s", others[i]);
    unsetenv("OMPI_MCA_coll_han_priority");
    EXPECT_ERROR(swp_environment_set(SWP_BCAST, others[i]), SWP_SUCCESS);
    EXPECT(getenv("OMPI_MCA_coll_han_priority") == NULL, "it is taken for han");
  }
}

static void operations_have_their_own(void) {
  test_case("allreduce");
  EXPECT_ERROR(swp_environment_set(SWP_BCAST, "han"), SWP_SUCCESS);
  EXPECT_ERROR(swp_environment_set(SWP_ALLREDUCE, "han-sm"), SWP_SUCCESS);
  EXPECT(is_applicable(SWP_BCAST, "han") && is_applicable(SWP_ALLREDUCE, "han-sm"), "they share a variable");
  test_case("gather");
  EXPECT(is_applicable(SWP_GATHER, "han") && !is_applicable(SWP_GATHER, "han-sm"), "it has none");
}

int main(int argc, char **argv) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  char empty[] = "", far[65];
  int length;
  test_begin(&argc, &argv, "swp_environment");
  memset(far, 'a', sizeof far - 1);
  far[sizeof far - 1] = '\0';
  test_case("names that no method has");
  EXPECT_ERROR(swp_environment_set(SWP_BCAST, NULL), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_environment_set(SWP_BCAST, empty), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_environment_set(SWP_BCAST, far), SWP_ERR_ARGUMENT);
  EXPECT_ERROR(swp_environment_set(SWP_EXCHANGE, "han"), SWP_ERR_ARGUMENT);
  MPI_Get_library_version(version, &length);
  if (strncmp(version, "Open MPI", strlen("Open MPI")) == 0) {
    for (int i = 0; i < NAMES; i++)
      a_name_sets_its_variables_and_no_others(i);
    other_names_are_not_those_of_han();
    operations_have_their_own();
  }
  return test_end();
}
