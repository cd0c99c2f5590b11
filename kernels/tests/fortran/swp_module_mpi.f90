! The module switchpoint with the module mpi.
program swp_module_mpi
  use mpi
  implicit none
  character(*), parameter :: program_name = 'swp_module_mpi'
  integer :: comm, pair
  include 'module.inc'
end program
