/* MPI ends communicators that a plug-in has planned on, after it was closed. Usage: swp_unloaded FILE */
#include "testing.h"

#include <dlfcn.h>
#include <stdlib.h>

static void plan_and_close(const char *file, MPI_Comm comm) {
  int (*plan)(MPI_Comm comm) = NULL;
  void *plug_in = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (plug_in != NULL)
    *(void **)&plan = dlsym(plug_in, "plug_in_plan");
  EXPECT(plan != NULL, "%s", dlerror());
  if (plan == NULL)
    return;
  EXPECT_EQUAL(plan(comm), SWP_SUCCESS);
  EXPECT_EQUAL(plan(MPI_COMM_WORLD), SWP_SUCCESS);
  EXPECT_EQUAL(dlclose(plug_in), 0);
}

int main(int argc, char **argv) {
  MPI_Comm comm;
  test_begin(&argc, &argv, "swp_unloaded");
  if (argc != 2)
    return EXIT_FAILURE;
  test_case("a plug-in that is closed");
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  plan_and_close(argv[1], comm);
  MPI_Comm_free(&comm);
  return test_end();
}
