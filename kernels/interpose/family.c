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

typedef int version_function(char *version, int *length);

/* Returns the function of the MPI with which the caller was linked: calls of a library that an interpreter
   loads bind to the MPI that the preload brought, which is loaded before. */
static version_function *version_of(const void *caller) {
  version_function *version = PMPI_Get_library_version;
  Dl_info its;
  void *linked = dladdr(caller, &its) != 0 ? dlopen(its.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
  if (linked == NULL)
    return version;
  void *found = dlsym(linked, "PMPI_Get_library_version");
  if (found != NULL)
    *(void **)&version = found;
  dlclose(linked);
  return version;
}

/* Returns whether a function is of a library with the standard ABI of MPI 5, which has this name
   everywhere. */
static bool is_standard(version_function *function) {
  Dl_info found;
  return dladdr(*(void *const *)&function, &found) != 0 && strstr(found.dli_fname, "libmpi_abi") != NULL;
}

void family_check(const char *preload, const void *caller) {
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
  version_function *const version = version_of(caller);
  char text[LIBRARY_BYTES] = "";
  int length;
  version(text, &length);
  bool same = standard;
  for (size_t i = 0; i < sizeof built / sizeof *built; i++)
    same |= strstr(text, built[i]) != NULL;
  if (same && standard == is_standard(version))
    return;
  text[strcspn(text, ",\n")] = '\0';
  fprintf(stderr, "switchpoint: %s is built for %s, but the program runs under %s%s\n", preload, built[0],
          text, is_standard(version) ? " by the standard ABI of MPI 5" : "");
  _exit(EXIT_FAILURE);
}

void family_check_fortran(const char *preload, const void *caller) {
#ifdef OPEN_MPI
  const void *theirs = dlsym(RTLD_NEXT, "mpi_init_");
#else
  const void *theirs = dlsym(RTLD_NEXT, "mpi_init_f08_");
#endif
  family_check(preload, theirs != NULL ? theirs : caller);
}
