! Messages around a ring by the module mpi_f08, whose requests are waited for and tested.
program swp_requests
  use mpi_f08
  implicit none
  type(MPI_Request) :: requests(2)
  type(MPI_Status) :: status
  integer :: sent, received, rank, procs, from, to
  logical :: done, found
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, procs)
  from = mod(rank + procs - 1, procs)
  to = mod(rank + 1, procs)
  sent = rank
  call MPI_Isend(sent, 1, MPI_INTEGER, to, 0, MPI_COMM_WORLD, requests(1))
  call MPI_Probe(from, 0, MPI_COMM_WORLD, status)
  call MPI_Iprobe(from, 0, MPI_COMM_WORLD, found, MPI_STATUS_IGNORE)
  call MPI_Irecv(received, 1, MPI_INTEGER, from, 0, MPI_COMM_WORLD, requests(2))
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  call MPI_Ibarrier(MPI_COMM_WORLD, requests(1))
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
  call MPI_Test(requests(1), done, MPI_STATUS_IGNORE)
  call MPI_Testall(2, requests, found, MPI_STATUSES_IGNORE)
  if (.not. (found .and. done .and. status%MPI_SOURCE == from .and. received == from)) &
    call MPI_Abort(MPI_COMM_WORLD, 1)
  if (rank == 0) print '(a)', 'all right'
  call MPI_Finalize()
end program
