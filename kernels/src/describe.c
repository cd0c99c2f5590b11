/* What a plan tells about itself. */
#include "choices.h"

#include <stdio.h>

int swp_plan_describe(const swp_plan *plan, char *text, size_t length) {
  if (plan == NULL || text == NULL || length == 0)
    return swp_fail(SWP_ERR_ARGUMENT, "swp_plan_describe: plan and text must be given, length be at least 1");
  const char *layout = plan->layout;
  int used = snprintf(text, length, "%s %s%s%s, chosen by ", swp_operation_names[plan->operation],
                      plan->spec.text, layout[0] != '\0' ? ", " : "", layout);
  if ((size_t)used >= length)
    return SWP_SUCCESS;
  if (plan->choices != NULL)
    swp_choices_explain(plan, text + used, length - (size_t)used);
  else
    snprintf(text + used, length - (size_t)used, "%s%s%s", plan->chosen_by,
             plan->passed_over[0] != '\0' ? "; " : "", plan->passed_over);
  return SWP_SUCCESS;
}

const char *swp_plan_method(const swp_plan *plan) {
  return plan != NULL ? plan->spec.text : "";
}

const char *swp_plan_passed(const swp_plan *plan, const char **why) {
  if (plan == NULL || plan->choices == NULL || why == NULL)
    return NULL;
  const struct choice *passed = swp_choices_passed(plan->choices, &plan->features, why);
  return passed != NULL ? passed->spec.text : NULL;
}

int swp_plan_statistics(const swp_plan *plan, struct swp_statistics *problem, struct swp_statistics *method) {
  if (plan == NULL)
    return swp_fail(SWP_ERR_ARGUMENT, "swp_plan_statistics: plan is NULL");
  if (problem != NULL)
    *problem = plan->problem_statistics;
  if (method != NULL)
    *method = plan->statistics;
  return SWP_SUCCESS;
}

int swp_plan_stage(const swp_plan *plan, int stage, int64_t *messages, int64_t *messages_max, int64_t *bytes,
                   int64_t *bytes_max) {
  if (plan == NULL || stage < 0 || stage >= plan->nstages)
    return swp_fail(SWP_ERR_ARGUMENT, "swp_plan_stage: no stage %d", stage);
  const struct stage *s = &plan->stages[stage];
  if (messages != NULL)
    *messages = s->messages_total;
  if (messages_max != NULL)
    *messages_max = s->messages_max;
  if (bytes != NULL)
    *bytes = s->bytes_total;
  if (bytes_max != NULL)
    *bytes_max = s->bytes_max;
  return SWP_SUCCESS;
}
