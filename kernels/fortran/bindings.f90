! The C functions that the module switchpoint calls, and the types that both sides know: those of switchpoint.h, and
! those of handles.c, which takes Fortran's handles.
module switchpoint_bindings
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_int64_t, c_null_ptr, c_ptr
  implicit none
  private :: c_char, c_double, c_int, c_int64_t, c_null_ptr, c_ptr

  ! A method table, or none.
  type, bind(C) :: swp_table
    type(c_ptr) :: handle = c_null_ptr
  end type

  ! What the caller knows beyond the problem; the defaults are those of SWP_HINTS_DEFAULT.
  type, bind(C) :: swp_hints
    integer(c_int) :: flags = 0
    integer(c_int64_t) :: executions = 0
    integer(c_int64_t) :: degree = -1
    integer(c_int64_t) :: bytes = -1
    type(swp_table) :: table
    integer(c_int) :: ppn = 0
    integer(c_int) :: placement = 0
    real(c_double) :: budget_s = 0
  end type

  ! What a plan does at each execution.
  type, bind(C) :: swp_statistics
    integer(c_int) :: procs, nodes, ppn, stages
    integer(c_int64_t) :: mmax
    real(c_double) :: mavg, vavg_bytes
    integer(c_int64_t) :: vmax_bytes, buffer_bytes, copied_bytes, hop_bytes, plan_bytes
    integer(c_int64_t) :: on_node_messages, off_node_messages, on_node_bytes, off_node_bytes
    integer(c_int64_t) :: off_node_mmax, off_node_vmax_bytes
    integer(c_int) :: sockets
    integer(c_int64_t) :: on_socket_messages, on_socket_bytes
  end type

  ! struct swp_exchange
  type, bind(C) :: exchange_problem
    integer(c_int64_t) :: item_bytes, nitems
    integer(c_int) :: nsends
    type(c_ptr) :: send_ranks, send_offsets, send_items
    integer(c_int) :: nrecvs
    type(c_ptr) :: recv_ranks, recv_offsets
  end type

  ! struct fortran_collective
  type, bind(C) :: collective_problem
    integer(c_int) :: operation, send_count, recv_count, send_type, recv_type, op, root, nrecv_counts, ndispls, &
        nsend_counts, nsend_displs
    type(c_ptr) :: recv_counts, displs, send_counts, send_displs
  end type

  ! swp_inbox
  type, bind(C) :: inbox_contents
    integer(c_int) :: nsources
    type(c_ptr) :: sources, bytes, data
  end type

  interface
    type(c_ptr) function c_version() bind(C, name='swp_version')
      import
    end function

    type(c_ptr) function c_strerror(error) bind(C, name='swp_strerror')
      import
      integer(c_int), value :: error
    end function

    integer(c_int) function c_error_mpi() bind(C, name='swp_fortran_error_mpi')
      import
    end function

    type(c_ptr) function c_operation_name(operation) bind(C, name='swp_operation_name')
      import
      integer(c_int), value :: operation
    end function

    integer(c_int) function c_refuse(text) bind(C, name='swp_fortran_refuse')
      import
      character(c_char), intent(in) :: text(*)
    end function

    subroutine c_forget() bind(C, name='swp_fortran_forget')
    end subroutine

    type(c_ptr) function c_message() bind(C, name='swp_fortran_message')
      import
    end function

    subroutine c_abort(error) bind(C, name='swp_fortran_abort')
      import
      integer(c_int), value :: error
    end subroutine

    type(c_ptr) function c_in_place() bind(C, name='swp_fortran_in_place')
      import
    end function

    type(c_ptr) function c_bottom() bind(C, name='swp_fortran_bottom')
      import
    end function

    pure integer(c_int) function c_is_contiguous(array) bind(C, name='swp_fortran_is_contiguous')
      import
      type(*), dimension(..), intent(in) :: array
    end function

    integer(c_int) function c_table_read(comm, path, table) bind(C, name='swp_fortran_table_read')
      import
      integer(c_int), value :: comm
      character(c_char), intent(in) :: path(*)
      type(swp_table), intent(out) :: table
    end function

    integer(c_int) function c_table_rules(table) bind(C, name='swp_table_rules')
      import
      type(c_ptr), value :: table
    end function

    integer(c_int) function c_table_has(table, operation) bind(C, name='swp_table_has')
      import
      type(c_ptr), value :: table
      integer(c_int), value :: operation
    end function

    subroutine c_table_free(table) bind(C, name='swp_table_free')
      import
      type(swp_table), intent(inout) :: table
    end subroutine

    integer(c_int) function c_exchange_plan(comm, problem, method, hints, plan) bind(C, name='swp_fortran_exchange_plan')
      import
      integer(c_int), value :: comm
      type(exchange_problem), intent(in) :: problem
      character(c_char), intent(in) :: method(*)
      type(swp_hints), intent(in), optional :: hints
      type(c_ptr), intent(out) :: plan
    end function

    integer(c_int) function c_fields_plan(comm, problem, nfields, field_bytes, method, hints, plan) &
        bind(C, name='swp_fortran_fields_plan')
      import
      integer(c_int), value :: comm, nfields
      type(exchange_problem), intent(in) :: problem
      integer(c_int64_t), intent(in) :: field_bytes(*)
      character(c_char), intent(in) :: method(*)
      type(swp_hints), intent(in), optional :: hints
      type(c_ptr), intent(out) :: plan
    end function

    integer(c_int) function c_discovery_plan(comm, method, hints, plan) bind(C, name='swp_fortran_discovery_plan')
      import
      integer(c_int), value :: comm
      character(c_char), intent(in) :: method(*)
      type(swp_hints), intent(in), optional :: hints
      type(c_ptr), intent(out) :: plan
    end function

    integer(c_int) function c_collective_plan(comm, problem, method, hints, plan) bind(C, name='swp_fortran_collective_plan')
      import
      integer(c_int), value :: comm
      type(collective_problem), intent(in) :: problem
      character(c_char), intent(in) :: method(*)
      type(swp_hints), intent(in), optional :: hints
      type(c_ptr), intent(out) :: plan
    end function

    integer(c_int) function c_collective_set(plan, problem) bind(C, name='swp_fortran_collective_set')
      import
      type(c_ptr), value :: plan
      type(collective_problem), intent(in) :: problem
    end function

    integer(c_int) function c_exchange_buffer(plan, send) bind(C, name='swp_exchange_buffer')
      import
      type(c_ptr), value :: plan
      type(c_ptr), intent(out) :: send
    end function

    integer(c_int) function c_exchange_execute(plan, send, recv) bind(C, name='swp_exchange_execute')
      import
      type(c_ptr), value :: plan, send, recv
    end function

    integer(c_int) function c_exchange_start(plan, send, recv) bind(C, name='swp_exchange_start')
      import
      type(c_ptr), value :: plan, send, recv
    end function

    integer(c_int) function c_fields_execute(plan, send, recv) bind(C, name='swp_fields_execute')
      import
      type(c_ptr), value :: plan
      type(c_ptr), intent(in) :: send(*), recv(*)
    end function

    integer(c_int) function c_fields_start(plan, send, recv) bind(C, name='swp_fields_start')
      import
      type(c_ptr), value :: plan
      type(c_ptr), intent(in) :: send(*), recv(*)
    end function

    integer(c_int) function c_test(plan, done) bind(C, name='swp_test')
      import
      type(c_ptr), value :: plan
      integer(c_int), intent(out) :: done
    end function

    integer(c_int) function c_wait(plan) bind(C, name='swp_wait')
      import
      type(c_ptr), value :: plan
    end function

    integer(c_int) function c_collective_execute(plan, send, recv) bind(C, name='swp_collective_execute')
      import
      type(c_ptr), value :: plan, send, recv
    end function

    integer(c_int) function c_discovery_execute(plan, nsends, ranks, bytes, data, inbox) &
        bind(C, name='swp_discovery_execute')
      import
      type(c_ptr), value :: plan
      integer(c_int), value :: nsends
      integer(c_int), intent(in) :: ranks(*)
      integer(c_int64_t), intent(in) :: bytes(*)
      type(c_ptr), intent(in) :: data(*)
      type(c_ptr), intent(inout) :: inbox
    end function

    subroutine c_inbox_free(inbox) bind(C, name='swp_inbox_free')
      import
      type(c_ptr), intent(inout) :: inbox
    end subroutine

    integer(c_int) function c_plan_describe(plan, text, length) bind(C, name='swp_plan_describe')
      use, intrinsic :: iso_c_binding, only: c_size_t
      import
      type(c_ptr), value :: plan
      character(c_char), intent(out) :: text(*)
      integer(c_size_t), value :: length
    end function

    type(c_ptr) function c_plan_method(plan) bind(C, name='swp_plan_method')
      import
      type(c_ptr), value :: plan
    end function

    type(c_ptr) function c_plan_passed(plan, why) bind(C, name='swp_plan_passed')
      import
      type(c_ptr), value :: plan
      type(c_ptr), intent(out) :: why
    end function

    integer(c_int) function c_plan_statistics(plan, problem, method) bind(C, name='swp_plan_statistics')
      import
      type(c_ptr), value :: plan
      type(swp_statistics), intent(out), optional :: problem, method
    end function

    integer(c_int) function c_plan_stage(plan, stage, messages, messages_max, bytes, bytes_max) &
        bind(C, name='swp_plan_stage')
      import
      type(c_ptr), value :: plan
      integer(c_int), value :: stage
      integer(c_int64_t), intent(out), optional :: messages, messages_max, bytes, bytes_max
    end function

    integer(c_int) function c_plan_free(plan) bind(C, name='swp_plan_free')
      import
      type(c_ptr), intent(inout) :: plan
    end function
  end interface
end module
