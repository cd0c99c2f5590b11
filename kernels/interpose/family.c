#define _GNU_SOURCE
#include "family.h"

#include <dlfcn.h>
#include <link.h>
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

/* The names in the versions of the MPIs for which this is built, and the beginnings of other MPIs' files. A
   library with the standard ABI may call any MPI. */
#ifdef MPI_ABI_VERSION
static const bool standard = true;
static const char *const built[] = {"the standard ABI of MPI 5"}, *const others[] = {NULL};
#elif defined OPEN_MPI
static const bool standard = false;
static const char *const built[] = {"Open MPI"};
static const char *const others[] = {"libmpi.so.12", "libmpich.so.12", "libmpi_abi.so", NULL};
#else
static const bool standard = false;
static const char *const built[] = {"MPICH", "Intel", "CRAY", "MVAPICH"}; /* of one binary interface */
static const char *const others[] = {"libmpi.so.40", "libmpi_abi.so", NULL};
#endif

static int find_other(struct dl_phdr_info *its, size_t size, void *found) {
  (void)size;
  const char *slash = strrchr(its->dlpi_name, '/');
  const char *name = slash != NULL ? slash + 1 : its->dlpi_name;
  for (size_t i = 0; others[i] != NULL; i++)
    if (strncmp(name, others[i], strlen(others[i])) == 0)
      *(const char **)found = its->dlpi_name;
  return 0;
}

void family_check(const char *preload) {
  char text[LIBRARY_BYTES] = "";
  int length;
  PMPI_Get_library_version(text, &length);
  bool same = standard;
  for (size_t i = 0; i < sizeof built / sizeof *built; i++)
    same |= strstr(text, built[i]) != NULL;
  const char *other = NULL; /* an interpreter loads its MPI after ours, which answers in its place */
  dl_iterate_phdr(find_other, &other);
  if (same && standard == is_standard() && other == NULL)
    return;
  text[strcspn(text, ",\n")] = '\0';
  fprintf(stderr, "switchpoint: %s is built for %s, but the program runs under %s%s\n", preload, built[0],
          same && other != NULL ? other : text, is_standard() ? " by the standard ABI of MPI 5" : "");
  _exit(EXIT_FAILURE);
}
