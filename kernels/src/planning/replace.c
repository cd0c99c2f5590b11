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

/* The last part of a path, behind its directory. */
static const char *name_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

/* The start of paths beside a file: some locks hold on one host only, and a name has 255 bytes at most. */
static void stem_of(const char *path, char *stem, size_t length) {
  const char *name = name_of(path);
  char host[64] = "";
  gethostname(host, sizeof host - 1);
  snprintf(stem, length, "%.*s.%.100s.%s.", (int)(name - path), path, name, host);
}

static int open_directory(const char *path) {
  char directory[PATH_BYTES];
  snprintf(directory, sizeof directory, "%.*s.", (int)(name_of(path) - path), path);
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
  const int directory = open_directory(path);
  DIR *listed = directory >= 0 ? fdopendir(directory) : NULL;
  for (struct dirent *entry; listed != NULL && (entry = readdir(listed)) != NULL;) {
    if (!is_beside(entry->d_name, name_of(stem)))
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

/* Whether an open file has the name still. Its links do not tell: NFS renames what is deleted while open. */
static bool is_named(int file, const char *path) {
  struct stat found, named;
  return fstat(file, &found) == 0 && stat(path, &named) == 0 && found.st_dev == named.st_dev &&
         found.st_ino == named.st_ino;
}

/* Opens a new file, which no other process or thread has. -1, with errno. */
static int open_beside(const char *path, char beside[BESIDE_BYTES]) {
  enum { TRIES = 1000 };
  static atomic_int number;
  char stem[PATH_BYTES];
  stem_of(path, stem, sizeof stem);
  for (int i = 0; i < TRIES; i++) {
    snprintf(beside, BESIDE_BYTES, "%s%ld.%d%s", stem, (long)getpid(), atomic_fetch_add(&number, 1), PARTIAL);
    const int file = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && errno != EEXIST)
      return -1;
    if (file < 0)
      continue;
    while (flock(file, LOCK_EX) != 0 && errno == EINTR) /* may fail otherwise: file systems without locks */
      continue;
    if (is_named(file, beside))
      return file;
    close(file); /* before it was locked, it was taken for one that was left */
  }
  errno = EEXIST;
  return -1;
}

static bool write_all(int file, const char *text) {
  for (size_t length = strlen(text); length > 0;) {
    const ssize_t written = write(file, text, length);
    if (written < 0 && errno == EINTR)
      continue;
    if (written == 0)
      errno = EIO;
    if (written <= 0)
      return false;
    text += written;
    length -= (size_t)written;
  }
  return true;
}

/* Waits until an open file would outlast a failure of the machine, where the file system knows how. */
static bool sync_open(int file) {
  return fsync(file) == 0 || errno == EINVAL || errno == ENOTSUP;
}

/* Does so for the names in a directory, where it can be opened. */
static bool sync_directory(const char *path) {
  const int directory = open_directory(path);
  const bool good = directory < 0 || sync_open(directory);
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
                    sync_open(file) && rename(beside, path) == 0;
  const int error = errno;
  if (!good)
    unlink(beside);
  close(file);
  errno = error;
  return good && sync_directory(path) ? 0 : -1;
}
