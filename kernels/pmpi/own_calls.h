/* Included first where the library is compiled for the preload: the library calls functions that the preload
   interposes by their other name, and so never itself. A test compares this list with the exported names. */
#ifndef SWP_OWN_CALLS_H
#define SWP_OWN_CALLS_H

#define MPI_Init PMPI_Init
#define MPI_Init_thread PMPI_Init_thread
#define MPI_Finalize PMPI_Finalize
#define MPI_Session_init PMPI_Session_init
#define MPI_Session_finalize PMPI_Session_finalize
#define MPI_Comm_free PMPI_Comm_free
#define MPI_Comm_disconnect PMPI_Comm_disconnect
#define MPI_Comm_set_info PMPI_Comm_set_info
#define MPI_Comm_dup_with_info PMPI_Comm_dup_with_info
#define MPI_Dist_graph_create PMPI_Dist_graph_create
#define MPI_Dist_graph_create_adjacent PMPI_Dist_graph_create_adjacent
#define MPI_Barrier PMPI_Barrier
#define MPI_Ibarrier PMPI_Ibarrier
#define MPI_Bcast PMPI_Bcast
#define MPI_Gather PMPI_Gather
#define MPI_Scatter PMPI_Scatter
#define MPI_Reduce PMPI_Reduce
#define MPI_Allreduce PMPI_Allreduce
#define MPI_Allgather PMPI_Allgather
#define MPI_Allgatherv PMPI_Allgatherv
#define MPI_Alltoall PMPI_Alltoall
#define MPI_Alltoallv PMPI_Alltoallv
#define MPI_Ialltoallv PMPI_Ialltoallv
#define MPI_Gatherv PMPI_Gatherv
#define MPI_Scatterv PMPI_Scatterv
#define MPI_Alltoallw PMPI_Alltoallw
#define MPI_Reduce_scatter_block PMPI_Reduce_scatter_block
#define MPI_Neighbor_allgather PMPI_Neighbor_allgather
#define MPI_Neighbor_allgatherv PMPI_Neighbor_allgatherv
#define MPI_Neighbor_alltoall PMPI_Neighbor_alltoall
#define MPI_Neighbor_alltoallv PMPI_Neighbor_alltoallv
#define MPI_Ineighbor_alltoallv PMPI_Ineighbor_alltoallv
#define MPI_Neighbor_alltoallw PMPI_Neighbor_alltoallw
#define MPI_Neighbor_allgather_init PMPI_Neighbor_allgather_init
#define MPI_Neighbor_allgatherv_init PMPI_Neighbor_allgatherv_init
#define MPI_Neighbor_alltoall_init PMPI_Neighbor_alltoall_init
#define MPI_Neighbor_alltoallv_init PMPI_Neighbor_alltoallv_init
#define MPI_Neighbor_alltoallw_init PMPI_Neighbor_alltoallw_init
#define MPI_Start PMPI_Start
#define MPI_Startall PMPI_Startall
#define MPI_Request_free PMPI_Request_free
#define MPI_Request_get_status PMPI_Request_get_status
#define MPI_Request_get_status_any PMPI_Request_get_status_any
#define MPI_Request_get_status_all PMPI_Request_get_status_all
#define MPI_Request_get_status_some PMPI_Request_get_status_some
#define MPI_Wait PMPI_Wait
#define MPI_Waitany PMPI_Waitany
#define MPI_Waitall PMPI_Waitall
#define MPI_Waitsome PMPI_Waitsome
#define MPI_Test PMPI_Test
#define MPI_Testany PMPI_Testany
#define MPI_Testall PMPI_Testall
#define MPI_Testsome PMPI_Testsome
#define MPI_Send PMPI_Send
#define MPI_Ssend PMPI_Ssend
#define MPI_Rsend PMPI_Rsend
#define MPI_Recv PMPI_Recv
#define MPI_Sendrecv PMPI_Sendrecv
#define MPI_Probe PMPI_Probe
#define MPI_Mprobe PMPI_Mprobe
#define MPI_Iprobe PMPI_Iprobe
#define MPI_Improbe PMPI_Improbe

#endif
