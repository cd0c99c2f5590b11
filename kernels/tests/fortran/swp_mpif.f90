! Collectives by mpif.h.
program swp_mpif
  implicit none
  include 'mpif.h'
  character(*), parameter :: program_name = 'swp_mpif'
  integer :: comm, info
  integer, allocatable :: types(:)
  include 'collectives.inc'
end program
