/* MPI_T, which SimGrid's mpi.h lacks, as in a library without control variables. */
#ifndef SIMGRID_MPI_T_H
#define SIMGRID_MPI_T_H

#include <mpi.h>

typedef int MPI_T_cvar_handle, MPI_T_enum;
enum { MPI_T_ENUM_NULL, MPI_T_SCOPE_CONSTANT, MPI_T_SCOPE_READONLY };

#define MPI_T_init_thread(required, provided) ((void)(required), (void)(provided), MPI_ERR_OTHER)
#define MPI_T_cvar_get_index(name, index) ((void)(name), *(index) = -1, MPI_ERR_OTHER)
#define MPI_T_cvar_get_info(index, ...) ((void)(index), MPI_ERR_OTHER)
#define MPI_T_cvar_handle_alloc(index, object, handle, count)                                                \
  ((void)(index), *(handle) = 0, *(count) = 0, MPI_ERR_OTHER)
#define MPI_T_cvar_handle_free(handle) ((void)(handle), MPI_ERR_OTHER)
#define MPI_T_cvar_read(handle, value) ((void)(handle), (void)(value), MPI_ERR_OTHER)
#define MPI_T_cvar_write(handle, value) ((void)(handle), (void)(value), MPI_ERR_OTHER)
#define MPI_T_enum_get_info(enumeration, count, name, length)                                                \
  ((void)(enumeration), *(count) = 0, *(length) = 0, MPI_ERR_OTHER)
#define MPI_T_enum_get_item(enumeration, index, value, name, length)                                         \
  ((void)(enumeration), *(value) = 0, *(length) = 0, MPI_ERR_OTHER)

#endif
