/*
 * Memory of accelerators: detected by what a process has loaded, as other ranks do not know a buffer's kind.
 * Run-time systems are libraries, or linked into the program, which then contains code for devices. Drivers
 * do not count, nor does such code in the components of MPI libraries, which have it for their own use.
 */
#define _GNU_SOURCE
#include "device.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const runtimes[] = {"libcudart.so",    "libamdhip64.so",          "libsycl.so",
                                       "libomptarget.so", "libgomp-plugin-nvptx.so", "libgomp-plugin-gcn.so"};

/* The run-time systems of CUDA, HIP, and OpenMP offload by LLVM before 20, since then, and by GCC, which
   gives other programs empty ones. */
static const char *const sections[] = {".nv_fatbin",           ".hip_fatbin",        "omp_offloading_entries",
                                       "llvm_offload_entries", ".gnu.offload_funcs", ".gnu.offload_vars"};

static const char *const parts_of_mpi[] = {"/libmpi",    "/libuc",    "/libyaksa",
                                           "/libfabric", "/libopen-", "/mca_"};

static bool has_any(const char *name, const char *const *words, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (strstr(name, words[i]) != NULL)
      return true;
  return false;
}

#define HAS_ANY(name, words) has_any(name, words, sizeof(words) / sizeof *(words))

/* Returns whether a file in memory, of this process's own class, has a section for devices. None of its
   contents is trusted. */
static bool has_section(const char *file, size_t bytes) {
  const ElfW(Ehdr) *head = (const void *)file;
  if (bytes < sizeof *head || head->e_shentsize != sizeof(ElfW(Shdr)) || head->e_shoff > bytes ||
      head->e_shnum > (bytes - head->e_shoff) / sizeof(ElfW(Shdr)) || head->e_shstrndx >= head->e_shnum)
    return false;
  const ElfW(Shdr) *list = (const void *)(file + head->e_shoff), *names = &list[head->e_shstrndx];
  if (names->sh_offset > bytes || names->sh_size > bytes - names->sh_offset || names->sh_size == 0 ||
      file[names->sh_offset + names->sh_size - 1] != '\0')
    return false;
  for (int i = 0; i < head->e_shnum; i++)
    if (list[i].sh_size > 0 && list[i].sh_name < names->sh_size &&
        HAS_ANY(file + names->sh_offset + list[i].sh_name, sections))
      return true;
  return false;
}

static bool has_device_code(const char *path) {
  struct stat status;
  bool found = false;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file >= 0 && fstat(file, &status) == 0 && status.st_size > 0) {
    size_t bytes = (size_t)status.st_size;
    void *memory = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    if (memory != MAP_FAILED) {
      found = has_section(memory, bytes);
      munmap(memory, bytes);
    }
  }
  if (file >= 0)
    close(file);
  return found;
}

/* `loads` counts what the process has ever loaded: without a change there is nothing new to be found. */
struct search {
  unsigned long long loads_before, loads;
  bool found;
};

static int look_at(struct dl_phdr_info *library, size_t size, void *argument) {
  struct search *search = argument;
  const char *name = library->dlpi_name != NULL ? library->dlpi_name : "";
  (void)size;
  search->loads = library->dlpi_adds;
  if (search->loads == search->loads_before)
    return 1;
  search->found = HAS_ANY(name, runtimes) || (!HAS_ANY(name, parts_of_mpi) &&
                                              has_device_code(name[0] != '\0' ? name : "/proc/self/exe"));
  return search->found;
}

static bool device_here(void) {
  static _Thread_local struct search last;
  struct search search = {.loads_before = last.loads};
  dl_iterate_phdr(look_at, &search);
  if (search.loads != last.loads)
    last = search;
  return last.found;
}

bool device_somewhere(MPI_Comm comm) {
  int here = device_here(), somewhere = 1;
  return PMPI_Allreduce(&here, &somewhere, 1, MPI_INT, MPI_MAX, comm) != MPI_SUCCESS || somewhere;
}
