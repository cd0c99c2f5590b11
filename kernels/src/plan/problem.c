/* An exchange problem in the form that methods read. */
#include "problem.h"

#include "allocate.h"
#include "error.h"
#include "order.h"
#include "random.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

int swp_find_duplicate(const int *ranks, int count, int *sorted) {
  memcpy(sorted, ranks, (size_t)count * sizeof *sorted);
  qsort(sorted, (size_t)count, sizeof *sorted, swp_by_int);
  for (int i = 1; i < count; i++)
    if (sorted[i] == sorted[i - 1])
      return sorted[i];
  return -1;
}

/* Checks that ranks are in range and each occurs at most once, and that offsets never decrease. */
static int check_list(const char *what, int count, const int *ranks, const int64_t *offsets, int procs) {
  if (count < 0 || count > procs)
    return swp_fail(SWP_ERR_ARGUMENT, "exchange: n%ss is %d; there are %d ranks", what, count, procs);
  if (count == 0)
    return SWP_SUCCESS;
  if (ranks == NULL || offsets == NULL)
    return swp_fail(SWP_ERR_ARGUMENT, "exchange: %s_ranks or %s_offsets is NULL with n%ss = %d", what, what,
                    what, count);
  if (offsets[0] < 0)
    return swp_fail(SWP_ERR_ARGUMENT, "exchange: %s_offsets[0] is negative", what);
  for (int i = 0; i < count; i++) {
    if (ranks[i] < 0 || ranks[i] >= procs)
      return swp_fail(SWP_ERR_ARGUMENT, "exchange: %s_ranks[%d] is %d; there are %d ranks", what, i, ranks[i],
                      procs);
    if (offsets[i + 1] < offsets[i])
      return swp_fail(SWP_ERR_ARGUMENT, "exchange: %s_offsets decrease at %d", what, i + 1);
  }
  int *sorted = swp_allocate((size_t)count, sizeof *sorted, NULL);
  if (sorted == NULL)
    return swp_fail(SWP_ERR_MEMORY, "exchange: no memory for %d neighbours", count);
  int duplicate = swp_find_duplicate(ranks, count, sorted);
  swp_release(sorted);
  return duplicate < 0
             ? SWP_SUCCESS
             : swp_fail(SWP_ERR_ARGUMENT, "exchange: rank %d appears twice in %s_ranks", duplicate, what);
}

/* No sum over ranks of what is sent and received, forwarded a few times, exceeds 64 bits. */
static bool is_countable(int64_t items, int64_t item_bytes, int procs) {
  return items <= INT64_MAX / 4 / procs / item_bytes;
}

static int check_volume(const char *what, int64_t items, int64_t item_bytes, int procs) {
  if (is_countable(items, item_bytes, procs))
    return SWP_SUCCESS;
  return swp_fail(SWP_ERR_ARGUMENT, "exchange: %lld %s items of %lld bytes exceed 64 bits", (long long)items,
                  what, (long long)item_bytes);
}

static int check_send_items(const struct swp_exchange *exchange) {
  int64_t first = exchange->send_offsets[0], last = exchange->send_offsets[exchange->nsends];
  if (exchange->send_items == NULL && last > exchange->nitems)
    return swp_fail(SWP_ERR_ARGUMENT, "exchange: send_offsets end at %lld, past nitems = %lld",
                    (long long)last, (long long)exchange->nitems);
  for (int64_t k = first; exchange->send_items != NULL && k < last; k++)
    if (exchange->send_items[k] < 0 || exchange->send_items[k] >= exchange->nitems)
      return swp_fail(SWP_ERR_ARGUMENT, "exchange: send_items[%lld] is %lld; nitems is %lld", (long long)k,
                      (long long)exchange->send_items[k], (long long)exchange->nitems);
  return SWP_SUCCESS;
}

/* Returns whether this rank has no part in the exchange; then only nitems matters, to its buffer. */
static bool is_idle(const struct swp_exchange *exchange) {
  return exchange->nsends == 0 && exchange->nrecvs == 0;
}

