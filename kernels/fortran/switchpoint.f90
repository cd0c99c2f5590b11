! switchpoint.h for Fortran: the same names, with the communicators, types and operations of mpi_f08 or of the module
! mpi. Ranks, items, offsets and displacements count from 0, as in MPI.
!
! Every subroutine ends with the optional ierror, which becomes SWP_SUCCESS or one of the codes below;
! swp_error_message() then says what was wrong. Without ierror, an error prints that message and ends the job.
! switchpoint.h says what each procedure does, which calls are collective, and which errors there are.
module switchpoint
  use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_f_pointer, c_int, c_int64_t, c_intptr_t, c_loc, c_null_char, &
      c_null_ptr, c_ptr, c_size_t
  use mpi_f08, only: MPI_Comm, MPI_Datatype, MPI_Op
  use switchpoint_bindings
  implicit none
  private

  public :: swp_hints, swp_inbox, swp_plan, swp_statistics, swp_table
  public :: swp_error_message, swp_error_mpi, swp_operation_name, swp_strerror, swp_version
  public :: swp_table_free, swp_table_has, swp_table_read, swp_table_rules
  public :: swp_exchange_buffer, swp_exchange_execute, swp_exchange_plan, swp_exchange_start, swp_test, swp_wait
  public :: swp_fields_execute, swp_fields_plan, swp_fields_start
  public :: swp_discovery_execute, swp_discovery_plan, swp_inbox_free
  public :: swp_collective_execute, swp_collective_plan, swp_collective_set
  public :: swp_plan_describe, swp_plan_free, swp_plan_method, swp_plan_passed, swp_plan_stage, swp_plan_statistics

  ! enum swp_error
  enum, bind(C)
    enumerator :: SWP_SUCCESS = 0, SWP_ERR_ARGUMENT, SWP_ERR_MEMORY, SWP_ERR_MPI, SWP_ERR_METHOD, SWP_ERR_NOT_APPLICABLE, &
        SWP_ERR_MISMATCH, SWP_ERR_TABLE, SWP_ERR_TOO_LARGE, SWP_ERR_STATE, SWP_ERR_POISONED
  end enum
  public :: SWP_SUCCESS, SWP_ERR_ARGUMENT, SWP_ERR_MEMORY, SWP_ERR_MPI, SWP_ERR_METHOD, SWP_ERR_NOT_APPLICABLE, &
      SWP_ERR_MISMATCH, SWP_ERR_TABLE, SWP_ERR_TOO_LARGE, SWP_ERR_STATE, SWP_ERR_POISONED

  ! enum swp_operation
  enum, bind(C)
    enumerator :: SWP_EXCHANGE = 0, SWP_DISCOVERY, SWP_BCAST, SWP_GATHER, SWP_SCATTER, SWP_REDUCE, SWP_ALLREDUCE, &
        SWP_ALLGATHER, SWP_ALLGATHERV, SWP_ALLTOALL, SWP_REDUCE_SCATTER_BLOCK, SWP_ALLTOALLV, SWP_BARRIER
  end enum
  public :: SWP_EXCHANGE, SWP_DISCOVERY, SWP_BCAST, SWP_GATHER, SWP_SCATTER, SWP_REDUCE, SWP_ALLREDUCE, SWP_ALLGATHER, &
      SWP_ALLGATHERV, SWP_ALLTOALL, SWP_REDUCE_SCATTER_BLOCK, SWP_ALLTOALLV, SWP_BARRIER

  ! Flags of hints, and enum swp_placement
  integer(c_int), parameter, public :: SWP_ESTIMATE = 0, SWP_SAME_COMM = 1, SWP_MEASURE = 2
  integer(c_int), parameter, public :: SWP_PLACEMENT_BLOCK = 0, SWP_PLACEMENT_CYCLIC = 1

  type :: swp_plan
    private
    type(c_ptr) :: handle = c_null_ptr
    integer :: nfields = 0 ! 0: it is not for fields
  end type

  ! The messages that a discovery delivered, by increasing source: data(i) is the address of the bytes(i) bytes from
  ! sources(i), for c_f_pointer. All is valid until the inbox is used again or freed.
  type :: swp_inbox
    integer(c_int) :: nsources = 0
    integer(c_int), pointer :: sources(:) => null()
    integer(c_int64_t), pointer :: bytes(:) => null()
    type(c_ptr), pointer :: data(:) => null()
    type(c_ptr), private :: handle = c_null_ptr
  end type

  ! Reads a table on rank 0: swp_table_read(comm, path, table, ierror).
  interface swp_table_read
    module procedure table_read_f08, table_read_mpi
  end interface

  ! Plans an exchange: swp_exchange_plan(comm, item_bytes, nitems, send_ranks, send_offsets, recv_ranks, recv_offsets,
  ! plan, send_items, method, hints, ierror). Without a method it selects one.
  interface swp_exchange_plan
    module procedure exchange_plan_f08, exchange_plan_mpi
  end interface

  ! Plans an exchange of fields, of whose items each has so many bytes: swp_fields_plan(comm, field_bytes, nitems,
  ! send_ranks, send_offsets, recv_ranks, recv_offsets, plan, send_items, method, hints, ierror).
  interface swp_fields_plan
    module procedure fields_plan_f08, fields_plan_mpi
  end interface

  ! Plans a discovery: swp_discovery_plan(comm, plan, method, hints, ierror).
  interface swp_discovery_plan
    module procedure discovery_plan_f08, discovery_plan_mpi
  end interface

  ! Plans a collective: swp_collective_plan(comm, operation, recv_type, plan, send_count, send_type, recv_count,
  ! recv_counts, displs, op, root, method, hints, send_counts, send_displs, ierror). What the operation does not read
  ! may be left out.
  interface swp_collective_plan
    module procedure collective_plan_f08, collective_plan_mpi
  end interface

  ! Gives the plan another call: swp_collective_set(plan, operation, recv_type, send_count, send_type, recv_count,
  ! recv_counts, displs, op, root, send_counts, send_displs, ierror).
  interface swp_collective_set
    module procedure collective_set_f08, collective_set_mpi
  end interface

  integer, parameter :: DESCRIPTION_LENGTH = 4096
  integer, parameter :: DISAGREES = -1 ! instead of a number of sends

