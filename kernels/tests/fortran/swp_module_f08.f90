! The module switchpoint with mpi_f08.
program swp_module_f08
  use mpi_f08
  implicit none
  character(*), parameter :: program_name = 'swp_module_f08'
  type(MPI_Comm) :: comm
  type(MPI_Datatype) :: pair
  include 'module.inc'
end program