static int check(const struct swp_exchange *exchange, int procs) {
  int error = SWP_SUCCESS;
  if (exchange == NULL)
    return swp_fail(SWP_ERR_ARGUMENT, "exchange: the problem is NULL");
  if (is_idle(exchange))
    return SWP_SUCCESS;
  if (exchange->item_bytes < 1 || exchange->nitems < 0)
    return swp_fail(SWP_ERR_ARGUMENT, "exchange: item_bytes must be at least 1 and nitems at least 0");
  TRY(check_volume("own", exchange->nitems, exchange->item_bytes, procs));
  TRY(check_list("send", exchange->nsends, exchange->send_ranks, exchange->send_offsets, procs));
  TRY(check_list("recv", exchange->nrecvs, exchange->recv_ranks, exchange->recv_offsets, procs));
  if (exchange->nrecvs > 0)
    TRY(check_volume("received", exchange->recv_offsets[exchange->nrecvs], exchange->item_bytes, procs));
  if (exchange->nsends > 0) {
    TRY(check_volume("sent", exchange->send_offsets[exchange->nsends], exchange->item_bytes, procs));
    TRY(check_send_items(exchange));
  }
done:
  return error;
}

int64_t swp_runs_bytes(const struct run *runs, int64_t nruns) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < nruns; i++)
    bytes += runs[i].bytes;
  return bytes;
}

void swp_runs_append(struct run *runs, int64_t *nruns, int64_t offset, int64_t bytes) {
  if (*nruns > 0 && runs[*nruns - 1].offset + runs[*nruns - 1].bytes == offset)
    runs[*nruns - 1].bytes += bytes;
  else
    runs[(*nruns)++] = (struct run){offset, bytes};
}

int64_t swp_runs_unite(struct run *runs, int64_t nruns) {
  int64_t count = 0;
  if (nruns > 1)
    qsort(runs, (size_t)nruns, sizeof *runs, swp_by_int64);
  for (int64_t i = 0; i < nruns; i++) {
    const int64_t begin = count > 0 ? runs[count - 1].offset : 0, end = runs[i].offset + runs[i].bytes;
    if (count == 0 || runs[i].offset > begin + runs[count - 1].bytes)
      runs[count++] = runs[i];
    else if (end > begin + runs[count - 1].bytes)
      runs[count - 1].bytes = end - begin;
  }
  return count;
}

/* Runs of message i; with runs NULL they are only counted. */
static int64_t message_runs(const struct swp_exchange *exchange, int i, struct run *runs) {
  int64_t size = exchange->item_bytes, first = exchange->send_offsets[i],
          last = exchange->send_offsets[i + 1];
  if (exchange->send_items == NULL) {
    if (runs != NULL && last > first)
      runs[0] = (struct run){first * size, (last - first) * size};
    return last > first;
  }
  int64_t nruns = 0;
  for (int64_t k = first; k < last; k++) {
    int64_t item = exchange->send_items[k];
    if (runs != NULL)
      swp_runs_append(runs, &nruns, item * size, size);
    else
      nruns += k == first || item != exchange->send_items[k - 1] + 1;
  }
  return nruns;
}

static void build_sends(const struct swp_exchange *exchange, int rank, struct problem *problem) {
  struct run *runs = problem->runs;
  for (int i = 0; i < exchange->nsends; i++) {
    int64_t items = exchange->send_offsets[i + 1] - exchange->send_offsets[i];
    if (items == 0)
      continue;
    struct send send = {exchange->send_ranks[i], items * exchange->item_bytes,
                        message_runs(exchange, i, runs), runs};
    runs += send.nruns;
    problem->send_hash += swp_message_hash(rank, send.peer, send.bytes);
    if (send.peer == rank) {
      problem->self = send;
      continue;
    }
    problem->sends[problem->nsends++] = send;
    problem->send_bytes += send.bytes;
  }
}

