/* Lists of numbers between ranks that know each other, at planning. */
#ifndef SWP_MAIL_H
#define SWP_MAIL_H

#include "kinds.h"

/* A growing list of numbers. If memory runs out, the list is invalid, and swp_mail_exchange reports it. */
struct numbers {
  struct array array; /* of int64_t */
  bool spoilt;
};

void swp_numbers_add(struct numbers *numbers, int64_t number);
void swp_numbers_add_all(struct numbers *numbers, int count, const int64_t *added);

/* The numbers themselves, until one is added. */
int64_t *swp_numbers(const struct numbers *numbers);

/* One partner. */
struct box {
  int rank;
  bool sends, receives; /* whether this rank sends to it, and receives from it */
  struct numbers out;   /* empty lists are allowed */
  int64_t *in, nin;
  int64_t nread; /* how many of them were read, by a reader that goes on later */
};

struct mail {
  int nboxes;
  struct box *boxes;
  MPI_Request *requests;
};

/* Boxes of this many partners, zeroed. False: no memory for them. swp_mail_free must be called in any
   case. */
bool swp_mail_begin(struct mail *mail, int nboxes);

/*
 * Fills `in` of all boxes. Collective over the plan's ranks, each with its own partners; a partner may be the
 * rank itself. `error` is an earlier error of this rank: it is agreed on, and nothing is sent. Errors, agreed
 * but for SWP_ERR_MPI: that, SWP_ERR_MEMORY, SWP_ERR_TOO_LARGE.
 */
int swp_mail_exchange(struct swp_plan *plan, struct mail *mail, int error);

void swp_mail_free(struct mail *mail);

#endif
