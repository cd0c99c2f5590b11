! Collectives by the module mpi.
program swp_use_mpi
  use mpi
  implicit none
  character(*), parameter :: program_name = 'swp_use_mpi'
  integer :: comm, info
  integer, allocatable :: types(:)
  include 'collectives.inc'
end program
