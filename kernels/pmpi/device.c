/* Memory of accelerators: told by the libraries that a process has loaded, as one buffer's kind is not known
   to other ranks. The drivers themselves do not count: MPI libraries load them for their own sake. */
#define _GNU_SOURCE
#include "device.h"

#include <link.h>
#include <string.h>

static const char *const runtimes[] = {"libcudart.so", "libamdhip64.so", "libsycl.so", "libomptarget.so"};

static int is_runtime(struct dl_phdr_info *library, size_t size, void *found) {
  (void)size;
  for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++)
    if (library->dlpi_name != NULL && strstr(library->dlpi_name, runtimes[i]) != NULL)
      *(int *)found = 1;
  return *(int *)found;
}

bool device_somewhere(MPI_Comm comm) {
  int here = 0, somewhere = 1;
  dl_iterate_phdr(is_runtime, &here);
  return PMPI_Allreduce(&here, &somewhere, 1, MPI_INT, MPI_MAX, comm) != MPI_SUCCESS || somewhere;
}
