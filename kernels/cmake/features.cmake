# switchpoint_mpi_features: a target that links it knows as macros what its MPI has and some lack.
include(CheckCSourceCompiles)
set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_C)
check_symbol_exists(MPI_Session_init mpi.h SWP_HAVE_SESSIONS)
check_symbol_exists(MPI_Neighbor_alltoallv_init mpi.h SWP_HAVE_PERSISTENT)
check_symbol_exists(MPI_Bcast_c mpi.h SWP_HAVE_LARGE_COUNTS)
check_symbol_exists(MPI_Isendrecv mpi.h SWP_HAVE_ISENDRECV)
check_symbol_exists(MPI_Parrived mpi.h SWP_HAVE_PARTITIONED)
check_symbol_exists(MPI_Request_get_status_all mpi.h SWP_HAVE_STATUS_OF_SEVERAL)
check_c_source_compiles(
  "#include <mpi.h>\nint MPI_Request_get_status_all(int, const MPI_Request[], int *, MPI_Status[]);
   int main(void) { return 0; }"
  SWP_CONST_REQUESTS)
check_c_source_compiles(
  "#include <mpi.h>\n_Static_assert(sizeof(MPI_Fint) == sizeof(int), \"\"); int main(void) { return 0; }"
  SWP_FORTRAN_INT)
unset(CMAKE_REQUIRED_LIBRARIES)

add_library(switchpoint_mpi_features INTERFACE)
foreach(feature SWP_HAVE_SESSIONS SWP_HAVE_PERSISTENT SWP_HAVE_LARGE_COUNTS SWP_HAVE_ISENDRECV
        SWP_HAVE_PARTITIONED SWP_HAVE_STATUS_OF_SEVERAL SWP_CONST_REQUESTS SWP_FORTRAN_INT)
  if(${feature})
    target_compile_definitions(switchpoint_mpi_features INTERFACE ${feature})
  endif()
endforeach()
