/* Poisson's equation on a square by hypre's conjugate gradients: laplace SIDE TIMES. */
#include <HYPRE_struct_ls.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  int rank, procs, side = atoi(argv[1]), iterations = 0;
  int offsets[5][2] = {{0, 0}, {-1, 0}, {1, 0}, {0, -1}, {0, 1}}, entries[5] = {0, 1, 2, 3, 4};
  HYPRE_StructGrid grid;
  HYPRE_StructStencil stencil;
  HYPRE_StructMatrix matrix;
  HYPRE_StructVector right, found;
  HYPRE_StructSolver solver;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &procs);
  int low[2] = {rank * side / procs, 0}, high[2] = {(rank + 1) * side / procs - 1, side - 1};
  int points = (high[0] - low[0] + 1) * side;
  double *values = calloc(5 * (size_t)points, sizeof *values);
  HYPRE_StructGridCreate(MPI_COMM_WORLD, 2, &grid);
  HYPRE_StructGridSetExtents(grid, low, high);
  HYPRE_StructGridAssemble(grid);
  HYPRE_StructStencilCreate(2, 5, &stencil);
  for (int i = 0; i < 5; i++)
    HYPRE_StructStencilSetElement(stencil, i, offsets[i]);
  HYPRE_StructMatrixCreate(MPI_COMM_WORLD, grid, stencil, &matrix);
  HYPRE_StructMatrixInitialize(matrix);
  for (int point = 0; point < points; point++)
    for (int i = 0; i < 5; i++)
      values[5 * point + i] = i == 0 ? 4 : -1;
  HYPRE_StructMatrixSetBoxValues(matrix, low, high, 5, entries, values);
  HYPRE_StructMatrixAssemble(matrix);
  HYPRE_StructVectorCreate(MPI_COMM_WORLD, grid, &right);
  HYPRE_StructVectorInitialize(right);
  HYPRE_StructVectorSetConstantValues(right, 1);
  HYPRE_StructVectorAssemble(right);
  HYPRE_StructVectorCreate(MPI_COMM_WORLD, grid, &found);
  HYPRE_StructVectorInitialize(found);
  double began = MPI_Wtime();
  for (int times = atoi(argv[2]); times > 0; times--) {
    HYPRE_StructVectorSetConstantValues(found, 0);
    HYPRE_StructVectorAssemble(found);
    HYPRE_StructPCGCreate(MPI_COMM_WORLD, &solver);
    HYPRE_StructPCGSetTol(solver, 1e-8);
    HYPRE_StructPCGSetMaxIter(solver, 10000);
    HYPRE_StructPCGSetTwoNorm(solver, 1);
    HYPRE_StructPCGSetPrecond(solver, HYPRE_StructDiagScale, HYPRE_StructDiagScaleSetup, NULL);
    HYPRE_StructPCGSetup(solver, matrix, right, found);
    HYPRE_StructPCGSolve(solver, matrix, right, found);
    HYPRE_StructPCGGetNumIterations(solver, &iterations);
    HYPRE_StructPCGDestroy(solver);
  }
  if (rank == 0)
    printf("%d iterations, %g s\n", iterations, MPI_Wtime() - began);
  MPI_Finalize();
}
