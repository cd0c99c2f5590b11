/* Preloaded: the n-th change of a file below a prefix ends the process, or fails with an error; or the n-th
   allocation fails; or all changes are recorded. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { OPEN = 1, WRITE = 2, CHANGE = 4 };

/* glibc's own. */
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

static const char *prefix;
static long left, allocations_left;
static bool torn, fired;
static int number, kinds, record = -1;

/* error 0: the process is killed; torn: half of its last write arrives. */
void fault_at(const char *path, long nth, int error, bool half) {
  prefix = strdup(path);
  left = nth;
  number = error;
  torn = half;
  kinds = error == EMFILE   ? OPEN
          : error == ENOSPC ? WRITE
          : error == ENOMEM ? OPEN | WRITE | CHANGE
                            : WRITE | CHANGE;
}

/* No more than one allocation fails: the error has to be printed. */
void allocation_fault_at(long nth) {
  allocations_left = nth;
}

/* Append each change to a file from now on. */
void record_changes(const char *path, int file) {
  prefix = strdup(path);
  record = file;
}

/* Returns whether a call has failed. */
int fault_fired(void) {
  return fired;
}

/* A full disk stays full. */
static bool is_due(const char *path, enum kind kind) {
  if (prefix == NULL || (kinds & kind) == 0 || strncmp(path, prefix, strlen(prefix)) != 0)
    return false;
  left--;
  return left == 0 || (left < 0 && number == ENOSPC);
}

/* Find the path of an open file; "" without a prefix, or for what has no path. */
static const char *path_of(int fd, char path[PATH_MAX]) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = prefix != NULL ? readlink(link, path, PATH_MAX - 1) : 0;
  path[length > 0 ? length : 0] = '\0';
  return path;
}

static bool is_due_of(int fd, enum kind kind) {
  return is_due(path_of(fd, (char[PATH_MAX]){""}), kind);
}

/* Record a change as "KIND OFFSET COUNT", the path and a second one, each with its zero, and the bytes. */
static void note(const char *kind, const char *path, const char *second, off64_t offset, const void *bytes,
                 size_t count) {
  if (record < 0 || strncmp(path, prefix, strlen(prefix)) != 0)
    return;
  char head[2 * PATH_MAX + 64];
  const int length = snprintf(head, sizeof head, "%s %lld %zu%c%s%c%s%c", kind, (long long)offset, count, 0,
                              path, 0, second, 0);
  const struct iovec parts[] = {{head, (size_t)length}, {(void *)bytes, count}};
  if (writev(record, parts, 2) != length + (ssize_t)count)
    abort();
}

static void note_of(const char *kind, int fd, off64_t offset, const void *bytes, size_t count) {
  if (record >= 0)
    note(kind, path_of(fd, (char[PATH_MAX]){""}), "", offset, bytes, count);
}

static int fail(void) {
  if (number == 0)
    _exit(9);
  errno = number;
  fired = true;
  return -1;
}

/* The rest of a call that is due: half of the bytes are written first, if it is torn. */
#define WRITTEN(due, call)                                                                                   \
  do {                                                                                                       \
    long done = 0;                                                                                           \
    const size_t whole = count;                                                                              \
    count = due && torn ? whole / 2 : whole;                                                                 \
    if (!due || torn)                                                                                        \
      done = call;                                                                                           \
    return due ? fail() : done;                                                                              \
  } while (0)

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
  note_of("write", fd, offset, bytes, count);
  const bool due = is_due_of(fd, WRITE);
  WRITTEN(due, syscall(SYS_pwrite64, fd, bytes, count, offset));
}

ssize_t write(int fd, const void *bytes, size_t count) {
  note_of("write", fd, record >= 0 ? lseek64(fd, 0, SEEK_CUR) : 0, bytes, count);
  const bool due = is_due_of(fd, WRITE);
  WRITTEN(due, syscall(SYS_write, fd, bytes, count));
}

ssize_t sendfile64(int to, int from, off64_t *offset, size_t count) {
  if (record >= 0) {
    errno = ENOTSOCK; /* then Python copies by read and write */
    return -1;
  }
  const bool due = is_due_of(to, WRITE);
  WRITTEN(due, syscall(SYS_sendfile, to, from, offset, count));
}

int open64(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  const bool makes = (flags & O_CREAT) && access(path, F_OK) != 0;
  if (is_due(path, OPEN) || (makes && kinds == WRITE && is_due(path, WRITE)))
    return fail();
  if (makes || (flags & O_TRUNC))
    note(makes ? "make" : "cut", path, "", 0, NULL, 0);
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int mkdir(const char *path, mode_t mode) {
  return is_due(path, kinds == WRITE ? WRITE : CHANGE) ? fail()
                                                       : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int ftruncate64(int fd, off64_t length) {
  note_of("cut", fd, length, NULL, 0);
  return is_due_of(fd, CHANGE) ? fail() : (int)syscall(SYS_ftruncate, fd, length);
}

int rename(const char *from, const char *to) {
  note("move", from, to, 0, NULL, 0);
  return is_due(from, CHANGE) ? fail() : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlink(const char *path) {
  note("delete", path, "", 0, NULL, 0);
  return is_due(path, CHANGE) ? fail() : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int fsync(int fd) {
  note_of("sync", fd, 0, NULL, 0);
  return is_due_of(fd, CHANGE) ? fail() : 0; /* only a crash of the machine asks for more */
}

int fdatasync(int fd) {
  return fsync(fd);
}

static bool has_no_memory(void) {
  if (allocations_left == 0 || --allocations_left > 0)
    return false;
  errno = ENOMEM;
  return fired = true;
}

void *malloc(size_t bytes) {
  return has_no_memory() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
  return has_no_memory() ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes) {
  return has_no_memory() ? NULL : __libc_realloc(old, bytes);
}
