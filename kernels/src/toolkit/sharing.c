#include "sharing.h"

#include "error.h"

#include <sched.h>
#include <stdio.h>

/* MPI progresses now and then: the other rank may be in a call of MPI that needs this one. After some 10 us
   the core is yielded, however many there are: threads of the application may need it. */
enum { POLLS_PER_PROGRESS = 64, POLLS_PER_YIELD = 16, PATIENT_POLLS = 1024 };

enum { MOST_BYTES = 1 << 26 };

uint64_t swp_calls_begin = UINT64_MAX - 1000;

enum { NODE_MPI, NODE_SHARED };
const char *const swp_node_choices[] = {[NODE_MPI] = "mpi", [NODE_SHARED] = "shared", NULL};

bool swp_is_by_memory(const struct spec *spec) {
  const struct parameter *parameters = spec->method->parameters;
  for (int i = 0; parameters[i].name != NULL; i++)
    if (parameters[i].choices == swp_node_choices)
      return spec->arguments[i].value == NODE_SHARED;
  return spec->method->node_memory;
}

static const char *polling_applicable(void) {
  return SWP_SIMULATED ? "it polls memory, during which simulated time stands still" : NULL;
}

const char *swp_sharing_applicable(const struct spec *spec, const struct features *features) {
  (void)spec;
  const char *why = features->shared_memory ? NULL : "the ranks are on several nodes, which share no memory";
  return why != NULL ? why : polling_applicable();
}

const char *swp_nodes_applicable(const struct features *features) {
  if (features->nodes == 1)
    return "all ranks are on one node";
  return features->ppn == 1 ? "each rank is on a node of its own" : NULL;
}

const char *swp_sharing_applicable_on_nodes(const struct features *features) {
  const char *why = swp_nodes_applicable(features);
  return why != NULL ? why : polling_applicable();
}

const char *swp_sharing_applicable_within_nodes(const struct spec *spec, const struct features *features) {
  return features->nodes == 1 ? swp_sharing_applicable(spec, features)
                              : swp_sharing_applicable_on_nodes(features);
}

void swp_sharing_name_node(void) {
  char text[ERROR_TEXT_BYTES];
  snprintf(text, sizeof text, "on its node, %.*s", ERROR_TEXT_BYTES - 20, swp_error_message());
  swp_explain_again(text, swp_error_mpi());
}

int swp_sharing_check(const struct swp_plan *plan, int64_t bytes) {
  return bytes <= MOST_BYTES
             ? SWP_SUCCESS
             : swp_fail(SWP_ERR_NOT_APPLICABLE, "%s: %lld bytes of shared memory; at most %d of a rank",
                        plan->spec.text, (long long)bytes, MOST_BYTES);
}

struct sharers swp_sharers(const struct swp_plan *plan, bool on_node) {
  const struct topology *topology = plan->topology;
  const int node = swp_topology_node(topology, plan->rank);
  if (on_node)
    return (struct sharers){topology->node_arena, true, node, swp_topology_node_size(topology, node)};
  return (struct sharers){topology->arena, false, node, plan->procs};
}

bool swp_is_sharer(const struct swp_plan *plan, const struct sharers *sharers, int rank) {
  return sharers->arena != NULL &&
         (!sharers->on_node || swp_topology_node(plan->topology, rank) == sharers->node);
}

int swp_sharer_of(const struct swp_plan *plan, const struct sharers *sharers, int rank) {
  return sharers->on_node ? swp_topology_local(plan->topology, rank) : rank;
}

int swp_sharer_rank(const struct swp_plan *plan, const struct sharers *sharers, int number) {
  return sharers->on_node ? swp_topology_rank(plan->topology, sharers->node, number) : number;
}

/* Probes for what nobody sends: MPICH and Open MPI return without progress if a message is there. */
int swp_sharing_progress(struct swp_plan *plan) {
  enum { TAG = 32767 };
  int error = SWP_SUCCESS, found;
  swp_plan_relax(plan);
  MPI_TRY(MPI_Iprobe(plan->rank, TAG, plan->comm, &found, MPI_STATUS_IGNORE));
done:
  return error;
}

int swp_await_slowly(struct swp_plan *plan, const call_number *number, uint64_t call) {
  int error = SWP_SUCCESS;
  for (int64_t polls = 1; !swp_has_reached(number, call); polls++) {
    if (polls % POLLS_PER_PROGRESS == 0)
      TRY(swp_sharing_progress(plan));
    else
      swp_plan_relax(plan);
    if (polls > PATIENT_POLLS && polls % POLLS_PER_YIELD == 0)
      sched_yield();
  }
done:
  return error;
}
