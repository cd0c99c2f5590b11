/* Appends the results of races to the user's table. */
#define _DEFAULT_SOURCE /* realpath */
#include "user_table.h"

#include "replace.h"
#include "table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, RULE_BYTES = SPEC_BYTES + EVIDENCE_BYTES + 512 };

static const char HEAD[] =
    "switchpoint-table 1\n# Rules that SWP_MEASURE found. Remove a line to have it measured again.\n";

static int cannot_write(const char *path) {
  return swp_fail(SWP_ERR_TABLE, "%s, named by %s, cannot be written: %s", path, SWP_USER_TABLE,
                  strerror(errno));
}

/* The file itself, where the name is that of a link to it. */
static void follow_links(const char *name, char *path) {
  char *real = realpath(name, NULL);
  snprintf(path, PATH_BYTES, "%s", real != NULL ? real : name);
  free(real);
}

static int check_writable(const char *name) {
  char path[PATH_BYTES];
  follow_links(name, path);
  return swp_replace_possible(path) == 0 ? SWP_SUCCESS : cannot_write(path);
}

int swp_remember_possible(struct swp_plan *plan, bool *possible) {
  int error = SWP_SUCCESS, named = 0;
  const char *name = getenv(SWP_USER_TABLE);
  if (plan->rank == 0 && name != NULL && *name != '\0') {
    named = 1;
    error = check_writable(name);
  }
  TRY(swp_agree(plan->comm, error));
  MPI_TRY(MPI_Bcast(&named, 1, MPI_INT, 0, plan->comm));
  *possible = named != 0;
done:
  return error;
}

/* Appends formatted text to `text`, which has room for it. */
static void append(char *text, size_t room, const char *format, ...) {
  size_t used = strlen(text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + used, room - used, format, arguments);
  va_end(arguments);
}

/* The mean degree may have infinitely many digits: writes an interval around it, with points in any locale.
 */
static void write_degree(const struct features *features, char *text, size_t room) {
  enum { SCALE = 1000000 };
  const long long low = (long long)(features->mavg * SCALE), high = low + 1;
  append(text, room, " mmax=%lld mavg=%lld.%06lld:%lld.%06lld", (long long)features->mmax, low / SCALE,
         low % SCALE, high / SCALE, high % SCALE);
}

/* A rule for each stretch. */
static void write_rules(const struct swp_plan *plan, const struct outcome *outcome, char *text, size_t room) {
  const struct features *features = &plan->features;
  char date[32];
  time_t now = time(NULL);
  struct tm utc;
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  *text = '\0';
  for (int i = 0; i < outcome->count; i++) {
    append(text, room, "rule op=%s method=%s nodes=%d ppn=%d", swp_shapes[plan->operation].name,
           outcome->stretches[i].spec.text, features->nodes, features->ppn);
    if (plan->operation == SWP_EXCHANGE)
      write_degree(features, text, room);
    append(text, room, " bytes=%lld", (long long)features->bytes);
    if (outcome->count > 1 && i + 1 < outcome->count)
      append(text, room, " executions=%lld:%lld", (long long)outcome->stretches[i].from,
             (long long)outcome->stretches[i + 1].from - 1);
    else if (outcome->count > 1)
      append(text, room, " executions=%lld:*", (long long)outcome->stretches[i].from);
    append(text, room, " evidence=\"%s, %d ranks, %s\"\n", outcome->evidence, plan->procs, date);
  }
}

/* Appends the rules to the table's text; the result must be a valid table. *text must be released. */
static int compose(const char *path, const char *rules, char **text) {
  char *old = NULL;
  int64_t length = 0;
  swp_table *table = NULL;
  int error = access(path, F_OK) == 0 ? swp_table_text(path, &old, &length) : SWP_SUCCESS;
  if (error != SWP_SUCCESS)
    return error;
  const char *first = length > 0 ? old : HEAD;
  const size_t used = length > 0 ? (size_t)length : sizeof HEAD - 1, room = used + strlen(rules) + 2;
  *text = swp_allocate(room, 1, NULL);
  if (*text == NULL) {
    error = swp_fail(SWP_ERR_MEMORY, "%s: no memory for it", path);
  } else {
    memcpy(*text, first, used); /* its NUL bytes too, which are refused then */
    const int added = snprintf(*text + used, room - used, "%s%s", first[used - 1] != '\n' ? "\n" : "", rules);
    error = swp_table_parse(path, *text, used + (size_t)added, &table);
  }
  swp_table_free(&table);
  swp_release(old);
  return error;
}

static int rewrite(const struct swp_plan *plan, const struct outcome *outcome) {
  char path[PATH_BYTES], *text = NULL;
  const size_t room = (size_t)outcome->count * RULE_BYTES;
  char *rules = swp_allocate(room, 1, NULL);
  if (rules == NULL)
    return swp_fail(SWP_ERR_MEMORY, "no memory for rules");
  follow_links(getenv(SWP_USER_TABLE), path);
  write_rules(plan, outcome, rules, room);
  int error = compose(path, rules, &text);
  if (error == SWP_SUCCESS)
    error = swp_replace(path, text) == 0 ? SWP_SUCCESS : cannot_write(path);
  swp_release(text);
  swp_release(rules);
  return error;
}

int swp_remember(struct swp_plan *plan, const struct outcome *outcome) {
  return swp_agree(plan->comm, plan->rank == 0 ? rewrite(plan, outcome) : SWP_SUCCESS);
}