static void build_recvs(const struct swp_exchange *exchange, int rank, struct problem *problem) {
  for (int i = 0; i < exchange->nrecvs; i++) {
    int64_t items = exchange->recv_offsets[i + 1] - exchange->recv_offsets[i];
    if (items == 0)
      continue;
    struct receive receive = {exchange->recv_ranks[i], items * exchange->item_bytes,
                              exchange->recv_offsets[i] * exchange->item_bytes};
    problem->recv_hash += swp_message_hash(receive.peer, rank, receive.bytes);
    if (receive.peer == rank) {
      problem->self_offset = receive.offset;
      continue;
    }
    problem->recvs[problem->nrecvs++] = receive;
    problem->recv_bytes += receive.bytes;
  }
}

/* An idle rank's numbers may be senseless: then it has no buffer. */
static int64_t buffer_bytes(int64_t items, int64_t item_bytes, int procs) {
  const bool sensible = items > 0 && item_bytes > 0 && is_countable(items, item_bytes, procs);
  return sensible ? items * item_bytes : 0;
}

void swp_problem_agree(struct problem *problem, int64_t item_bytes, int procs) {
  problem->item_bytes = item_bytes;
  problem->buffer_bytes = buffer_bytes(problem->nitems, item_bytes, procs);
}

int swp_problem_build(const struct swp_exchange *exchange, int rank, int procs, struct problem *problem,
                      int64_t *account) {
  int error = check(exchange, procs);
  if (error != SWP_SUCCESS)
    return error;
  int64_t nruns = 0;
  for (int i = 0; i < exchange->nsends; i++)
    nruns += message_runs(exchange, i, NULL);
  problem->item_bytes = is_idle(exchange) ? 0 : exchange->item_bytes;
  problem->nitems = exchange->nitems;
  problem->buffer_bytes = buffer_bytes(exchange->nitems, exchange->item_bytes, procs);
  problem->sends = swp_allocate((size_t)exchange->nsends, sizeof *problem->sends, account);
  problem->recvs = swp_allocate((size_t)exchange->nrecvs, sizeof *problem->recvs, account);
  problem->runs = swp_allocate((size_t)nruns, sizeof *problem->runs, account);
  if (problem->sends == NULL || problem->recvs == NULL || problem->runs == NULL)
    return swp_fail(SWP_ERR_MEMORY, "exchange: no memory for %d sends, %d receives and %lld runs of items",
                    exchange->nsends, exchange->nrecvs, (long long)nruns);
  build_sends(exchange, rank, problem);
  build_recvs(exchange, rank, problem);
  return SWP_SUCCESS;
}

void swp_problem_free(struct problem *problem) {
  swp_release(problem->sends);
  swp_release(problem->recvs);
  swp_release(problem->runs);
}

void swp_problem_spans(const struct problem *problem, int64_t *send_bytes, int64_t *recv_first,
                       int64_t *recv_bytes) {
  const struct send *self = &problem->self;
  *send_bytes = 0;
  *recv_bytes = self->bytes > 0 ? problem->self_offset + self->bytes : 0;
  *recv_first = self->bytes > 0 ? problem->self_offset : INT64_MAX;
  for (int i = -1; i < problem->nsends; i++) {
    const struct send *send = i < 0 ? self : &problem->sends[i];
    for (int64_t r = 0; send->bytes > 0 && r < send->nruns; r++)
      if (send->runs[r].offset + send->runs[r].bytes > *send_bytes)
        *send_bytes = send->runs[r].offset + send->runs[r].bytes;
  }
  for (int i = 0; i < problem->nrecvs; i++) {
    const int64_t offset = problem->recvs[i].offset, end = offset + problem->recvs[i].bytes;
    *recv_bytes = end > *recv_bytes ? end : *recv_bytes;
    *recv_first = offset < *recv_first ? offset : *recv_first;
  }
  *recv_first = *recv_first < *recv_bytes ? *recv_first : *recv_bytes;
}

