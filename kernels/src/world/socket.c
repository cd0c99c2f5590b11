/* The socket of this process. */
#include "socket.h"

#ifdef SWP_HWLOC

#include <hwloc.h>
#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int sockets = SOCKET_UNKNOWN, own_socket = SOCKET_UNKNOWN;

/* The socket that holds all cores of the set. */
static int covering_socket(hwloc_topology_t machine, hwloc_const_cpuset_t cores) {
  hwloc_obj_t object = hwloc_get_obj_covering_cpuset(machine, cores);
  while (object != NULL && object->type != HWLOC_OBJ_PACKAGE)
    object = object->parent;
  return object != NULL ? (int)object->logical_index : SOCKET_UNKNOWN;
}

static void read_machine(hwloc_topology_t machine) {
  /* Reading caches and cores too would take several times as long. */
  if (hwloc_topology_set_all_types_filter(machine, HWLOC_TYPE_FILTER_KEEP_NONE) != 0 ||
      hwloc_topology_set_type_filter(machine, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
      hwloc_topology_load(machine) != 0)
    return;
  int count = hwloc_get_nbobjs_by_type(machine, HWLOC_OBJ_PACKAGE);
  hwloc_cpuset_t cores = hwloc_bitmap_alloc();
  if (count > 0 && cores != NULL) {
    sockets = count;
    if (hwloc_get_cpubind(machine, cores, HWLOC_CPUBIND_PROCESS) == 0)
      own_socket = covering_socket(machine, cores);
  }
  hwloc_bitmap_free(cores);
}

static void find(void) {
  hwloc_topology_t machine;
  if (hwloc_topology_init(&machine) != 0)
    return;
  read_machine(machine);
  hwloc_topology_destroy(machine);
}

void swp_socket_find(int *count, int *own) {
  pthread_once(&once, find);
  *count = sockets;
  *own = own_socket;
}

#else

void swp_socket_find(int *count, int *own) {
  *count = *own = SOCKET_UNKNOWN;
}

#endif
