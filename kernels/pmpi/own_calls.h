/* Included before all else where the library is compiled for the preload: what the preload interposes, the
   library calls by the other name, and so never itself. A test compares this list with what is exported. */
#ifndef SWP_OWN_CALLS_H
#define SWP_OWN_CALLS_H

#define MPI_Init PMPI_Init
#define MPI_Init_thread PMPI_Init_thread
#define MPI_Finalize PMPI_Finalize
#define MPI_Session_init PMPI_Session_init
#define MPI_Session_finalize PMPI_Session_finalize
#define MPI_Comm_free PMPI_Comm_free
#define MPI_Comm_disconnect PMPI_Comm_disconnect
#define MPI_Bcast PMPI_Bcast
#define MPI_Gather PMPI_Gather
#define MPI_Scatter PMPI_Scatter
#define MPI_Reduce PMPI_Reduce
#define MPI_Allreduce PMPI_Allreduce
#define MPI_Allgather PMPI_Allgather
#define MPI_Allgatherv PMPI_Allgatherv
#define MPI_Alltoall PMPI_Alltoall
#define MPI_Reduce_scatter_block PMPI_Reduce_scatter_block

#endif
