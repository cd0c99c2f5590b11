/* Several fields in one exchange. */
#include "fields.h"

#include "allocate.h"
#include "error.h"
#include "kinds.h"
#include "order.h"

#include <stdlib.h>
#include <string.h>

/* ---- Planning ---- */

static int check_fields(int nfields, const int64_t *bytes, int64_t *item_bytes) {
  *item_bytes = 0;
  if (nfields < 1 || bytes == NULL)
    return swp_fail(SWP_ERR_ARGUMENT, "fields: nfields is %d, at least 1 is needed, and field_bytes not NULL",
                    nfields);
  for (int f = 0; f < nfields; f++)
    if (bytes[f] < 1 || __builtin_add_overflow(*item_bytes, bytes[f], item_bytes))
      return swp_fail(SWP_ERR_ARGUMENT,
                      "fields: field_bytes[%d] is %lld; at least 1, and less than 2^63 in all", f,
                      (long long)bytes[f]);
  return SWP_SUCCESS;
}

/* A stretch of the caller's items: all runs that overlap. */
struct stretch {
  int64_t offset, bytes;
  int64_t place; /* in the packed buffer; -1: none yet */
};

/* The runs of a problem, while their items get places in the packed buffer. */
struct packing {
  struct run *runs;
  int64_t nruns;
  struct use {
    int64_t offset, run;
  } *uses;             /* of runs, by offset */
  int64_t *stretch_of; /* by run */
  struct stretch *stretches;
};

static void find_stretches(struct packing *packing) {
  int64_t count = 0, end = 0;
  for (int64_t i = 0; i < packing->nruns; i++)
    packing->uses[i] = (struct use){packing->runs[i].offset, i};
  if (packing->nruns > 1)
    qsort(packing->uses, (size_t)packing->nruns, sizeof *packing->uses, swp_by_int64);
  for (int64_t i = 0; i < packing->nruns; i++) {
    const struct run *run = &packing->runs[packing->uses[i].run];
    if (count == 0 || run->offset >= end) {
      packing->stretches[count++] = (struct stretch){run->offset, 0, -1};
      end = run->offset;
    }
    if (run->offset + run->bytes > end)
      end = run->offset + run->bytes;
    packing->stretches[count - 1].bytes = end - packing->stretches[count - 1].offset;
    packing->stretch_of[packing->uses[i].run] = count - 1;
  }
}

/* Moves each run to its items' place: items are packed in the order in which messages need them first, so
   that most messages are one run. Gives the bytes of the packed buffer. */
static int64_t move_runs(struct packing *packing, struct fields *fields) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < packing->nruns; i++) {
    struct stretch *stretch = &packing->stretches[packing->stretch_of[i]];
    if (stretch->place < 0) {
      stretch->place = bytes;
      bytes += stretch->bytes;
      fields->sent[fields->nsent++] =
          (struct run){stretch->offset / fields->item_bytes, stretch->bytes / fields->item_bytes};
    }
    packing->runs[i].offset += stretch->place - stretch->offset;
  }
  return bytes;
}

/* Joins runs of a message that touch now. */
static void join_runs(struct run *runs, struct send *send) {
  struct run *own = runs + (send->runs - runs);
  int64_t nruns = 0;
  for (int64_t i = 0; i < send->nruns; i++)
    swp_runs_append(own, &nruns, own[i].offset, own[i].bytes);
  send->nruns = nruns;
}

static int64_t count_runs(const struct problem *problem) {
  int64_t nruns = problem->self.nruns;
  for (int i = 0; i < problem->nsends; i++)
    nruns += problem->sends[i].nruns;
  return nruns;
}

static int no_memory(int64_t items) {
  return swp_fail(SWP_ERR_MEMORY, "fields: no memory to pack %lld items", (long long)items);
}

/* Gives the items that are sent places in a packed buffer, which the problem's runs then name. */
static int pack_sends(struct fields *fields, struct problem *problem, int64_t *account) {
  const size_t nruns = (size_t)count_runs(problem);
  struct packing packing = {problem->runs, (int64_t)nruns, swp_allocate(nruns, sizeof *packing.uses, NULL),
                            swp_allocate(nruns, sizeof *packing.stretch_of, NULL),
                            swp_allocate(nruns, sizeof *packing.stretches, NULL)};
  int error = SWP_SUCCESS;
  fields->sent = swp_allocate(nruns, sizeof *fields->sent, account);
  if (packing.uses == NULL || packing.stretch_of == NULL || packing.stretches == NULL ||
      fields->sent == NULL) {
    error = no_memory((int64_t)nruns);
    goto done;
  }
  find_stretches(&packing);
  const int64_t bytes = move_runs(&packing, fields);
  if (problem->self.nruns > 0)
    join_runs(problem->runs, &problem->self);
  for (int i = 0; i < problem->nsends; i++)
    join_runs(problem->runs, &problem->sends[i]);
  problem->nitems = bytes / fields->item_bytes;
  fields->send = swp_allocate((size_t)bytes, 1, account);
  if (fields->send == NULL)
    error = no_memory(problem->nitems);
done:
  swp_release(packing.uses);
  swp_release(packing.stretch_of);
  swp_release(packing.stretches);
  return error;
}

