/* Fourier transforms of rows, by FFTW where pkg-config finds it. */
#ifndef STUDIES_FFT_H
#define STUDIES_FFT_H

#include <stdbool.h>
#include <stdint.h>

struct fft;

/* Returns whether transforms are available. */
bool fft_is_there(void);

/* Floating-point operations of a transform of n elements, by the usual count: 5 n log2 n. */
double fft_flops(int64_t n);

/* The largest n up to `most` whose transform has no more flops and is a fast one. */
int64_t fft_length(int64_t most, double flops);

/*
 * A plan for n elements in place, at `row` and all addresses that differ from it by multiples of row_bytes.
 * The same on every rank, as it is not found by measuring. Only if transforms are available.
 */
struct fft *fft_create(int64_t n, double *row, int64_t row_bytes);
void fft_free(struct fft *fft);
void fft_execute(const struct fft *fft, double *row);

#endif
