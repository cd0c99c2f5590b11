#include "lines.h"

#include "error.h"
#include "team.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BLOCK_BYTES = 1 << 17, LINE_BYTES = 1 << 16 };

#ifdef PRODUCTS_ZLIB
#include <zlib.h>

static void *file_open(const char *path) {
  gzFile file = gzopen(path, "rb"); /* a file that is not compressed is read as it is */
  if (file)
    gzbuffer(file, BLOCK_BYTES);
  return file;
}

/* Returns whether zlib ended at the end of the file, not before bytes that follow the last member. */
static bool has_no_more(const struct lines *lines) {
  struct stat status;
  return stat(lines->path, &status) == 0 && status.st_size == gzoffset(lines->file);
}

/* Bytes read, 0 at the end, -1. */
static long file_read(struct lines *lines) {
  errno = 0;
  int count = gzread(lines->file, lines->block, BLOCK_BYTES);
  if (count == 0 && has_no_more(lines)) {
    /* A member may be cut: if its content filled zlib's buffer, zlib notices only when it is asked again. */
    gzclearerr(lines->file);
    count = gzread(lines->file, lines->block, BLOCK_BYTES);
  }
  int error = Z_OK;
  const char *text = gzerror(lines->file, &error);
  if (count >= 0 && (error == Z_OK || error == Z_STREAM_END))
    return count;
  if (count > 0 && error == Z_BUF_ERROR) /* truncated; the next call reports it again */
    return count;
  if (error == Z_ERRNO)
    return failure_set("cannot read %s: %s", lines->path, strerror(errno));
  return failure_set("cannot read %s", text); /* zlib's text begins with the path */
}

static void file_close(void *file) {
  gzclose(file);
}
#else
static void *file_open(const char *path) {
  return fopen(path, "rb");
}

static long file_read(struct lines *lines) {
  static const char GZIP[] = "\x1f\x8b";
  errno = 0;
  const size_t count = fread(lines->block, 1, BLOCK_BYTES, lines->file);
  if (ferror((FILE *)lines->file))
    return failure_set("cannot read %s: %s", lines->path, strerror(errno));
  if (lines->number == 0 && count > 1 && memcmp(lines->block, GZIP, 2) == 0)
    return failure_set("%s is compressed by gzip, and swpbench was built without zlib: decompress it first",
                       lines->path);
  return (long)count;
}

static void file_close(void *file) {
  fclose(file);
}
#endif

/* Opening a FIFO waits for a writer. A directory is refused when it is read. */
static bool is_special(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

int lines_open(const char *path, struct lines *lines) {
  *lines = (struct lines){.path = path};
  if (is_special(path))
    return failure_set("cannot open %s: not a regular file; choose another", path);
  errno = 0;
  lines->file = file_open(path);
  if (!lines->file)
    return failure_set("cannot open %s: %s", path, strerror(errno ? errno : ENOMEM));
  lines->block = allocate(BLOCK_BYTES);
  return 0;
}

static void append(struct lines *lines, const char *text, size_t length) {
  if (lines->length + length >= lines->room) {
    lines->room = 2 * (lines->length + length) + 128;
    lines->line = reallocate(lines->line, lines->room);
  }
  memcpy(lines->line + lines->length, text, length);
  lines->length += length;
  lines->line[lines->length] = '\0';
}

int lines_next(struct lines *lines) {
  const char *end = NULL;
  lines->length = 0;
  for (bool begun = false; !end; begun = true) {
    if (lines->used == lines->filled) {
      const long count = file_read(lines);
      if (count < 0 || (count == 0 && !begun))
        return count < 0 ? -1 : 0;
      lines->used = 0;
      lines->filled = (size_t)count;
      if (count == 0)
        break; /* the last line lacks its end */
    }
    const char *from = lines->block + lines->used;
    const size_t there = lines->filled - lines->used;
    end = memchr(from, '\n', there);
    const size_t length = end ? (size_t)(end - from) : there;
    append(lines, from, length);
    lines->used += length + (end != NULL);
    if (strlen(lines->line) != lines->length || lines->length > LINE_BYTES) /* may have no end at all */
      break;
  }
  lines->number++;
  if (strlen(lines->line) != lines->length)
    return lines_refuse(lines, "a NUL byte: this is not a text file");
  if (lines->length > LINE_BYTES)
    return lines_refuse(lines, "a line of over 65536 characters: the file has another format");
  while (lines->length > 0 && lines->line[lines->length - 1] == '\r')
    lines->line[--lines->length] = '\0';
  return 1;
}

int lines_refuse(const struct lines *lines, const char *what) {
  return failure_set("%s:%lld: %s", lines->path, (long long)lines->number, what);
}

void lines_close(struct lines *lines) {
  if (lines->file)
    file_close(lines->file);
  free(lines->block);
  free(lines->line);
  *lines = (struct lines){0};
}
