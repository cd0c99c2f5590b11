/* Prints the bytes that this process can still take by the files below a directory. Needs no MPI. */
#include "memory_left.h"

#include <inttypes.h>
#include <stdio.h>

int main(int argc, char **argv) {
  if (argc != 2)
    return 1;
  swp_memory_root = argv[1];
  printf("%" PRId64 "\n", swp_memory_left());
  return 0;
}
