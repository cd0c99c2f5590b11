! Collectives by the module mpi_f08.
program swp_f08
  use mpi_f08
  implicit none
  character(*), parameter :: program_name = 'swp_f08'
  type(MPI_Comm) :: comm
  type(MPI_Info) :: info
  type(MPI_Datatype), allocatable :: types(:)
  include 'collectives.inc'
end program
