#define _GNU_SOURCE
#include "family.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIBRARY_BYTES = 8192 };

/* Returns whether the program's MPI is a library with the standard ABI of MPI 5, which has this name
   everywhere. */
static bool is_standard(void) {
  int (*const init)(int *, char ***) = PMPI_Init;
  Dl_info found;
  return dladdr(*(void *const *)&init, &found) != 0 && strstr(found.dli_fname, "libmpi_abi") != NULL;
}

void family_check(const char *preload) {
#ifdef MPI_ABI_VERSION
  const bool standard = true;
  static const char *const built[] = {"the standard ABI of MPI 5"};
#elif defined OPEN_MPI
  const bool standard = false;
  static const char *const built[] = {"Open MPI"};
#else
  const bool standard = false;
  static const char *const built[] = {"MPICH", "Intel", "CRAY", "MVAPICH"}; /* of one binary interface */
#endif
  char text[LIBRARY_BYTES] = "";
  int length;
  PMPI_Get_library_version(text, &length);
  bool same = standard;
  for (size_t i = 0; i < sizeof built / sizeof *built; i++)
    same |= strstr(text, built[i]) != NULL;
  if (same && standard == is_standard())
    return;
  text[strcspn(text, "\n")] = '\0';
  fprintf(stderr, "switchpoint: %s is built for %s, but the program runs under %.40s%s\n", preload, built[0],
          text, is_standard() ? " by the standard ABI of MPI 5" : "");
  _exit(EXIT_FAILURE);
}
