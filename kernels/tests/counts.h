/* Parts of swp_counts.c. All are collective on MPI_COMM_WORLD, on the nodes that plans of the oracle see. */
#ifndef COUNTS_H
#define COUNTS_H

enum { MOST_DIMS = 8 };

/* Of a grid of ranks. */
struct sizes {
  int ndims, k[MOST_DIMS];
};

/* Coordinates of `at` replaced by those of `destination` in the first `stages` dimensions. */
int forwarded(const struct sizes *sizes, int at, int destination, int stages);

/* What discoveries send and put: by all methods but stfw, and by stfw on a grid. */
void check_discoveries(void);
void check_discovery_on_grid(const char *method, const struct sizes *sizes);

#endif