/* What is received begins the packed buffer, without the items that the caller has before it. */
static int pack_recvs(const struct swp_exchange *exchange, struct fields *fields, struct problem *problem,
                      int64_t *account) {
  if (exchange->nrecvs > 0) {
    fields->first_recv = exchange->recv_offsets[0];
    fields->recv_items = exchange->recv_offsets[exchange->nrecvs] - fields->first_recv;
  }
  const int64_t before = fields->first_recv * fields->item_bytes;
  for (int i = 0; i < problem->nrecvs; i++)
    problem->recvs[i].offset -= before;
  problem->self_offset -= problem->self.bytes > 0 ? before : 0;
  fields->recv = swp_allocate((size_t)fields->recv_items, (size_t)fields->item_bytes, account);
  return fields->recv != NULL ? SWP_SUCCESS : no_memory(fields->recv_items);
}

static int keep_sizes(int nfields, const int64_t *bytes, struct fields *fields, int64_t *account) {
  fields->bytes = swp_allocate((size_t)nfields, sizeof *fields->bytes, account);
  fields->to = swp_allocate((size_t)nfields, sizeof *fields->to, account);
  if (fields->bytes == NULL || fields->to == NULL)
    return swp_fail(SWP_ERR_MEMORY, "fields: no memory for %d fields", nfields);
  memcpy(fields->bytes, bytes, (size_t)nfields * sizeof *bytes);
  fields->count = nfields;
  fields->hash = swp_hash(bytes, (size_t)nfields * sizeof *bytes);
  return SWP_SUCCESS;
}

int swp_fields_build(const struct swp_exchange *exchange, int nfields, const int64_t *bytes, int rank,
                     int procs, struct fields *fields, struct problem *problem, int64_t *account) {
  int error = SWP_SUCCESS;
  if (exchange == NULL)
    return swp_problem_build(NULL, rank, procs, problem, account);
  struct swp_exchange whole = *exchange;
  whole.item_bytes = 0; /* the caller's is ignored, also where there are no messages */
  if (exchange->nsends == 0 && exchange->nrecvs == 0) {
    whole.nitems = 0; /* of which none is packed */
    return swp_problem_build(&whole, rank, procs, problem, account);
  }
  TRY(check_fields(nfields, bytes, &whole.item_bytes));
  TRY(swp_problem_build(&whole, rank, procs, problem, account));
  fields->item_bytes = whole.item_bytes;
  TRY(keep_sizes(nfields, bytes, fields, account));
  TRY(pack_sends(fields, problem, account));
  TRY(pack_recvs(exchange, fields, problem, account));
done:
  return error;
}

void swp_fields_free(struct fields *fields) {
  swp_release(fields->bytes);
  swp_release(fields->sent);
  swp_release(fields->send);
  swp_release(fields->recv);
  swp_release(fields->to);
}

/* ---- Executing ---- */

/* Copies a field of consecutive items. Lengths that are known when this is compiled need no call. */
static inline void copy_items(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count,
                              int64_t bytes) {
  for (int64_t i = 0; i < count; i++)
    memcpy(to + i * to_step, from + i * from_step, (size_t)bytes);
}

HOT static void copy_field(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count,
                           int64_t bytes) {
  if (bytes == 8)
    copy_items(to, to_step, from, from_step, count, 8);
  else if (bytes == 4)
    copy_items(to, to_step, from, from_step, count, 4);
  else
    copy_items(to, to_step, from, from_step, count, bytes);
}

HOT int swp_fields_pack(struct fields *fields, const void *const *send, void *const *recv, const char *call) {
  if ((send == NULL && fields->nsent > 0) || (recv == NULL && fields->recv_items > 0))
    return swp_fail(SWP_ERR_ARGUMENT, "%s: the array of buffers to %s is NULL", call,
                    send == NULL && fields->nsent > 0 ? "send" : "receive into");
  char *field = fields->send;
  for (int f = 0; f < fields->count && fields->nsent > 0; field += fields->bytes[f++]) {
    const int64_t bytes = fields->bytes[f];
    char *to = field;
    for (int64_t i = 0; i < fields->nsent; i++) {
      const struct run *run = &fields->sent[i];
      copy_field(to, fields->item_bytes, (const char *)send[f] + run->offset * bytes, bytes, run->bytes,
                 bytes);
      to += run->bytes * fields->item_bytes;
    }
  }
  for (int f = 0; f < fields->count && fields->recv_items > 0; f++)
    fields->to[f] = recv[f];
  return SWP_SUCCESS;
}

HOT static void unpack(const struct fields *fields) {
  const char *field = fields->recv;
  for (int f = 0; f < fields->count && fields->recv_items > 0; field += fields->bytes[f++])
    copy_field((char *)fields->to[f] + fields->first_recv * fields->bytes[f], fields->bytes[f], field,
               fields->item_bytes, fields->recv_items, fields->bytes[f]);
}

HOT int swp_fields_advance(struct swp_plan *plan, bool block, bool *done) {
  int error = plan->spec.method->advance(plan, block, done);
  if (error == SWP_SUCCESS && *done)
    unpack(&exchange_plan_of(plan)->fields);
  return error;
}
