/*
 * yield.c: a workaround for MPICH 4 over UCX, which polls without a pause. With more ranks than cores a
 * waiting rank then holds the core that the rank it waits for needs, and every message costs a time slice.
 * This library interposes UCX's progress function and yields the core when there was nothing to do.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned progress_function(void *worker);

/* The one name that this library exports: the kernels are built with hidden names. */
__attribute__((visibility("default"))) unsigned ucp_worker_progress(void *worker);

/* The next definition: UCX's own, which is not visible if an interpreter has loaded MPI. */
static progress_function *find_progress(void) {
  progress_function *found = NULL;
  void *ucx;
  *(void **)&found = dlsym(RTLD_NEXT, "ucp_worker_progress");
  if (!found && (ucx = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD)) != NULL)
    *(void **)&found = dlsym(ucx, "ucp_worker_progress");
  if (!found) {
    fprintf(stderr, "libswp_yield: no UCX in this program; preload this library only for MPICH over UCX\n");
    abort();
  }
  return found;
}

unsigned ucp_worker_progress(void *worker) {
  static _Atomic(progress_function *) progress;
  progress_function *call = atomic_load_explicit(&progress, memory_order_relaxed);
  if (!call) {
    call = find_progress();
    atomic_store_explicit(&progress, call, memory_order_relaxed);
  }
  unsigned events = call(worker);
  if (events == 0)
    sched_yield();
  return events;
}
