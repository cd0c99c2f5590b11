/* A file is written beside the one that it replaces. Who writes it holds a lock, by which others tell it from
   one that was left: a process id has a meaning in one container only. */
#define _GNU_SOURCE /* flock, gethostname, O_DIRECTORY */
#include "replace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 + 128, BESIDE_BYTES = PATH_BYTES + 64, LEFT_S = 86400 };

static const char PARTIAL[] = ".partial";

/* The start of the names beside a file; some locks hold on one host only. */
static void stem_of(const char *path, char *stem, size_t length) {
  char host[64] = "";
  gethostname(host, sizeof host - 1);
  snprintf(stem, length, "%s.%s.", path, host);
}

static int open_directory(const char *path) {
  char directory[PATH_BYTES] = ".";
  const char *slash = strrchr(path, '/');
  if (slash != NULL)
    snprintf(directory, sizeof directory, "%.*s", (int)(slash - path) + 1, path);
  return open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Whether nobody writes an open file: where files cannot be locked, if it is a day old. */
static bool is_left(int file) {
  struct stat found;
  if (flock(file, LOCK_EX | LOCK_NB) == 0)
    return true;
  return errno != EWOULDBLOCK && fstat(file, &found) == 0 && time(NULL) - found.st_mtime > LEFT_S;
}

static bool is_beside(const char *name, const char *stem) {
  const size_t length = strlen(name), end = sizeof PARTIAL - 1;
  return length > end && strcmp(name + length - end, PARTIAL) == 0 && strncmp(name, stem, strlen(stem)) == 0;
}

static void delete_left(const char *path) {
  char stem[PATH_BYTES];
  stem_of(path, stem, sizeof stem);
  const char *slash = strrchr(stem, '/'), *first = slash != NULL ? slash + 1 : stem;
  const int directory = open_directory(path);
  DIR *listed = directory >= 0 ? fdopendir(directory) : NULL;
  for (struct dirent *entry; listed != NULL && (entry = readdir(listed)) != NULL;) {
    if (!is_beside(entry->d_name, first))
      continue;
    const int file = openat(directory, entry->d_name, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (file >= 0 && is_left(file))
      unlinkat(directory, entry->d_name, 0);
    if (file >= 0)
      close(file);
  }
  if (listed != NULL)
    closedir(listed);
  else if (directory >= 0)
    close(directory);
}

/* Opens a new file, which no other process or thread has. -1, with errno. */
static int open_beside(const char *path, char beside[BESIDE_BYTES]) {
  enum { TRIES = 1000 };
  static atomic_int number;
  char stem[PATH_BYTES];
  stem_of(path, stem, sizeof stem);
  for (int i = 0; i < TRIES; i++) {
    struct stat found = {0};
    snprintf(beside, BESIDE_BYTES, "%s%ld.%d%s", stem, (long)getpid(), atomic_fetch_add(&number, 1), PARTIAL);
    const int file = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && errno != EEXIST)
      return -1;
    if (file < 0)
      continue;
    flock(file, LOCK_EX); /* may fail: file systems without locks */
    if (fstat(file, &found) == 0 && found.st_nlink > 0)
      return file;
    close(file); /* before it was locked, it was taken for one that was left */
  }
  errno = EEXIST;
  return -1;
}

static bool write_all(int file, const char *text) {
  for (size_t length = strlen(text); length > 0;) {
    const ssize_t written = write(file, text, length);
    if (written < 0 && errno != EINTR)
      return false;
    text += written > 0 ? written : 0;
    length -= written > 0 ? (size_t)written : 0;
  }
  return true;
}

/* Waits until the names in a directory would outlast a failure of the machine, where it can be opened and the
   file system knows how. */
static bool sync_directory(const char *path) {
  const int directory = open_directory(path);
  const bool good = directory < 0 || fsync(directory) == 0 || errno == EINVAL || errno == ENOTSUP;
  const int error = errno;
  if (directory >= 0)
    close(directory);
  errno = error;
  return good;
}

int swp_replace_possible(const char *path) {
  char beside[BESIDE_BYTES];
  if (access(path, F_OK) == 0 && access(path, W_OK) != 0)
    return -1;
  const int file = open_beside(path, beside);
  if (file < 0)
    return -1;
  unlink(beside);
  close(file);
  return 0;
}

int swp_replace(const char *path, const char *text) {
  char beside[BESIDE_BYTES];
  struct stat before;
  delete_left(path);
  const int file = open_beside(path, beside);
  if (file < 0)
    return -1;
  const bool good = write_all(file, text) &&
                    (stat(path, &before) != 0 || fchmod(file, before.st_mode & 07777) == 0) &&
                    fsync(file) == 0 && rename(beside, path) == 0;
  const int error = errno;
  if (!good)
    unlink(beside);
  close(file);
  errno = error;
  return good && sync_directory(path) ? 0 : -1;
}