/* Eight bytes are the common item; a constant size lets the compiler drop the call. */
static inline void copy(char *to, const char *from, int64_t bytes) {
  if (bytes == 8)
    memcpy(to, from, 8);
  else
    memcpy(to, from, (size_t)bytes);
}

void swp_runs_pack(const struct run *runs, int64_t nruns, const char *from, char *to) {
  for (int64_t i = 0; i < nruns; i++) {
    copy(to, from + runs[i].offset, runs[i].bytes);
    to += runs[i].bytes;
  }
}

void swp_runs_unpack(const struct run *runs, int64_t nruns, const char *from, char *to) {
  for (int64_t i = 0; i < nruns; i++) {
    copy(to + runs[i].offset, from, runs[i].bytes);
    from += runs[i].bytes;
  }
}

void swp_runs_copy(const struct run *runs, int64_t nruns, const char *from, char *to) {
  for (int64_t i = 0; i < nruns; i++)
    copy(to + runs[i].offset, from + runs[i].offset, runs[i].bytes);
}

/* A type of any number of bytes: MPI's counts are int. */
static int bytes_type(int64_t bytes, MPI_Datatype *type) {
  enum { BLOCK = 1 << 30 };
  int error = SWP_SUCCESS;
  MPI_Datatype block = MPI_DATATYPE_NULL, blocks = MPI_DATATYPE_NULL;
  if (bytes <= INT_MAX) {
    MPI_TRY(MPI_Type_contiguous((int)bytes, MPI_BYTE, type));
    return SWP_SUCCESS;
  }
  MPI_TRY(MPI_Type_contiguous(BLOCK, MPI_BYTE, &block));
  MPI_TRY(MPI_Type_contiguous((int)(bytes / BLOCK), block, &blocks));
  int lengths[2] = {1, (int)(bytes % BLOCK)};
  MPI_Aint displacements[2] = {0, (MPI_Aint)(bytes / BLOCK * BLOCK)};
  MPI_Datatype types[2] = {blocks, MPI_BYTE};
  MPI_TRY(MPI_Type_create_struct(2, lengths, displacements, types, type));
done:
  if (block != MPI_DATATYPE_NULL)
    MPI_Type_free(&block);
  if (blocks != MPI_DATATYPE_NULL)
    MPI_Type_free(&blocks);
  return error;
}

int swp_runs_type(const struct run *runs, int64_t nruns, MPI_Datatype *type) {
  if (nruns > INT_MAX)
    return swp_fail(SWP_ERR_TOO_LARGE, "a message of %lld separate pieces", (long long)nruns);
  int error = SWP_SUCCESS;
  size_t count = (size_t)nruns;
  MPI_Datatype *types = swp_allocate(count, sizeof *types, NULL);
  MPI_Aint *displacements = swp_allocate(count, sizeof *displacements, NULL);
  int *lengths = swp_allocate(count, sizeof *lengths, NULL);
  int made = 0;
  if (types == NULL || displacements == NULL || lengths == NULL) {
    error = swp_fail(SWP_ERR_MEMORY, "no memory for a type of %zu pieces", count);
    goto done;
  }
  bool large = false;
  for (size_t i = 0; i < count; i++) {
    displacements[i] = (MPI_Aint)runs[i].offset;
    large = large || runs[i].bytes > INT_MAX;
    lengths[i] = large ? 1 : (int)runs[i].bytes;
  }
  if (!large) {
    MPI_TRY(MPI_Type_create_hindexed((int)nruns, lengths, displacements, MPI_BYTE, type));
  } else {
    for (made = 0; made < (int)nruns; made++) {
      lengths[made] = 1;
      TRY(bytes_type(runs[made].bytes, &types[made]));
    }
    MPI_TRY(MPI_Type_create_struct((int)nruns, lengths, displacements, types, type));
  }
  MPI_TRY(MPI_Type_commit(type));
done:
  for (int i = 0; i < made; i++)
    MPI_Type_free(&types[i]);
  swp_release(types);
  swp_release(displacements);
  swp_release(lengths);
  return error;
}
