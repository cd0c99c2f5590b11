/* Transforms of a square, distributed by rows: transform SIDE TIMES. */
#include <fftw3-mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  ptrdiff_t side = atoi(argv[1]), rows, first;
  int rank;
  MPI_Init(&argc, &argv);
  fftw_mpi_init();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  ptrdiff_t size = fftw_mpi_local_size_2d(side, side, MPI_COMM_WORLD, &rows, &first);
  fftw_complex *data = fftw_alloc_complex(size);
  fftw_plan plan = fftw_mpi_plan_dft_2d(side, side, data, data, MPI_COMM_WORLD, FFTW_FORWARD, FFTW_MEASURE);
  for (ptrdiff_t i = 0; i < rows * side; i++)
    data[i][0] = data[i][1] = i == 0;
  double began = MPI_Wtime();
  for (int i = atoi(argv[2]); i > 0; i--)
    fftw_execute(plan);
  if (rank == 0)
    printf("%g s\n", MPI_Wtime() - began);
  fftw_destroy_plan(plan);
  fftw_free(data);
  MPI_Finalize();
}
