#include "operation.h"

#include "error.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 4096 };

const struct operation *operation_by_name(const char *name) {
  static const struct operation *const others[] = {&operation_exchange, &operation_discovery,
                                                   &operation_spmv};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    if (strcmp(others[i]->name, name) == 0)
      return others[i];
  for (int i = SWP_BCAST; swp_operation_name(i) != NULL; i++)
    if (strcmp(operation_collectives[i].name, name) == 0)
      return &operation_collectives[i];
  return NULL;
}

static int fit_buffer(int64_t bytes, int64_t *room, char **buffer) {
  if (bytes < *room)
    return 0;
  free(*buffer);
  *room = bytes + 1; /* one is never NULL, even for nothing */
  if (posix_memalign((void **)buffer, ALIGNMENT, (size_t)*room)) {
    *buffer = NULL;
    return failure_set("out of memory: cannot get %lld bytes for a buffer", (long long)bytes);
  }
  memset(*buffer, 0, (size_t)*room); /* first touched by the rank that uses it */
  return 0;
}

int workload_fit(struct workload *workload) {
  int status = workload->operation->size(workload);
  if (status == 0)
    status = fit_buffer(workload->send_bytes, &workload->send_room, &workload->send);
  if (status == 0)
    status = fit_buffer(workload->recv_bytes, &workload->recv_room, &workload->recv);
  return status;
}

int workload_create(const struct team *team, const struct operation *operation, const struct pattern *pattern,
                    const struct pattern_features *features, int64_t item_bytes, uint64_t seed,
                    const struct swp_hints *hints, struct workload *workload) {
  *workload = (struct workload){.operation = operation,
                                .team = team,
                                .pattern = pattern,
                                .payload = {seed, 0, item_bytes},
                                .root = pattern->root,
                                .hints = SWP_HINTS_DEFAULT};
  if (hints)
    workload->hints = *hints;
  if (operation->operation == SWP_DISCOVERY) {
    workload->hints.degree = features->messages_max;
    workload->hints.bytes = case_bytes(operation, features, item_bytes);
  }
  const int64_t items_most = pattern->nitems > features->items ? pattern->nitems : features->items;
  int status = 0;
  if (items_most > INT64_MAX / item_bytes)
    status =
        failure_set("out of memory: %lld items of %lld bytes", (long long)items_most, (long long)item_bytes);
  if (status == 0)
    status = workload_fit(workload);
  for (int i = 0; status == 0 && workload->messages && i < pattern->sends.n; i++)
    workload->messages[i] = workload->send + pattern->sends.offsets[i] * item_bytes;
  return team_agree(team, status);
}

void workload_free(struct workload *workload) {
  if (workload->operation->free)
    workload->operation->free(workload);
  swp_inbox_free(&workload->inbox);
  free(workload->send);
  free(workload->recv);
  free(workload->messages);
  free(workload->message_bytes);
  *workload = (struct workload){0};
}

int64_t case_bytes(const struct operation *operation, const struct pattern_features *features,
                   int64_t item_bytes) {
  if (operation->operation >= SWP_BCAST)
    return item_bytes;
  return features->messages ? features->items * item_bytes / features->messages : 0;
}
