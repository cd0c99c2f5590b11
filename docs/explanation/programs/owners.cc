// Each rank asks who owns 20 indices of others, again and again: the dictionary of deal.II, and its consensus.
// Usage: owners REPETITIONS
#include <deal.II/base/index_set.h>
#include <deal.II/base/mpi.h>

#include <cstdlib>
#include <iostream>

int main(int argc, char **argv) {
  dealii::Utilities::MPI::MPI_InitFinalize mpi(argc, argv, 1);
  const MPI_Comm comm = MPI_COMM_WORLD;
  const unsigned int rank = dealii::Utilities::MPI::this_mpi_process(comm);
  const unsigned int procs = dealii::Utilities::MPI::n_mpi_processes(comm);
  const unsigned int each = 1000;
  dealii::IndexSet owned(each * procs), asked(each * procs);
  owned.add_range(each * rank, each * (rank + 1));
  for (unsigned int i = 0; i < 20; i++)
    asked.add_index((each * rank + each + 7919 * i) % (each * procs));
  unsigned long sum = 0;
  for (int i = 0; i < std::atoi(argv[1]); i++)
    for (const unsigned int owner : dealii::Utilities::MPI::compute_index_owner(owned, asked, comm))
      sum += owner;
  if (dealii::Utilities::MPI::sum(sum, comm) > 0 && rank == 0)
    std::cout << "done\n";
}
