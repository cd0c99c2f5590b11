! Messages around a ring by the module mpi_f08, whose requests are waited for and tested, and collectives of it.
program swp_requests
  use mpi_f08
  implicit none
  type(MPI_Request) :: requests(2)
  type(MPI_Status) :: status, statuses(2)
  integer :: sent, received, rank, procs, from, to, at, done_at(2)
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
  call MPI_Testany(2, requests, at, found, status)
  call MPI_Testsome(2, requests, at, done_at, statuses)
  call MPI_Request_get_status(requests(1), done, status)
  if (.not. (found .and. done .and. at == MPI_UNDEFINED)) call MPI_Abort(MPI_COMM_WORLD, 2)
  call probe_nothing()
  call exchange()
  if (rank == 0) print '(a)', 'all right'
  call MPI_Finalize()

contains

  subroutine probe_nothing()
    type(MPI_Message) :: message
    call MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, message, status)
    call MPI_Improbe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, found, message, status)
    if (.not. found .or. message /= MPI_MESSAGE_NO_PROC) call MPI_Abort(MPI_COMM_WORLD, 3)
  end subroutine

  subroutine exchange()
    type(MPI_Comm) :: ring
    type(MPI_Win) :: window
    type(MPI_Datatype) :: types(2)
    integer :: pair(2), both(2), ones(2), displs(2)
    integer(MPI_ADDRESS_KIND) :: bytes(2)
    ones = 1
    displs = [0, 1]
    bytes = [0, 4]
    types = MPI_INTEGER
    pair = rank
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, [from, to], ones, 2, [from, to], ones, &
      MPI_INFO_NULL, .false., ring)
    call MPI_Neighbor_allgather(sent, 1, MPI_INTEGER, both, 1, MPI_INTEGER, ring)
    call expect(both)
    call MPI_Neighbor_allgatherv(sent, 1, MPI_INTEGER, both, ones, displs, MPI_INTEGER, ring)
    call expect(both)
    call MPI_Neighbor_alltoall(pair, 1, MPI_INTEGER, both, 1, MPI_INTEGER, ring)
    call expect(both)
    call MPI_Neighbor_alltoallv(pair, ones, displs, MPI_INTEGER, both, ones, displs, MPI_INTEGER, ring)
    call expect(both)
    call MPI_Neighbor_alltoallw(pair, ones, bytes, types, both, ones, bytes, types, ring)
    call expect(both)
    call MPI_Win_create(pair, 8_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window)
    call MPI_Win_fence(0, window)
    call MPI_Win_free(window)
    call MPI_Comm_free(ring)
  end subroutine

  subroutine expect(both)
    integer, intent(inout) :: both(2)
    if (any(both /= [from, to])) call MPI_Abort(MPI_COMM_WORLD, 4)
    both = -1
  end subroutine
end program
