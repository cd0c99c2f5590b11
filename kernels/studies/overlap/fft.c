#include "fft.h"

#include "team.h"

#include <math.h>
#include <stdlib.h>

double fft_flops(int64_t n) {
  return n > 1 ? 5 * (double)n * log2((double)n) : 0;
}

/* Returns whether the only prime factors are 2, 3, 5 and 7, for which FFTW is fast. */
static bool is_smooth(int64_t n) {
  static const int factors[] = {2, 3, 5, 7};
  for (int i = 0; i < 4; i++)
    while (n % factors[i] == 0)
      n /= factors[i];
  return n == 1;
}

int64_t fft_length(int64_t most, double flops) {
  if (flops >= fft_flops(most))
    return most;
  int64_t low = 1;
  for (int64_t high = most; high - low > 1;) {
    const int64_t middle = low + (high - low) / 2;
    if (fft_flops(middle) <= flops)
      low = middle;
    else
      high = middle;
  }
  while (!is_smooth(low))
    low--;
  return low;
}

#ifdef OVERLAP_FFTW

#include <fftw3.h>

struct fft {
  fftw_plan plan;
};

bool fft_is_there(void) {
  return true;
}

struct fft *fft_create(int64_t n, double *row, int64_t row_bytes) {
  const bool alike = fftw_alignment_of(row) == fftw_alignment_of(row + row_bytes / (int64_t)sizeof *row);
  const unsigned flags = FFTW_ESTIMATE | (alike ? 0 : FFTW_UNALIGNED);
  struct fft *fft = allocate(sizeof *fft);
  fft->plan = fftw_plan_dft_1d((int)n, (fftw_complex *)row, (fftw_complex *)row, FFTW_FORWARD, flags);
  if (!fft->plan)
    team_fail("FFTW has no transform of %lld elements", (long long)n);
  return fft;
}

void fft_free(struct fft *fft) {
  if (fft)
    fftw_destroy_plan(fft->plan);
  free(fft);
}

void fft_execute(const struct fft *fft, double *row) {
  fftw_execute_dft(fft->plan, (fftw_complex *)row, (fftw_complex *)row);
}

#else

bool fft_is_there(void) {
  return false;
}

struct fft *fft_create(int64_t n, double *row, int64_t row_bytes) {
  (void)n, (void)row, (void)row_bytes;
  return NULL;
}

void fft_free(struct fft *fft) {
  (void)fft;
}

void fft_execute(const struct fft *fft, double *row) {
  (void)fft, (void)row;
}

#endif
