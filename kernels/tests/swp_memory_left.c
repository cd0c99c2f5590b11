/* Prints the bytes that this process can still take by the files below a directory, if it can open so many
   more. Needs no MPI. */
#include "memory_left.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

int main(int argc, char **argv) {
  if (argc != 3)
    return 1;
  const rlim_t most = (rlim_t)open("/dev/null", O_RDONLY) + 1 + strtoul(argv[2], NULL, 10);
  setrlimit(RLIMIT_NOFILE, &(struct rlimit){most, most});
  swp_memory_root = argv[1];
  printf("%" PRId64 "\n", swp_memory_left());
  return 0;
}
