#include "estimate.h"

#include "choices.h"
#include "off.h"
#include "trial.h"

#include <stdio.h>
#include <string.h>

/* Predictions that differ by less than this factor count as equal (models/validation.py, CLOSE). */
static const double CLEARLY = 1.15;

/* An exchange is planned by the method, or that with the same messages. */
static int estimate_spec(struct swp_plan *plan, struct estimate *estimate, const struct spec *spec,
                         double *seconds) {
  struct swp_plan *trial = NULL;
  struct spec same;
  int error = SWP_SUCCESS;
  *seconds = -1;
  if (spec->method->estimated_as != NULL) {
    TRY(swp_spec_parse(plan->operation, spec->method->estimated_as, &same));
    spec = &same;
  }
  if (spec->method->estimate == NULL)
    return SWP_SUCCESS;
  if (plan->procs == 1 && swp_is_collective(plan->operation)) {
    *seconds = 0;
    return SWP_SUCCESS;
  }
  estimate->spec = spec;
  if (plan->operation == SWP_EXCHANGE)
    TRY(swp_trial_plan(plan, spec, estimate, &trial));
  TRY(spec->method->estimate(trial != NULL ? trial : plan, estimate, seconds));
done:
  swp_plan_free(&trial);
  return error;
}

/* Returns whether the model applies to ranks like these, which have cores of their own. */
static bool has_parameters(const struct model *model, const struct features *features) {
  if (model->cores > 0 && features->ppn > model->cores)
    return false;
  bool on = features->nodes == 1 || features->ppn > 1, off = features->nodes > 1;
  return (!on || model->pairs[PAIR_ON_NODE].nmessages > 0) &&
         (!off || model->pairs[PAIR_OFF_NODE].nmessages > 0);
}

static int begin(const struct swp_plan *plan, const struct model *model, struct estimate *estimate) {
  int error = SWP_SUCCESS;
  *estimate = (struct estimate){.model = model, .node = MPI_COMM_NULL};
  if (plan->operation == SWP_EXCHANGE && plan->features.nodes > 1 && model->pairs[PAIR_OFF_NODE].nrates > 0)
    MPI_TRY(MPI_Comm_split(plan->comm, swp_topology_node(plan->topology, plan->rank), 0, &estimate->node));
done:
  return error;
}

static void end(struct estimate *estimate) {
  if (estimate->node != MPI_COMM_NULL)
    MPI_Comm_free(&estimate->node);
}

int swp_estimate_seconds(struct swp_plan *plan, const struct model *model, const char *method,
                         double *seconds) {
  int error = SWP_SUCCESS;
  struct estimate estimate = {.node = MPI_COMM_NULL};
  struct spec spec;
  *seconds = -1;
  if (!has_parameters(model, &plan->features))
    return SWP_SUCCESS;
  TRY(swp_spec_parse(plan->operation, method, &spec));
  TRY(begin(plan, model, &estimate));
  TRY(estimate_spec(plan, &estimate, &spec, seconds));
done:
  end(&estimate);
  return error;
}

struct fastest {
  struct spec spec;
  double seconds, default_seconds; /* negative: none yet */
};

/* A method that cannot be planned is passed over, on all ranks. */
static int compare(struct swp_plan *plan, struct estimate *estimate, const char *text,
                   struct fastest *fastest) {
  struct spec spec;
  double seconds;
  int error = swp_spec_parse(plan->operation, text, &spec);
  if (error != SWP_SUCCESS || !swp_is_candidate(&spec, &plan->features))
    return error;
  error = estimate_spec(plan, estimate, &spec, &seconds);
  if (error != SWP_SUCCESS || seconds < 0)
    return error == SWP_ERR_MPI ? error : SWP_SUCCESS;
  bool is_default = strcmp(text, swp_shapes[plan->operation].default_method) == 0;
  if (is_default)
    fastest->default_seconds = seconds;
  if (is_default || (fastest->default_seconds > CLEARLY * seconds && seconds < fastest->seconds)) {
    fastest->spec = spec;
    fastest->seconds = seconds;
  }
  return SWP_SUCCESS;
}

static int compare_all(struct swp_plan *plan, struct estimate *estimate, struct fastest *fastest) {
  const struct method *method;
  int error = SWP_SUCCESS;
  char text[SPEC_BYTES];
  for (int i = 0; (method = swp_method_at(i)) != NULL; i++) {
    if (method->estimate == NULL)
      continue;
    for (int variant = 0;
         swp_method_variant(method, plan->operation, variant, plan->procs, text, sizeof text); variant++)
      TRY(compare(plan, estimate, text, fastest));
  }
done:
  return error;
}

int swp_estimate_method(struct swp_plan *plan, const struct swp_table *table, struct spec *spec,
                        char *evidence, bool *found) {
  int error = SWP_SUCCESS;
  struct estimate estimate = {.node = MPI_COMM_NULL};
  struct fastest fastest = {.seconds = -1, .default_seconds = -1};
  *found = false;
  if (!has_parameters(&table->model, &plan->features))
    return SWP_SUCCESS;
  TRY(begin(plan, &table->model, &estimate));
  TRY(compare_all(plan, &estimate, &fastest));
  *found = fastest.default_seconds >= 0;
  if (*found) {
    *spec = fastest.spec;
    int length =
        snprintf(evidence, EVIDENCE_BYTES, "the model of %s: estimated %.3g s", table->path, fastest.seconds);
    if (fastest.seconds < fastest.default_seconds)
      snprintf(evidence + length, EVIDENCE_BYTES - (size_t)length, ", %s %.3g s",
               swp_shapes[plan->operation].default_method, fastest.default_seconds);
  }
done:
  end(&estimate);
  return error;
}
