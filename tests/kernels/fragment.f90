! What the documents' fragments of Fortran take as given, on any number of ranks in a ring. A failed call ends the job.
program fragment
  use iso_c_binding, only: c_f_pointer
  use iso_fortran_env, only: int64
  use mpi_f08
  use switchpoint
  implicit none
  type(MPI_Comm) :: comm
  type(swp_plan) :: plan
  type(swp_inbox) :: inbox
  integer :: rank, procs, i, step
  integer, parameter :: steps = 2
  integer(int64), parameter :: nitems = 1, send_offsets(2) = [0, 1], recv_offsets(2) = [0, 1], bytes(1) = [8]
  integer :: send_ranks(1), recv_ranks(1), ranks(1)
  double precision :: send(1), recv(1)
  double precision, target :: pressure(1), velocity(3), halo_pressure(1), halo_velocity(3)
  double precision, pointer :: numbers(:)

  call MPI_Init()
  comm = MPI_COMM_WORLD
  call MPI_Comm_rank(comm, rank)
  call MPI_Comm_size(comm, procs)
  send_ranks = modulo(rank + 1, procs)
  recv_ranks = modulo(rank - 1, procs)
  ranks = send_ranks
  send = rank
  pressure = rank
  velocity = rank
  block
    include 'fragment.inc'
  end block
  call swp_plan_free(plan)
  call MPI_Finalize()
end program
