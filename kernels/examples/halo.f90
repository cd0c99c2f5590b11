! An application in miniature, as halo.c: every rank exchanges a halo with its nearest neighbours on a ring, and lets
! Switchpoint choose the method for each message size.
!
!   SWITCHPOINT_TABLE=switchpoint.table mpiexec -n 8 swp_example_halo_fortran 8 1024 65536
!   SWITCHPOINT_USER_TABLE=halo.table mpiexec -n 8 swp_example_halo_fortran measure 8 1024 65536
program halo
  use, intrinsic :: iso_fortran_env, only: error_unit, int8, int64
  use mpi_f08
  use switchpoint
  implicit none
  integer, parameter :: REACH = 3, STEPS = 10
  integer :: rank, procs, i, first, status
  integer(int64) :: bytes
  integer, allocatable :: neighbors(:)
  character(:), allocatable :: word
  type(swp_hints) :: hints

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, procs)
  call find_neighbors()
  first = 1
  if (argument(1) == 'measure') then
    hints%flags = SWP_MEASURE
    hints%budget_s = 2
    first = 2
  end if
  if (command_argument_count() < first .and. rank == 0) &
    print '(a)', 'usage: swp_example_halo_fortran [measure] BYTES...: the sizes of a message to each neighbour'
  do i = first, command_argument_count()
    word = argument(i)
    read (word, *, iostat=status) bytes
    if (status /= 0 .or. bytes < 1 .or. bytes > 2_int64**30) then
      if (rank == 0) write (error_unit, '(3a)') "halo: '", word, "' is not a number of bytes from 1 to 2^30"
      call MPI_Abort(MPI_COMM_WORLD, 1)
    end if
    call exchange_halo()
  end do
  call MPI_Finalize()

contains

  function argument(number) result(text)
    integer, intent(in) :: number
    character(:), allocatable :: text
    integer :: length
    call get_command_argument(number, length=length)
    allocate(character(length) :: text)
    call get_command_argument(number, text)
  end function

  ! Up to three neighbours on either side, each once however few ranks there are.
  subroutine find_neighbors()
    integer :: distance
    allocate(neighbors(0))
    do distance = 1, min(REACH, procs / 2)
      neighbors = [neighbors, modulo(rank + distance, procs)]
      if (2 * distance < procs) neighbors = [neighbors, modulo(rank - distance, procs)]
    end do
  end subroutine

  ! Without ierror, an error of Switchpoint ends the job with its message.
  subroutine exchange_halo()
    integer(int64) :: offsets(size(neighbors) + 1)
    integer(int8), allocatable :: send(:), recv(:,:)
    type(swp_plan) :: plan
    integer :: i, step
    offsets = [(i * bytes, i = 0, size(neighbors))]
    call swp_exchange_plan(MPI_COMM_WORLD, 1_int64, offsets(size(offsets)), neighbors, offsets, neighbors, offsets, plan, &
                           hints=hints)
    if (rank == 0) print '(i0, a, i0, 2a)', bytes, ' bytes to each of ', size(neighbors), ' neighbours: ', &
        swp_plan_describe(plan)

    allocate(send(bytes * size(neighbors)), recv(bytes, size(neighbors)))
    do step = 0, STEPS - 1
      send = int(modulo(rank + step, 128), int8)
      call swp_exchange_execute(plan, send, recv)
      do i = 1, size(neighbors)
        if (any(recv(:, i) /= modulo(neighbors(i) + step, 128))) then
          write (error_unit, '(2(a, i0))') 'halo: rank ', rank, ' got a wrong byte from rank ', neighbors(i)
          call MPI_Abort(MPI_COMM_WORLD, 1)
        end if
      end do
    end do
    call swp_plan_free(plan)
  end subroutine
end program
