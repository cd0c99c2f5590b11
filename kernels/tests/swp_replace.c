/* Files that are replaced whole: what is on the disk, and what is left beside them. */
#include "replace.h"
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 256 };

int __real_fsync(int file);
int __wrap_fsync(int file);

static char path[] = "/tmp/switchpoint-replace-XXXXXX"; /* a directory; the table is in it */
static char table[sizeof path + 8];
static int files_synced, directories_synced;

int __wrap_fsync(int file) {
  struct stat found = {0};
  fstat(file, &found);
  files_synced += S_ISREG(found.st_mode);
  directories_synced += S_ISDIR(found.st_mode);
  return __real_fsync(file);
}

static void expect_text(const char *expected) {
  char text[64] = "";
  FILE *file = fopen(table, "rb");
  EXPECT(file != NULL && fread(text, 1, sizeof text - 1, file) == strlen(expected) && fclose(file) == 0 &&
             strcmp(text, expected) == 0,
         "'%s' in %s, expected '%s'", text, table, expected);
}

static void text_and_name_are_on_the_disk(void) {
  test_case("disk");
  EXPECT_EQUAL(swp_replace(table, "one"), 0);
  EXPECT_EQUAL(chmod(table, 0640), 0);
  EXPECT_EQUAL(swp_replace(table, "second"), 0);
  expect_text("second");
  struct stat found = {0};
  EXPECT_EQUAL(stat(table, &found), 0);
  EXPECT_EQUAL(found.st_mode & 07777, 0640);
  EXPECT_EQUAL(files_synced, 2);
  EXPECT_EQUAL(directories_synced, 2);
}

static void a_place_without_a_directory_is_refused(void) {
  test_case("no directory");
  EXPECT_EQUAL(swp_replace_possible(table), 0);
  EXPECT_EQUAL(swp_replace_possible("/no/such/place/table"), -1);
  EXPECT_EQUAL(errno, ENOENT);
  EXPECT_EQUAL(swp_replace("/no/such/place/table", ""), -1);
  EXPECT_EQUAL(errno, ENOENT);
}

/* Makes an empty file of the name of one that is written; returns its descriptor. */
static int make_beside(const char *number, char beside[PATH_BYTES]) {
  char host[64] = "";
  gethostname(host, sizeof host - 1);
  snprintf(beside, PATH_BYTES, "%s.%s.%s.partial", table, host, number);
  return open(beside, O_WRONLY | O_CREAT | O_EXCL, 0666);
}

static void what_killed_processes_left_is_deleted(void) {
  test_case("files beside");
  char left[PATH_BYTES], written[PATH_BYTES], other[sizeof table + 8];
  const int closed = make_beside("1.0", left), locked = make_beside("1.1", written);
  EXPECT(close(closed) == 0 && flock(locked, LOCK_EX) == 0, "no files beside %s", table);
  snprintf(other, sizeof other, "%s.partial", table);
  EXPECT_EQUAL(close(open(other, O_WRONLY | O_CREAT, 0666)), 0);
  EXPECT_EQUAL(swp_replace(table, "third"), 0);
  expect_text("third");
  EXPECT(access(left, F_OK) != 0, "%s is there", left);
  EXPECT(unlink(written) == 0, "%s is gone", written);
  EXPECT(unlink(other) == 0, "%s is gone", other);
  close(locked);
}

int main(int argc, char **argv) {
  test_begin(&argc, &argv, "swp_replace");
  EXPECT(mkdtemp(path) != NULL, "no directory %s", path);
  snprintf(table, sizeof table, "%s/table", path);
  text_and_name_are_on_the_disk();
  a_place_without_a_directory_is_refused();
  what_killed_processes_left_is_deleted();
  EXPECT(unlink(table) == 0 && rmdir(path) == 0, "more is in %s than %s", path, table);
  return test_end();
}
