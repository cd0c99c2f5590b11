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
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 512 };

int __real_flock(int file, int operation);
int __wrap_flock(int file, int operation);
int __real_fsync(int file);
int __wrap_fsync(int file);
ssize_t __real_write(int file, const void *bytes, size_t length);
ssize_t __wrap_write(int file, const void *bytes, size_t length);

static char path[] = "/tmp/switchpoint-replace-XXXXXX"; /* a directory; the table is in it */
static char table[sizeof path + 8], taken[sizeof path + 8];
static int files_synced, directories_synced, files_locked;
static int lock_error, sync_error; /* of files */
static bool is_interrupted, is_taken, writes_nothing;

static int fail(int error) {
  errno = error;
  return -1;
}

/* Before a new file is locked, another process may delete it, for which NFS renames it. */
static void take(int file) {
  char descriptor[64], name[PATH_BYTES] = "";
  snprintf(descriptor, sizeof descriptor, "/proc/self/fd/%d", file);
  EXPECT(readlink(descriptor, name, sizeof name - 1) > 0 && rename(name, taken) == 0, "%s is not taken",
         name);
}

int __wrap_flock(int file, int operation) {
  if (lock_error != 0)
    return fail(lock_error);
  if (is_interrupted) {
    is_interrupted = false;
    return fail(EINTR);
  }
  if (is_taken) {
    is_taken = false;
    take(file);
  }
  files_locked += operation == LOCK_EX;
  return __real_flock(file, operation);
}

ssize_t __wrap_write(int file, const void *bytes, size_t length) {
  return writes_nothing ? 0 : __real_write(file, bytes, length);
}

int __wrap_fsync(int file) {
  struct stat found = {0};
  fstat(file, &found);
  if (S_ISREG(found.st_mode) && sync_error != 0)
    return fail(sync_error);
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

static void file_systems_may_lack_what_makes_it_safe(void) {
  static const int lacking[] = {EINVAL, ENOTSUP};
  for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++) {
    test_case("no fsync: %s", strerror(lacking[i]));
    sync_error = lacking[i];
    EXPECT_EQUAL(swp_replace(table, "unsafe"), 0);
    expect_text("unsafe");
  }
  sync_error = 0;
}

static void what_cannot_be_written_leaves_the_old_text(void) {
  test_case("fsync fails");
  EXPECT_EQUAL(swp_replace(table, "old"), 0);
  sync_error = EIO;
  EXPECT_EQUAL(swp_replace(table, "new"), -1);
  EXPECT_EQUAL(errno, EIO);
  sync_error = 0;
  expect_text("old");
  test_case("nothing is written");
  writes_nothing = true;
  EXPECT_EQUAL(swp_replace(table, "new"), -1);
  EXPECT_EQUAL(errno, EIO);
  writes_nothing = false;
  expect_text("old");
}

static void a_new_file_that_another_took_is_made_again(void) {
  test_case("taken before it is locked");
  is_taken = true;
  EXPECT_EQUAL(swp_replace(table, "again"), 0);
  expect_text("again");
  EXPECT(unlink(taken) == 0, "%s is gone", taken);
}

static void an_interrupted_lock_is_waited_for(void) {
  test_case("interrupted");
  files_locked = 0;
  is_interrupted = true;
  EXPECT_EQUAL(swp_replace(table, "locked"), 0);
  EXPECT_EQUAL(files_locked, 1);
}

static void a_long_name_has_room_beside_it(void) {
  char name[PATH_BYTES];
  test_case("a long name");
  snprintf(name, sizeof name, "%s/%0255d", path, 0);
  EXPECT_EQUAL(swp_replace_possible(name), 0);
  EXPECT_EQUAL(swp_replace(name, "long"), 0);
  EXPECT(unlink(name) == 0, "%s is not there", name);
}

/* Makes an empty file of the name of one that is written; returns its descriptor. */
static int make_beside(const char *host, const char *number, char beside[PATH_BYTES]) {
  snprintf(beside, PATH_BYTES, "%s/.table.%s.%s.partial", path, host, number);
  return open(beside, O_WRONLY | O_CREAT | O_EXCL, 0666);
}

static void what_killed_processes_left_is_deleted(void) {
  test_case("files beside");
  char host[64] = "", left[PATH_BYTES], written[PATH_BYTES], elsewhere[PATH_BYTES], other[sizeof table + 8];
  gethostname(host, sizeof host - 1);
  const int closed = make_beside(host, "1.0", left), locked = make_beside(host, "1.1", written);
  EXPECT(close(closed) == 0 && flock(locked, LOCK_EX) == 0, "no files beside %s", table);
  EXPECT_EQUAL(close(make_beside("another-host", "1.0", elsewhere)), 0); /* its locks may not be seen here */
  snprintf(other, sizeof other, "%s.partial", table);
  EXPECT_EQUAL(close(open(other, O_WRONLY | O_CREAT, 0666)), 0);
  EXPECT_EQUAL(swp_replace(table, "third"), 0);
  expect_text("third");
  EXPECT(access(left, F_OK) != 0, "%s is there", left);
  EXPECT(unlink(written) == 0, "%s is gone", written);
  EXPECT(unlink(elsewhere) == 0, "%s is gone", elsewhere);
  EXPECT(unlink(other) == 0, "%s is gone", other);
  close(locked);
}

static void without_locks_what_is_days_old_is_deleted(void) {
  test_case("no locks");
  char host[64] = "", old[PATH_BYTES], recent[PATH_BYTES];
  gethostname(host, sizeof host - 1);
  const int file = make_beside(host, "1.0", old);
  const struct timespec two_days_ago = {.tv_sec = time(NULL) - 2 * 86400};
  EXPECT(futimens(file, (struct timespec[]){two_days_ago, two_days_ago}) == 0 && close(file) == 0,
         "no old file beside %s", table);
  EXPECT_EQUAL(close(make_beside(host, "1.1", recent)), 0);
  lock_error = ENOLCK;
  EXPECT_EQUAL(swp_replace(table, "fourth"), 0);
  lock_error = 0;
  expect_text("fourth");
  EXPECT(access(old, F_OK) != 0, "%s is there", old);
  EXPECT(unlink(recent) == 0, "%s is gone", recent);
}

int main(int argc, char **argv) {
  test_begin(&argc, &argv, "swp_replace");
  EXPECT(mkdtemp(path) != NULL, "no directory %s", path);
  snprintf(table, sizeof table, "%s/table", path);
  snprintf(taken, sizeof taken, "%s/.nfs1", path);
  text_and_name_are_on_the_disk();
  a_place_without_a_directory_is_refused();
  file_systems_may_lack_what_makes_it_safe();
  what_cannot_be_written_leaves_the_old_text();
  a_new_file_that_another_took_is_made_again();
  an_interrupted_lock_is_waited_for();
  a_long_name_has_room_beside_it();
  what_killed_processes_left_is_deleted();
  without_locks_what_is_days_old_is_deleted();
  EXPECT(unlink(table) == 0 && rmdir(path) == 0, "more is in %s than %s", path, table);
  return test_end();
}
