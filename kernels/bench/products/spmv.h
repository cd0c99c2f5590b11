/*
 * The parallel product of a sparse matrix with one or several vectors, over any plan of the exchange that
 * delivers other ranks' elements: algorithm 3 of Bienz, Gropp, Olson, "Node aware sparse matrix-vector
 * multiplication", J. Parallel Distrib. Comput. 130 (2019).
 */
#ifndef PRODUCTS_SPMV_H
#define PRODUCTS_SPMV_H

#include "csr.h"
#include "matrix.h"

#include <switchpoint.h>

/* A rank's rows, split by the location of the vector elements that they are multiplied with. */
struct spmv {
  struct csr on_process; /* columns: this rank's elements */
  struct csr on_node;    /* columns: elements received, from ranks of the same node */
  struct csr off_node;   /* columns: elements received, from others */
};

/*
 * Splits this rank's rows. recvs and columns list the elements received (struct halo), near[i] says whether
 * its i-th rank is on this rank's node. Local. 0, or -1 with failure_text() set: more rows, or elements to
 * receive, than 32 bits can number. spmv_free must be called in both cases.
 */
int spmv_create(const struct matrix *matrix, const struct lists *recvs, const int64_t *columns,
                const bool *near, struct spmv *spmv);
void spmv_free(struct spmv *spmv);

/*
 * y = A x. x and y hold a rank's own elements, each of `vectors` adjacent doubles; halo receives those of the
 * others, by the plan, whose item is one such element. The exchange runs while the on-process block is
 * multiplied; a plan does not report which of its data have arrived, so the other blocks follow when all
 * have. Collective. Returns a code of enum swp_error.
 */
int spmv_multiply(const struct spmv *spmv, swp_plan *plan, int vectors, const double *x, double *halo,
                  double *y);

/* The same without communication, with the elements in halo. Local. */
void spmv_multiply_local(const struct spmv *spmv, int vectors, const double *x, const double *halo,
                         double *y);

#endif
