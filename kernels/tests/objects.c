/* Counts the MPI objects that exist. */
#include "objects.h"

#include <mpi.h>

static long objects;

#define COUNTED(name, change, parameters, arguments)                                                         \
  int MPI_##name parameters {                                                                                \
    int error = PMPI_##name arguments;                                                                       \
    objects += error == MPI_SUCCESS ? (change) : 0;                                                          \
    return error;                                                                                            \
  }

COUNTED(Comm_dup, 1, (MPI_Comm comm, MPI_Comm *made), (comm, made))
COUNTED(Comm_split, *made != MPI_COMM_NULL, (MPI_Comm comm, int color, int key, MPI_Comm *made),
        (comm, color, key, made))
COUNTED(Comm_split_type, 1, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made),
        (comm, type, key, info, made))
COUNTED(Dist_graph_create_adjacent, 1,
        (MPI_Comm comm, int nin, const int in[], const int in_weights[], int nout, const int out[],
         const int out_weights[], MPI_Info info, int reorder, MPI_Comm *made),
        (comm, nin, in, in_weights, nout, out, out_weights, info, reorder, made))
COUNTED(Comm_free, -1, (MPI_Comm * comm), (comm))

COUNTED(Win_allocate, 1, (MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *made),
        (bytes, unit, info, comm, base, made))
COUNTED(Win_allocate_shared, 1,
        (MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *made),
        (bytes, unit, info, comm, base, made))
COUNTED(Win_create, 1, (void *base, MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *made),
        (base, bytes, unit, info, comm, made))
COUNTED(Win_free, -1, (MPI_Win * window), (window))

COUNTED(Type_contiguous, 1, (int count, MPI_Datatype type, MPI_Datatype *made), (count, type, made))
COUNTED(Type_create_hindexed, 1,
        (int count, const int lengths[], const MPI_Aint places[], MPI_Datatype type, MPI_Datatype *made),
        (count, lengths, places, type, made))
COUNTED(Type_create_struct, 1,
        (int count, const int lengths[], const MPI_Aint places[], const MPI_Datatype types[],
         MPI_Datatype *made),
        (count, lengths, places, types, made))
COUNTED(Type_free, -1, (MPI_Datatype * type), (type))

long mpi_objects(void) {
  return objects;
}