contains

  ! ---- Version and errors ----

  function swp_version() result(text)
    character(:), allocatable :: text
    text = text_at(c_version())
  end function

  function swp_strerror(error) result(text)
    integer, intent(in) :: error
    character(:), allocatable :: text
    text = text_at(c_strerror(error))
  end function

  function swp_error_message() result(text)
    character(:), allocatable :: text
    text = text_at(c_message())
  end function

  integer function swp_error_mpi()
    swp_error_mpi = c_error_mpi()
  end function

  ! Empty if no operation has this number.
  function swp_operation_name(operation) result(text)
    integer, intent(in) :: operation
    character(:), allocatable :: text
    text = text_at(c_operation_name(operation))
  end function

  ! ---- Tables ----

  subroutine table_read_f08(comm, path, table, ierror)
    type(MPI_Comm), intent(in) :: comm
    character(*), intent(in) :: path
    type(swp_table), intent(out) :: table
    integer, intent(out), optional :: ierror
    call table_read_mpi(comm%MPI_VAL, path, table, ierror)
  end subroutine

  subroutine table_read_mpi(comm, path, table, ierror)
    integer, intent(in) :: comm
    character(*), intent(in) :: path
    type(swp_table), intent(out) :: table
    integer, intent(out), optional :: ierror
    call conclude(c_table_read(comm, trim(path) // c_null_char, table), ierror)
  end subroutine

  integer function swp_table_rules(table)
    type(swp_table), intent(in) :: table
    swp_table_rules = c_table_rules(table%handle)
  end function

  logical function swp_table_has(table, operation)
    type(swp_table), intent(in) :: table
    integer, intent(in) :: operation
    swp_table_has = c_table_has(table%handle, operation) /= 0
  end function

  subroutine swp_table_free(table)
    type(swp_table), intent(inout) :: table
    call c_table_free(table)
  end subroutine

  ! ---- Exchanges ----

  subroutine exchange_plan_f08(comm, item_bytes, nitems, send_ranks, send_offsets, recv_ranks, recv_offsets, plan, &
                               send_items, method, hints, ierror)
    type(MPI_Comm), intent(in) :: comm
    integer(c_int64_t), intent(in) :: item_bytes, nitems
    integer, intent(in), contiguous :: send_ranks(:), recv_ranks(:)
    integer(c_int64_t), intent(in), contiguous :: send_offsets(:), recv_offsets(:)
    type(swp_plan), intent(out) :: plan
    integer(c_int64_t), intent(in), contiguous, optional :: send_items(:)
    character(*), intent(in), optional :: method
    type(swp_hints), intent(in), optional :: hints
    integer, intent(out), optional :: ierror
    call exchange_plan_mpi(comm%MPI_VAL, item_bytes, nitems, send_ranks, send_offsets, recv_ranks, recv_offsets, plan, &
                           send_items, method, hints, ierror)
  end subroutine

  subroutine exchange_plan_mpi(comm, item_bytes, nitems, send_ranks, send_offsets, recv_ranks, recv_offsets, plan, &
                               send_items, method, hints, ierror)
    integer, intent(in) :: comm
    integer(c_int64_t), intent(in) :: item_bytes, nitems
    integer, intent(in), contiguous, target :: send_ranks(:), recv_ranks(:)
    integer(c_int64_t), intent(in), contiguous, target :: send_offsets(:), recv_offsets(:)
    type(swp_plan), intent(out) :: plan
    integer(c_int64_t), intent(in), contiguous, optional, target :: send_items(:)
    character(*), intent(in), optional :: method
    type(swp_hints), intent(in), optional :: hints
    integer, intent(out), optional :: ierror
    type(exchange_problem) :: problem
    problem = exchange(item_bytes, nitems, send_ranks, send_offsets, recv_ranks, recv_offsets, send_items)
    call conclude_plan(c_exchange_plan(comm, problem, spec_of(method), hints, plan%handle), problem, 'swp_exchange_plan', &
                       ierror)
  end subroutine

  ! A problem of which the arrays do not agree is an error on all ranks.
  type(exchange_problem) function exchange(item_bytes, nitems, send_ranks, send_offsets, recv_ranks, recv_offsets, &
                                           send_items) result(problem)
    integer(c_int64_t), intent(in) :: item_bytes, nitems
    integer, intent(in), contiguous, target :: send_ranks(:), recv_ranks(:)
    integer(c_int64_t), intent(in), contiguous, target :: send_offsets(:), recv_offsets(:)
    integer(c_int64_t), intent(in), contiguous, optional, target :: send_items(:)
    logical :: agrees
    problem = exchange_problem(item_bytes, nitems, size(send_ranks), c_loc(send_ranks), c_loc(send_offsets), c_null_ptr, &
                               size(recv_ranks), c_loc(recv_ranks), c_loc(recv_offsets))
    agrees = has_offsets(send_ranks, send_offsets) .and. has_offsets(recv_ranks, recv_offsets)
    if (present(send_items)) then
      problem%send_items = c_loc(send_items)
      if (agrees .and. size(send_ranks) > 0) agrees = size(send_items) >= send_offsets(size(send_offsets))
    end if
    if (.not. agrees) problem%nsends = DISAGREES
  end function

  subroutine conclude_plan(error, problem, name, ierror)
    integer, intent(in) :: error
    type(exchange_problem), intent(in) :: problem
    character(*), intent(in) :: name
    integer, intent(out), optional :: ierror
    if (problem%nsends /= DISAGREES .or. error /= SWP_ERR_ARGUMENT) then
      call conclude(error, ierror)
    else
      call refuse(name // ': offsets must have one element more than ranks, and send_items all that they name', ierror)
    end if
  end subroutine

  ! Memory for what the next execution sends: c_f_pointer makes an array of it. With `lent` receivers may still read it
  ! after the execution: do not write it until this returns it again.
  subroutine swp_exchange_buffer(plan, send, ierror)
    type(swp_plan), intent(in) :: plan
    type(c_ptr), intent(out) :: send
    integer, intent(out), optional :: ierror
    call conclude(c_exchange_buffer(plan%handle, send), ierror)
  end subroutine

  subroutine swp_exchange_execute(plan, send, recv, ierror)
    type(swp_plan), intent(in) :: plan
    type(*), dimension(..), intent(in), target :: send
    type(*), dimension(..), target :: recv
    integer, intent(out), optional :: ierror
    if (is_dense(send) .and. is_dense(recv)) then
      call conclude(c_exchange_execute(plan%handle, c_loc(send), c_loc(recv)), ierror)
    else
      call refuse('swp_exchange_execute: send and recv must be contiguous', ierror)
    end if
  end subroutine

  ! The buffers must have the attribute asynchronous, as those of nonblocking MPI calls. Never give it a component of an
  ! array (cells%halo, numbers%re), or a pointer to one: gfortran passes a copy without a sign of it, which is gone
  ! before the exchange ends. May wait until receivers have completed the execution before the last.
  subroutine swp_exchange_start(plan, send, recv, ierror)
    type(swp_plan), intent(in) :: plan
    type(*), dimension(..), intent(in), asynchronous, target :: send
    type(*), dimension(..), asynchronous, target :: recv
    integer, intent(out), optional :: ierror
    if (is_dense(send) .and. is_dense(recv)) then
      call conclude(c_exchange_start(plan%handle, c_loc(send), c_loc(recv)), ierror)
    else
      call refuse('swp_exchange_start: send and recv must be contiguous', ierror)
    end if
  end subroutine

  subroutine fields_plan_f08(comm, field_bytes, nitems, send_ranks, send_offsets, recv_ranks, recv_offsets, plan, &
                             send_items, method, hints, ierror)
    type(MPI_Comm), intent(in) :: comm
    integer(c_int64_t), intent(in) :: field_bytes(:), nitems
    integer, intent(in), contiguous :: send_ranks(:), recv_ranks(:)
    integer(c_int64_t), intent(in), contiguous :: send_offsets(:), recv_offsets(:)
    type(swp_plan), intent(out) :: plan
    integer(c_int64_t), intent(in), contiguous, optional :: send_items(:)
    character(*), intent(in), optional :: method
    type(swp_hints), intent(in), optional :: hints
    integer, intent(out), optional :: ierror
    call fields_plan_mpi(comm%MPI_VAL, field_bytes, nitems, send_ranks, send_offsets, recv_ranks, recv_offsets, plan, &
                         send_items, method, hints, ierror)
  end subroutine

  subroutine fields_plan_mpi(comm, field_bytes, nitems, send_ranks, send_offsets, recv_ranks, recv_offsets, plan, &
                             send_items, method, hints, ierror)
    integer, intent(in) :: comm
    integer(c_int64_t), intent(in) :: field_bytes(:), nitems
    integer, intent(in), contiguous, target :: send_ranks(:), recv_ranks(:)
    integer(c_int64_t), intent(in), contiguous, target :: send_offsets(:), recv_offsets(:)
    type(swp_plan), intent(out) :: plan
    integer(c_int64_t), intent(in), contiguous, optional, target :: send_items(:)
    character(*), intent(in), optional :: method
    type(swp_hints), intent(in), optional :: hints
    integer, intent(out), optional :: ierror
    type(exchange_problem) :: problem
    problem = exchange(0_c_int64_t, nitems, send_ranks, send_offsets, recv_ranks, recv_offsets, send_items)
    call conclude_plan(c_fields_plan(comm, problem, size(field_bytes), field_bytes, spec_of(method), hints, plan%handle), &
                       problem, 'swp_fields_plan', ierror)
    plan%nfields = size(field_bytes)
  end subroutine

  ! send(f) and recv(f) are the addresses of the buffers of field f, by c_loc.
  subroutine swp_fields_execute(plan, send, recv, ierror)
    type(swp_plan), intent(in) :: plan
    type(c_ptr), intent(in) :: send(:), recv(:)
    integer, intent(out), optional :: ierror
    if (has_buffers(plan, send, recv)) then
      call conclude(c_fields_execute(plan%handle, send, recv), ierror)
    else
      call refuse('swp_fields_execute: send and recv must have an address for each field', ierror)
    end if
  end subroutine

  subroutine swp_fields_start(plan, send, recv, ierror)
    type(swp_plan), intent(in) :: plan
    type(c_ptr), intent(in) :: send(:), recv(:)
    integer, intent(out), optional :: ierror
    if (has_buffers(plan, send, recv)) then
      call conclude(c_fields_start(plan%handle, send, recv), ierror)
    else
      call refuse('swp_fields_start: send and recv must have an address for each field', ierror)
    end if
  end subroutine

  logical function has_buffers(plan, send, recv)
    type(swp_plan), intent(in) :: plan
    type(c_ptr), intent(in) :: send(:), recv(:)
    has_buffers = size(send) >= plan%nfields .and. size(recv) >= plan%nfields
  end function

  subroutine swp_test(plan, done, ierror)
    type(swp_plan), intent(in) :: plan
    logical, intent(out) :: done
    integer, intent(out), optional :: ierror
    integer(c_int) :: is_done
    call conclude(c_test(plan%handle, is_done), ierror)
    done = is_done /= 0
  end subroutine

  ! Waits for senders, and may wait for receivers, to start the exchange.
  subroutine swp_wait(plan, ierror)
    type(swp_plan), intent(in) :: plan
    integer, intent(out), optional :: ierror
    call conclude(c_wait(plan%handle), ierror)
  end subroutine

  ! ---- Discoveries ----

  subroutine discovery_plan_f08(comm, plan, method, hints, ierror)
    type(MPI_Comm), intent(in) :: comm
    type(swp_plan), intent(out) :: plan
    character(*), intent(in), optional :: method
    type(swp_hints), intent(in), optional :: hints
    integer, intent(out), optional :: ierror
    call discovery_plan_mpi(comm%MPI_VAL, plan, method, hints, ierror)
  end subroutine

  subroutine discovery_plan_mpi(comm, plan, method, hints, ierror)
    integer, intent(in) :: comm
    type(swp_plan), intent(out) :: plan
    character(*), intent(in), optional :: method
    type(swp_hints), intent(in), optional :: hints
    integer, intent(out), optional :: ierror
    call conclude(c_discovery_plan(comm, spec_of(method), hints, plan%handle), ierror)
  end subroutine

  ! Sends the first bytes(1) bytes of send to ranks(1), the next bytes(2) to ranks(2), and so on.
  subroutine swp_discovery_execute(plan, ranks, bytes, send, inbox, ierror)
    type(swp_plan), intent(in) :: plan
    integer, intent(in) :: ranks(:)
    integer(c_int64_t), intent(in) :: bytes(:)
    type(*), dimension(..), intent(in), target :: send
    type(swp_inbox), intent(inout) :: inbox
    integer, intent(out), optional :: ierror
    type(c_ptr) :: data(size(bytes))
    integer(c_intptr_t) :: address
    integer :: error, i
    logical :: agrees
    agrees = size(ranks) == size(bytes) .and. is_dense(send)
    address = transfer(c_loc(send), address)
    do i = 1, size(bytes)
      data(i) = transfer(address, c_null_ptr)
      address = address + bytes(i)
    end do
    ! The other ranks' calls go on without this one's messages.
    error = c_discovery_execute(plan%handle, merge(size(ranks), -1, agrees), ranks, bytes, data, inbox%handle)
    call show(inbox)
    if (agrees .or. error /= SWP_ERR_ARGUMENT) then
      call conclude(error, ierror)
    else
      call refuse('swp_discovery_execute: ranks and bytes must have one size, and send must be contiguous', ierror)
    end if
  end subroutine

  subroutine swp_inbox_free(inbox)
    type(swp_inbox), intent(inout) :: inbox
    call c_inbox_free(inbox%handle)
    call show(inbox)
  end subroutine

  ! ---- Collectives ----

  subroutine collective_plan_f08(comm, operation, recv_type, plan, send_count, send_type, recv_count, recv_counts, &
                                 displs, op, root, method, hints, send_counts, send_displs, ierror)
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: operation
    type(MPI_Datatype), intent(in) :: recv_type
    type(swp_plan), intent(out) :: plan
    integer, intent(in), optional :: send_count, recv_count, root
    type(MPI_Datatype), intent(in), optional :: send_type
    integer, intent(in), contiguous, optional :: recv_counts(:), displs(:), send_counts(:), send_displs(:)
    type(MPI_Op), intent(in), optional :: op
    character(*), intent(in), optional :: method
    type(swp_hints), intent(in), optional :: hints
    integer, intent(out), optional :: ierror
    call collective_plan_mpi(comm%MPI_VAL, operation, recv_type%MPI_VAL, plan, send_count, type_handle(send_type), recv_count, &
                             recv_counts, displs, op_handle(op), root, method, hints, send_counts, send_displs, ierror)
  end subroutine

  subroutine collective_plan_mpi(comm, operation, recv_type, plan, send_count, send_type, recv_count, recv_counts, &
                                 displs, op, root, method, hints, send_counts, send_displs, ierror)
    integer, intent(in) :: comm, operation, recv_type
    type(swp_plan), intent(out) :: plan
    integer, intent(in), optional :: send_count, send_type, recv_count, op, root
    integer, intent(in), contiguous, optional, target :: recv_counts(:), displs(:), send_counts(:), send_displs(:)
    character(*), intent(in), optional :: method
    type(swp_hints), intent(in), optional :: hints
    integer, intent(out), optional :: ierror
    call conclude(c_collective_plan(comm, collective(operation, recv_type, send_count, send_type, recv_count, recv_counts, &
                                                     displs, op, root, send_counts, send_displs), &
                                    spec_of(method), hints, plan%handle), ierror)
  end subroutine

  subroutine collective_set_f08(plan, operation, recv_type, send_count, send_type, recv_count, recv_counts, displs, op, &
                                root, send_counts, send_displs, ierror)
    type(swp_plan), intent(in) :: plan
    integer, intent(in) :: operation
    type(MPI_Datatype), intent(in) :: recv_type
    integer, intent(in), optional :: send_count, recv_count, root
    type(MPI_Datatype), intent(in), optional :: send_type
    integer, intent(in), contiguous, optional :: recv_counts(:), displs(:), send_counts(:), send_displs(:)
    type(MPI_Op), intent(in), optional :: op
    integer, intent(out), optional :: ierror
    call collective_set_mpi(plan, operation, recv_type%MPI_VAL, send_count, type_handle(send_type), recv_count, recv_counts, &
                            displs, op_handle(op), root, send_counts, send_displs, ierror)
  end subroutine

  subroutine collective_set_mpi(plan, operation, recv_type, send_count, send_type, recv_count, recv_counts, displs, op, &
                                root, send_counts, send_displs, ierror)
    type(swp_plan), intent(in) :: plan
    integer, intent(in) :: operation, recv_type
    integer, intent(in), optional :: send_count, send_type, recv_count, op, root
    integer, intent(in), contiguous, optional, target :: recv_counts(:), displs(:), send_counts(:), send_displs(:)
    integer, intent(out), optional :: ierror
    call conclude(c_collective_set(plan%handle, collective(operation, recv_type, send_count, send_type, recv_count, &
                                                           recv_counts, displs, op, root, send_counts, send_displs)), &
                  ierror)
  end subroutine

  ! MPI_IN_PLACE may be that of mpi_f08 or of mpi.
  subroutine swp_collective_execute(plan, send, recv, ierror)
    type(swp_plan), intent(in) :: plan
    type(*), dimension(..), intent(in), target :: send
    type(*), dimension(..), target :: recv
    integer, intent(out), optional :: ierror
    if (is_dense(send) .and. is_dense(recv)) then
      call conclude(c_collective_execute(plan%handle, buffer(c_loc(send)), buffer(c_loc(recv))), ierror)
    else
      call refuse('swp_collective_execute: send and recv must be contiguous', ierror)
    end if
  end subroutine

  ! ---- Plans ----

  ! Empty for a plan that was not made.
  function swp_plan_describe(plan) result(text)
    type(swp_plan), intent(in) :: plan
    character(:), allocatable :: text
    character(kind=c_char) :: said(DESCRIPTION_LENGTH)
    integer :: i
    said(1) = c_null_char
    if (c_associated(plan%handle)) i = c_plan_describe(plan%handle, said, int(size(said), c_size_t))
    allocate(character(findloc(said, c_null_char, dim=1) - 1) :: text)
    do i = 1, len(text)
      text(i:i) = said(i)
    end do
  end function

  function swp_plan_method(plan) result(spec)
    type(swp_plan), intent(in) :: plan
    character(:), allocatable :: spec
    spec = text_at(c_plan_method(plan%handle))
  end function

  ! Both are empty if no rule was passed over.
  subroutine swp_plan_passed(plan, spec, why)
    type(swp_plan), intent(in) :: plan
    character(:), allocatable, intent(out) :: spec, why
    type(c_ptr) :: passed, reason
    reason = c_null_ptr
    passed = c_plan_passed(plan%handle, reason)
    spec = text_at(passed)
    why = ''
    if (c_associated(passed)) why = text_at(reason)
  end subroutine

  subroutine swp_plan_statistics(plan, problem, method, ierror)
    type(swp_plan), intent(in) :: plan
    type(swp_statistics), intent(out), optional :: problem, method
    integer, intent(out), optional :: ierror
    call conclude(c_plan_statistics(plan%handle, problem, method), ierror)
  end subroutine

  subroutine swp_plan_stage(plan, stage, messages, messages_max, bytes, bytes_max, ierror)
    type(swp_plan), intent(in) :: plan
    integer, intent(in) :: stage
    integer(c_int64_t), intent(out), optional :: messages, messages_max, bytes, bytes_max
    integer, intent(out), optional :: ierror
    call conclude(c_plan_stage(plan%handle, stage, messages, messages_max, bytes, bytes_max), ierror)
  end subroutine

  subroutine swp_plan_free(plan, ierror)
    type(swp_plan), intent(inout) :: plan
    integer, intent(out), optional :: ierror
    call conclude(c_plan_free(plan%handle), ierror)
  end subroutine

  ! ---- What they share ----

  ! Gives the caller an error of the library, or ends the job.
  subroutine conclude(error, ierror)
    integer(c_int), intent(in) :: error
    integer, intent(out), optional :: ierror
    if (error /= SWP_SUCCESS) call c_forget()
    if (present(ierror)) then
      ierror = error
    else if (error /= SWP_SUCCESS) then
      call c_abort(error)
    end if
  end subroutine

  ! The same for an error that this module found.
  subroutine refuse(text, ierror)
    character(*), intent(in) :: text
    integer, intent(out), optional :: ierror
    integer(c_int) :: error
    error = c_refuse(text // c_null_char)
    if (present(ierror)) then
      ierror = error
    else
      call c_abort(error)
    end if
  end subroutine

  ! A string of C, empty where there is none.
  function text_at(address) result(text)
    type(c_ptr), intent(in) :: address
    character(:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    integer :: i, length
    length = 0
    if (c_associated(address)) then
      call c_f_pointer(address, letters, [huge(length)])
      do while (letters(length + 1) /= c_null_char)
        length = length + 1
      end do
    end if
    allocate(character(length) :: text)
    do i = 1, length
      text(i:i) = letters(i)
    end do
  end function

  function spec_of(method) result(spec)
    character(*), intent(in), optional :: method
    character(:), allocatable :: spec
    spec = 'auto' // c_null_char
    if (present(method)) spec = trim(method) // c_null_char
  end function

  ! Whether the elements of a buffer lie one behind the other. is_contiguous of gfortran alone misses sections of one
  ! vector, and of none.
  pure logical function is_dense(buffer)
    type(*), dimension(..), intent(in) :: buffer
    is_dense = is_contiguous(buffer)
    if (.not. is_dense) is_dense = c_is_contiguous(buffer) /= 0
  end function

  logical function has_offsets(ranks, offsets)
    integer, intent(in) :: ranks(:)
    integer(c_int64_t), intent(in) :: offsets(:)
    has_offsets = size(ranks) == 0 .or. size(offsets) == size(ranks) + 1
  end function

  ! What is left out is an error if the operation reads it, except for a side that MPI_IN_PLACE replaces.
  function collective(operation, recv_type, send_count, send_type, recv_count, recv_counts, displs, op, root, send_counts, &
                      send_displs) result(problem)
    use mpi_f08, only: MPI_DATATYPE_NULL, MPI_OP_NULL
    integer, intent(in) :: operation, recv_type
    integer, intent(in), optional :: send_count, send_type, recv_count, op, root
    integer, intent(in), contiguous, optional, target :: recv_counts(:), displs(:), send_counts(:), send_displs(:)
    type(collective_problem) :: problem
    problem = collective_problem(operation, given(send_count, -1), given(recv_count, -1), &
                                 given(send_type, MPI_DATATYPE_NULL%MPI_VAL), recv_type, given(op, MPI_OP_NULL%MPI_VAL), &
                                 given(root, -1), 0, 0, 0, 0, c_null_ptr, c_null_ptr, c_null_ptr, c_null_ptr)
    if (present(recv_counts)) then
      problem%nrecv_counts = size(recv_counts)
      problem%recv_counts = c_loc(recv_counts)
    end if
    if (present(displs)) then
      problem%ndispls = size(displs)
      problem%displs = c_loc(displs)
    end if
    if (present(send_counts)) then
      problem%nsend_counts = size(send_counts)
      problem%send_counts = c_loc(send_counts)
    end if
    if (present(send_displs)) then
      problem%nsend_displs = size(send_displs)
      problem%send_displs = c_loc(send_displs)
    end if
  end function

  integer function given(value, otherwise)
    integer, intent(in), optional :: value
    integer, intent(in) :: otherwise
    given = otherwise
    if (present(value)) given = value
  end function

  integer function type_handle(datatype)
    use mpi_f08, only: MPI_DATATYPE_NULL
    type(MPI_Datatype), intent(in), optional :: datatype
    type_handle = MPI_DATATYPE_NULL%MPI_VAL
    if (present(datatype)) type_handle = datatype%MPI_VAL
  end function

  integer function op_handle(op)
    use mpi_f08, only: MPI_OP_NULL
    type(MPI_Op), intent(in), optional :: op
    op_handle = MPI_OP_NULL%MPI_VAL
    if (present(op)) op_handle = op%MPI_VAL
  end function

  ! The address of a buffer, or C's MPI_IN_PLACE or MPI_BOTTOM for Fortran's.
  type(c_ptr) function buffer(address)
    use mpi, only: BOTTOM => MPI_BOTTOM, IN_PLACE => MPI_IN_PLACE
    use mpi_f08, only: BOTTOM_F08 => MPI_BOTTOM, IN_PLACE_F08 => MPI_IN_PLACE
    type(c_ptr), intent(in) :: address
    buffer = address
    if (is_at(address, IN_PLACE) .or. is_at(address, IN_PLACE_F08)) buffer = c_in_place()
    if (is_at(address, BOTTOM) .or. is_at(address, BOTTOM_F08)) buffer = c_bottom()
  end function

  logical function is_at(address, variable)
    type(c_ptr), intent(in) :: address
    type(*), dimension(..), intent(in), target :: variable
    is_at = c_associated(address, c_loc(variable))
  end function

  ! Points the components of an inbox at what the library keeps in it.
  subroutine show(inbox)
    type(swp_inbox), intent(inout) :: inbox
    type(inbox_contents), pointer :: contents
    inbox%nsources = 0
    nullify(inbox%sources, inbox%bytes, inbox%data)
    if (.not. c_associated(inbox%handle)) return
    call c_f_pointer(inbox%handle, contents)
    inbox%nsources = contents%nsources
    call c_f_pointer(contents%sources, inbox%sources, [contents%nsources])
    call c_f_pointer(contents%bytes, inbox%bytes, [contents%nsources])
    call c_f_pointer(contents%data, inbox%data, [contents%nsources])
  end subroutine
end module
