/* vendor: the collective of the MPI library, as it chooses to do it. By its PMPI name, which a preloaded
   library that calls this one does not see. */
#include "call.h"

/* A failed call, named as the standard does. */
#define VENDOR(call)                                                                                         \
  do {                                                                                                       \
    int mpi_error_ = P##call;                                                                                \
    return mpi_error_ == MPI_SUCCESS ? SWP_SUCCESS : swp_fail_mpi(mpi_error_, #call);                        \
  } while (0)

static int vendor_bcast(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *side = &plan->call->recv;
  (void)send;
  VENDOR(MPI_Bcast(recv, side->count, side->type, plan->features.root, plan->comm));
}

static int vendor_gather(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = plan->call;
  VENDOR(MPI_Gather(send, call->send.count, call->send.type, recv, call->recv.count, call->recv.type,
                    plan->features.root, plan->comm));
}

static int vendor_scatter(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = plan->call;
  VENDOR(MPI_Scatter(send, call->send.count, call->send.type, recv, call->recv.count, call->recv.type,
                     plan->features.root, plan->comm));
}

static int vendor_reduce(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *side = &plan->call->recv;
  VENDOR(MPI_Reduce(send, recv, side->count, side->type, plan->call->op, plan->features.root, plan->comm));
}

static int vendor_allreduce(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *side = &plan->call->recv;
  VENDOR(MPI_Allreduce(send, recv, side->count, side->type, plan->call->op, plan->comm));
}

static int vendor_allgather(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = plan->call;
  VENDOR(MPI_Allgather(send, call->send.count, call->send.type, recv, call->recv.count, call->recv.type,
                       plan->comm));
}

static int vendor_allgatherv(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = plan->call;
  if (plan->procs == 1) /* MPICH 4.0.2 then takes no notice of displs */
    return send == MPI_IN_PLACE ? SWP_SUCCESS
                                : swp_copy(plan, &call->send, send, call->send.count, &call->recv,
                                           swp_item(&call->recv, recv, call->displs[0]), call->recv.count);
  VENDOR(MPI_Allgatherv(send, call->send.count, call->send.type, recv, call->recv_counts, call->displs,
                        call->recv.type, plan->comm));
}

static int vendor_alltoall(struct swp_plan *plan, const void *send, void *recv) {
  const struct call *call = plan->call;
  VENDOR(MPI_Alltoall(send, call->send.count, call->send.type, recv, call->recv.count, call->recv.type,
                      plan->comm));
}

static int vendor_reduce_scatter_block(struct swp_plan *plan, const void *send, void *recv) {
  const struct side *side = &plan->call->recv;
  VENDOR(MPI_Reduce_scatter_block(send, recv, side->count, side->type, plan->call->op, plan->comm));
}

const struct method swp_collective_vendor = {
    .name = "vendor",
    .summary = "the collective of the MPI library",
    .source = "the MPI library",
    .usage = "",
    .procedures =
        {
            [SWP_BCAST] = {vendor_bcast},
            [SWP_GATHER] = {vendor_gather},
            [SWP_SCATTER] = {vendor_scatter},
            [SWP_REDUCE] = {vendor_reduce},
            [SWP_ALLREDUCE] = {vendor_allreduce},
            [SWP_ALLGATHER] = {vendor_allgather},
            [SWP_ALLGATHERV] = {vendor_allgatherv},
            [SWP_ALLTOALL] = {vendor_alltoall},
            [SWP_REDUCE_SCATTER_BLOCK] = {vendor_reduce_scatter_block},
        },
};
