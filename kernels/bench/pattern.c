#include "pattern.h"

#include "error.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATTERN(name) extern const struct pattern_family pattern_##name;
#include "patterns/families.def"
#undef PATTERN

#define PATTERN(name) &pattern_##name,
static const struct pattern_family *const families[] = {
#include "patterns/families.def"
    NULL};
#undef PATTERN

enum { TAG_LISTS = 1 };

const struct pattern_family *pattern_family(int index) {
  return families[index];
}

/* Reads "name=value" of the given length into its place in values. */
static int parse_parameter(const struct pattern_family *family, const char *text, int length, int64_t *values,
                           bool *given) {
  const char *equals = memchr(text, '=', (size_t)length);
  for (int i = 0; equals && i < PATTERN_PARAMETERS && family->parameters[i].name; i++) {
    const struct pattern_parameter *parameter = &family->parameters[i];
    if (strlen(parameter->name) != (size_t)(equals - text) ||
        strncmp(parameter->name, text, (size_t)(equals - text)) != 0)
      continue;
    char *end;
    errno = 0;
    values[i] = strtoll(equals + 1, &end, 10);
    if (end != text + length || end == equals + 1 || errno || values[i] < parameter->least ||
        values[i] > parameter->most)
      return failure_set("%s is an integer from %lld to %lld", parameter->name, (long long)parameter->least,
                         (long long)parameter->most);
    if (given[i])
      return failure_set("%s is given twice", parameter->name);
    given[i] = true;
    return 0;
  }
  return failure_set("\"%.*s\" is no parameter of this pattern; see swpbench --help", length, text);
}

static int parse_parameters(const char *text, struct pattern_spec *spec) {
  bool given[PATTERN_PARAMETERS] = {false};
  for (int i = 0; i < PATTERN_PARAMETERS; i++)
    spec->values[i] = spec->family->parameters[i].standard;
  while (text) {
    const int length = (int)strcspn(text, ",");
    if (parse_parameter(spec->family, text, length, spec->values, given))
      return -1;
    text = text[length] == ',' ? text + length + 1 : NULL;
  }
  return 0;
}

int pattern_parse(const char *text, struct pattern_spec *spec) {
  const size_t length = strcspn(text, ":");
  const char *rest = text[length] == ':' ? text + length + 1 : NULL;
  *spec = (struct pattern_spec){0};
  for (int i = 0; families[i] && !spec->family; i++)
    if (strlen(families[i]->name) == length && strncmp(families[i]->name, text, length) == 0)
      spec->family = families[i];
  if (!spec->family)
    return failure_set("unknown pattern; see swpbench --help");
  if (spec->family->from_file) {
    spec->file = rest;
    return rest && *rest ? 0 : failure_set("this pattern needs a file: %s:FILE", spec->family->name);
  }
  if (parse_parameters(rest, spec))
    return -1;
  return spec->family->check ? spec->family->check(spec) : 0;
}

void pattern_print(const struct pattern_spec *spec, char *text, size_t length) {
  if (spec->family->from_file) {
    const char *slash = strrchr(spec->file, '/');
    snprintf(text, length, "%s:%s", spec->family->name, slash ? slash + 1 : spec->file);
    return;
  }
  size_t used = (size_t)snprintf(text, length, "%s", spec->family->name);
  for (int i = 0; i < PATTERN_PARAMETERS && spec->family->parameters[i].name && used < length; i++)
    used += (size_t)snprintf(text + used, length - used, "%c%s=%lld", i ? ',' : ':',
                             spec->family->parameters[i].name, (long long)spec->values[i]);
}

int pattern_generate(const struct team *team, const struct pattern_spec *spec, struct pattern *pattern) {
  *pattern = (struct pattern){0};
  return spec->family->generate(team, spec, pattern);
}

static void lists_free(struct lists *lists) {
  free(lists->ranks);
  free(lists->offsets);
  free(lists->items);
  *lists = (struct lists){0};
}

void pattern_free(struct pattern *pattern) {
  lists_free(&pattern->sends);
  lists_free(&pattern->recvs);
}

void pattern_measure(const struct team *team, const struct pattern *pattern,
                     struct pattern_features *features) {
  const int64_t messages = pattern->sends.n;
  const int64_t items = pattern->sends.offsets[pattern->sends.n];
  int64_t sums[2] = {messages, items};
  int64_t most[2] = {messages, items};
  team_allreduce(team, sums, 2, MPI_INT64_T, MPI_SUM);
  team_allreduce(team, most, 2, MPI_INT64_T, MPI_MAX);
  *features = (struct pattern_features){sums[0], most[0], sums[1], most[1]};
}

void lists_allocate(struct lists *lists, int n, int64_t nitems) {
  lists->n = n;
  lists->ranks = allocate((size_t)n * sizeof *lists->ranks);
  lists->offsets = allocate(((size_t)n + 1) * sizeof *lists->offsets);
  lists->items = allocate((size_t)nitems * sizeof *lists->items);
  lists->offsets[0] = 0;
}

/* Room for what the others list for this rank, whose number of items by rank is known. */
static void allocate_counted(int procs, const int64_t *counts, struct lists *theirs) {
  int n = 0;
  int64_t nitems = 0;
  for (int r = 0; r < procs; r++) {
    n += counts[r] > 0;
    nitems += counts[r];
  }
  lists_allocate(theirs, n, nitems);
  for (int r = 0, i = 0; r < procs; r++) {
    if (counts[r] == 0)
      continue;
    theirs->ranks[i] = r;
    theirs->offsets[i + 1] = theirs->offsets[i] + counts[r];
    i++;
  }
}

/* The items of list i, as the three arguments that MPI wants; what its int cannot count ends the job. */
static int list_count(const struct lists *lists, int i) {
  const int64_t count = lists->offsets[i + 1] - lists->offsets[i];
  if (count > INT_MAX) {
    failure_set("a message of the pattern has %lld items; at most %d are possible", (long long)count,
                INT_MAX);
    team_abort();
  }
  return (int)count;
}

void lists_transpose(const struct team *team, const struct lists *mine, struct lists *theirs) {
  int64_t *told = allocate(2 * (size_t)team->procs * sizeof *told);
  int64_t *heard = told + team->procs;
  memset(told, 0, (size_t)team->procs * sizeof *told);
  for (int i = 0; i < mine->n; i++)
    told[mine->ranks[i]] = mine->offsets[i + 1] - mine->offsets[i];
  MPI_Request counts;
  MPI_Ialltoall(told, 1, MPI_INT64_T, heard, 1, MPI_INT64_T, team->comm, &counts);
  team_wait(team, 1, &counts);
  allocate_counted(team->procs, heard, theirs);
  free(told);

  MPI_Request *requests = allocate((size_t)(mine->n + theirs->n) * sizeof(MPI_Request));
  for (int i = 0; i < theirs->n; i++)
    MPI_Irecv(theirs->items + theirs->offsets[i], list_count(theirs, i), MPI_INT64_T, theirs->ranks[i],
              TAG_LISTS, team->comm, &requests[i]);
  for (int i = 0; i < mine->n; i++)
    MPI_Isend(mine->items + mine->offsets[i], list_count(mine, i), MPI_INT64_T, mine->ranks[i], TAG_LISTS,
              team->comm, &requests[theirs->n + i]);
  team_wait(team, mine->n + theirs->n, requests);
  free(requests);
}
