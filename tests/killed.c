/* Preloaded: ends the process at the n-th change of a file whose path begins with a prefix. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *prefix;
static long left;
static bool torn;

/* torn: half of the last write arrives. */
void kill_at(const char *path, long nth, bool half) {
  prefix = strdup(path);
  left = nth;
  torn = half;
}

static bool is_last(const char *path) {
  return prefix != NULL && strncmp(path, prefix, strlen(prefix)) == 0 && --left == 0;
}

static bool is_last_of(int fd) {
  char link[64];
  char path[PATH_MAX] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  return readlink(link, path, sizeof path - 1) > 0 && is_last(path);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
  bool last = is_last_of(fd);
  long written = 0;
  if (!last || torn)
    written = syscall(SYS_pwrite64, fd, bytes, last ? count / 2 : count, offset);
  if (last)
    _exit(9);
  return written;
}

int ftruncate64(int fd, off64_t length) {
  if (is_last_of(fd))
    _exit(9);
  return (int)syscall(SYS_ftruncate, fd, length);
}

int fdatasync(int fd) {
  if (is_last_of(fd))
    _exit(9);
  return 0; /* only a crash of the machine asks for more */
}

int unlink(const char *path) {
  if (is_last(path))
    _exit(9);
  return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
