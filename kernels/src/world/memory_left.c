#include "memory_left.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 5000, UNKNOWN = -1 };

static const int64_t UNLIMITED = INT64_MAX / 2; /* version 1 of groups has a number for it, which is larger */

const char *swp_memory_root = "";

/* How a version of control groups describes one. Beyond `slow` the kernel makes processes wait rather than
   end. Statistics are of a group and those in it. */
struct version {
  const char *mount, *limit, *slow, *usage, *inactive_file, *active_file;
};

static const struct version version_1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                         "memory.limit_in_bytes", "memory.usage_in_bytes",
                                         "total_inactive_file ",  "total_active_file "};
static const struct version version_2 = {"/sys/fs/cgroup", "memory.max",     "memory.high",
                                         "memory.current", "inactive_file ", "active_file "};

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static FILE *open_file(const char *directory, const char *name) {
  char path[2 * PATH_BYTES];
  snprintf(path, sizeof path, "%s%s/%s", swp_memory_root, directory, name);
  return fopen(path, "re");
}

/* What a file says that could not be opened: where the process has no descriptor or memory for it, it may be
   there, and say anything. */
static int64_t unopened(int64_t otherwise) {
  return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? UNKNOWN : otherwise;
}

/* The number behind the words that begin a line; without it, as where there is "max", `otherwise`. */
static int64_t read_number(const char *directory, const char *name, const char *words, int64_t otherwise) {
  char line[256];
  int64_t number = otherwise;
  FILE *file = open_file(directory, name);
  if (file == NULL)
    return unopened(otherwise);
  while (fgets(line, sizeof line, file) != NULL) {
    const char *text = line + strlen(words);
    char *end;
    if (strncmp(line, words, strlen(words)) != 0)
      continue;
    const long long read = strtoll(text, &end, 10);
    if (end != text)
      number = read;
    break;
  }
  fclose(file);
  return number;
}

/* Files that the kernel keeps in memory count as used, but it drops them where memory is needed. */
static int64_t left_in_group(const struct version *version, const char *group) {
  char directory[PATH_BYTES + 32];
  snprintf(directory, sizeof directory, "%s%s", version->mount, group);
  const int64_t limit = least(read_number(directory, version->limit, "", UNLIMITED),
                              read_number(directory, version->slow, "", UNLIMITED));
  if (limit == UNKNOWN || limit >= UNLIMITED)
    return limit;
  const int64_t usage = read_number(directory, version->usage, "", 0);
  if (usage == UNKNOWN)
    return UNKNOWN;
  const int64_t used = usage - read_number(directory, "memory.stat", version->inactive_file, 0) -
                       read_number(directory, "memory.stat", version->active_file, 0);
  return limit > used ? limit - used : 0;
}

/* The least that is left in a group and those that it is in, of which a container may see only some. */
static int64_t left_along(const struct version *version, char *group) {
  int64_t left = left_in_group(version, group);
  for (char *slash; (slash = strrchr(group, '/')) != NULL;) {
    *slash = '\0';
    left = least(left, left_in_group(version, group));
  }
  return left;
}

/* A line has the number of a hierarchy, its controllers, none for version 2, and the group. */
static int64_t left_by_line(char *line) {
  char *controllers = strchr(line, ':');
  char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
  if (group == NULL)
    return UNLIMITED;
  *group++ = '\0';
  group[strcspn(group, "\n")] = '\0';
  if (controllers[1] == '\0')
    return left_along(&version_2, group);
  return strstr(controllers, "memory") != NULL ? left_along(&version_1, group) : UNLIMITED;
}

int64_t swp_memory_left(void) {
  enum { KIB = 1024 };
  const int64_t available = read_number("/proc", "meminfo", "MemAvailable:", UNLIMITED / KIB);
  int64_t left = available == UNKNOWN ? UNKNOWN : KIB * available;
  char line[PATH_BYTES];
  FILE *groups = open_file("/proc/self", "cgroup");
  if (groups == NULL)
    return least(left, unopened(left));
  while (fgets(line, sizeof line, groups) != NULL)
    left = least(left, left_by_line(line));
  fclose(groups);
  return left;
}
