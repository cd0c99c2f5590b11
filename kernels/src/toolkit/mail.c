/* Lists of numbers between ranks that know each other: first the counts, then the numbers. */
#include "mail.h"

#include <limits.h>

enum { MAIL_TAG = 0 };

void swp_numbers_add(struct numbers *numbers, int64_t number) {
  int64_t *added = swp_array_add(&numbers->array, sizeof *added, NULL);
  if (added != NULL)
    *added = number;
  else
    numbers->spoilt = true;
}

void swp_numbers_add_all(struct numbers *numbers, int count, const int64_t *added) {
  for (int i = 0; i < count; i++)
    swp_numbers_add(numbers, added[i]);
}

int64_t *swp_numbers(const struct numbers *numbers) {
  return numbers->array.items;
}

bool swp_mail_begin(struct mail *mail, int nboxes) {
  mail->nboxes = nboxes;
  mail->boxes = swp_allocate((size_t)nboxes, sizeof *mail->boxes, NULL);
  mail->requests = swp_allocate(2 * (size_t)nboxes, sizeof *mail->requests, NULL);
  return mail->boxes != NULL;
}

void swp_mail_free(struct mail *mail) {
  for (int i = 0; mail->boxes != NULL && i < mail->nboxes; i++) {
    swp_release(mail->boxes[i].out.array.items);
    swp_release(mail->boxes[i].in);
  }
  swp_release(mail->boxes);
  swp_release(mail->requests);
}

static int check_out(const struct swp_plan *plan, const struct mail *mail) {
  if (mail->boxes == NULL || mail->requests == NULL)
    return swp_plan_no_memory(plan);
  for (int i = 0; i < mail->nboxes; i++) {
    if (mail->boxes[i].out.spoilt)
      return swp_plan_no_memory(plan);
    if (mail->boxes[i].out.array.count > INT_MAX)
      return swp_fail(SWP_ERR_TOO_LARGE, "%s: the plan needs messages of over 2^31 numbers", plan->spec.text);
  }
  return SWP_SUCCESS;
}

static int make_room(const struct swp_plan *plan, struct mail *mail) {
  for (int i = 0; i < mail->nboxes; i++) {
    struct box *box = &mail->boxes[i];
    if (box->nin > 0 && (box->in = swp_allocate((size_t)box->nin, sizeof *box->in, NULL)) == NULL)
      return swp_plan_no_memory(plan);
  }
  return SWP_SUCCESS;
}

static int exchange_counts(struct swp_plan *plan, struct mail *mail) {
  int error = SWP_SUCCESS, count = 0;
  bool done;
  for (int i = 0; i < mail->nboxes; i++) {
    struct box *box = &mail->boxes[i];
    if (box->receives)
      MPI_TRY(
          MPI_Irecv(&box->nin, 1, MPI_INT64_T, box->rank, MAIL_TAG, plan->comm, &mail->requests[count++]));
  }
  for (int i = 0; i < mail->nboxes; i++) {
    struct box *box = &mail->boxes[i];
    if (box->sends)
      MPI_TRY(MPI_Isend(&box->out.array.count, 1, MPI_INT64_T, box->rank, MAIL_TAG, plan->comm,
                        &mail->requests[count++]));
  }
  TRY(swp_progress(plan, count, mail->requests, true, &done));
done:
  return error;
}

static int exchange_numbers(struct swp_plan *plan, struct mail *mail) {
  int error = SWP_SUCCESS, count = 0;
  bool done;
  for (int i = 0; i < mail->nboxes; i++) {
    struct box *box = &mail->boxes[i];
    if (box->nin > 0)
      MPI_TRY(MPI_Irecv(box->in, (int)box->nin, MPI_INT64_T, box->rank, MAIL_TAG, plan->comm,
                        &mail->requests[count++]));
  }
  for (int i = 0; i < mail->nboxes; i++) {
    struct box *box = &mail->boxes[i];
    if (box->sends && box->out.array.count > 0)
      MPI_TRY(MPI_Isend(swp_numbers(&box->out), (int)box->out.array.count, MPI_INT64_T, box->rank, MAIL_TAG,
                        plan->comm, &mail->requests[count++]));
  }
  TRY(swp_progress(plan, count, mail->requests, true, &done));
done:
  return error;
}

int swp_mail_exchange(struct swp_plan *plan, struct mail *mail, int error) {
  TRY(swp_agree(plan->comm, error != SWP_SUCCESS ? error : check_out(plan, mail)));
  TRY(exchange_counts(plan, mail));
  TRY(swp_agree(plan->comm, make_room(plan, mail)));
  TRY(exchange_numbers(plan, mail));
done:
  return error;
}
