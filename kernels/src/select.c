/* Selection: which method a plan uses, and why. */
#include "select.h"

#include "estimate.h"
#include "off.h"
#include "remember.h"
#include "table.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *swp_default_method(enum swp_operation operation) {
  return operation == SWP_EXCHANGE ? "direct" : operation == SWP_DISCOVERY ? "pex" : "vendor";
}

/* An unknown value (negative) is only within an unbounded range. */
static bool within(const struct range *range, double value) {
  return value >= range->low && value <= range->high ? true : range->low <= 0 && isinf(range->high);
}

/* Executions of unknown number are taken for many. */
static bool is_for(const struct rule *rule, const struct features *features) {
  double executions = features->executions > 0 ? (double)features->executions : INFINITY;
  return rule->operation == features->operation && within(&rule->ranges[CONDITION_NODES], features->nodes) &&
         within(&rule->ranges[CONDITION_PPN], features->ppn) &&
         within(&rule->ranges[CONDITION_EXECUTIONS], executions);
}

bool swp_rule_is_for(const struct rule *rule, const struct features *features) {
  return !rule->off && is_for(rule, features);
}

static bool holds(const struct rule *rule, const struct features *features) {
  return is_for(rule, features) && within(&rule->ranges[CONDITION_MMAX], (double)features->mmax) &&
         within(&rule->ranges[CONDITION_MAVG], features->mavg) &&
         within(&rule->ranges[CONDITION_BYTES], (double)features->bytes);
}

const struct rule *swp_rule_find(const swp_table *table, const struct features *features,
                                 const struct rule **passed, const char **why) {
  if (passed != NULL)
    *passed = NULL;
  for (int i = 0; i < table->nrules; i++) {
    const struct rule *rule = &table->rules[i];
    if (!holds(rule, features))
      continue;
    const char *unusable =
        rule->off ? "off at this site, by " SWP_OFF : swp_not_applicable(&rule->spec, features);
    if (unusable == NULL)
      return rule;
    if (passed != NULL && *passed == NULL)
      *passed = rule, *why = unusable;
  }
  return NULL;
}

static bool select_from_table(struct swp_plan *plan, const swp_table *table) {
  const char *why;
  const struct rule *passed, *rule = swp_rule_find(table, &plan->features, &passed, &why);
  if (passed != NULL && plan->passed_over[0] == '\0')
    snprintf(plan->passed_over, sizeof plan->passed_over, "rule %s:%d is passed over: %s: %s", table->path,
             passed->line, passed->spec.text, why);
  if (rule == NULL)
    return false;
  plan->spec = rule->spec;
  snprintf(plan->chosen_by, sizeof plan->chosen_by, "rule %s:%d", table->path, rule->line);
  return true;
}

int swp_environment_table(MPI_Comm comm, int rank, const char *variable, bool optional, swp_table **table) {
  int error = SWP_SUCCESS, length = 0;
  char path[4096] = "";
  const char *value = getenv(variable);
  *table = NULL;
  if (rank == 0 && value != NULL && !(optional && access(value, F_OK) != 0 && errno == ENOENT))
    length = (int)(strlen(value) < sizeof path ? strlen(value) : sizeof path);
  MPI_TRY(MPI_Bcast(&length, 1, MPI_INT, 0, comm));
  if (length == 0)
    return SWP_SUCCESS;
  if (length == (int)sizeof path)
    return swp_fail(SWP_ERR_TABLE, "%s is over %zu characters", variable, sizeof path - 1);
  if (rank == 0)
    memcpy(path, value, (size_t)length);
  MPI_TRY(MPI_Bcast(path, length, MPI_CHAR, 0, comm));
  TRY(swp_table_share(comm, path, table));
done:
  return error;
}

/* By the first rule, or else by the model. NULL, or what has neither: the default. */
static int select_by(struct swp_plan *plan, const swp_table *table) {
  int error = SWP_SUCCESS;
  bool found = false;
  if (table != NULL && select_from_table(plan, table))
    return SWP_SUCCESS;
  if (table != NULL)
    TRY(swp_estimate_method(plan, table, &found));
  if (found)
    return SWP_SUCCESS;
  TRY(swp_spec_parse(plan->operation, swp_default_method(plan->operation), &plan->spec));
  if (table == NULL)
    snprintf(plan->chosen_by, sizeof plan->chosen_by, "default: no table");
  else
    snprintf(plan->chosen_by, sizeof plan->chosen_by, "default: no %srule of %s matches",
             plan->passed_over[0] != '\0' ? "other " : "", table->path);
done:
  return error;
}

int swp_select_by_race(struct swp_plan *plan, bool *found) {
  int error = SWP_SUCCESS;
  bool remembers;
  struct outcome *outcome = swp_allocate(1, sizeof *outcome, NULL);
  *found = false;
  TRY(swp_agree(plan->comm, outcome != NULL ? SWP_SUCCESS : swp_plan_no_memory(plan)));
  TRY(swp_remember_possible(plan, &remembers));
  TRY(swp_race(plan, outcome));
  *found = outcome->decided;
  if (!*found)
    goto done;
  plan->spec = *swp_outcome_for(outcome, plan->hints.executions);
  snprintf(plan->chosen_by, sizeof plan->chosen_by, "%s", outcome->evidence);
  if (remembers)
    TRY(swp_remember(plan, outcome));
done:
  swp_release(outcome);
  return error;
}

static void append_reason(struct swp_plan *plan, const char *words) {
  size_t used = strlen(plan->chosen_by);
  snprintf(plan->chosen_by + used, sizeof plan->chosen_by - used, "%s", words);
}

static int select_auto(struct swp_plan *plan) {
  int error = SWP_SUCCESS;
  bool found = false;
  swp_table *users = NULL, *table = NULL;
  TRY(swp_environment_table(plan->comm, plan->rank, SWP_USER_TABLE, true, &users));
  if (users != NULL && select_from_table(plan, users))
    goto done;
  if ((plan->hints.flags & SWP_MEASURE) != 0)
    TRY(swp_select_by_race(plan, &found));
  if (found)
    goto done;
  if (plan->hints.table == NULL)
    TRY(swp_environment_table(plan->comm, plan->rank, "SWITCHPOINT_TABLE", false, &table));
  TRY(select_by(plan, plan->hints.table != NULL ? plan->hints.table : table));
  if ((plan->hints.flags & SWP_MEASURE) != 0)
    append_reason(plan, "; budget_s is too short to measure");
done:
  swp_table_free(&users);
  swp_table_free(&table);
  return error;
}

int swp_select_method(struct swp_plan *plan, const char *method) {
  if (method == NULL || strcmp(method, "auto") == 0)
    return select_auto(plan);
  int error = swp_spec_parse(plan->operation, method, &plan->spec);
  if (error == SWP_SUCCESS)
    error = swp_off_refuse(&plan->spec);
  if (error != SWP_SUCCESS)
    return error;
  const char *why = swp_not_applicable(&plan->spec, &plan->features);
  if (why != NULL)
    return swp_fail(SWP_ERR_NOT_APPLICABLE, "%s: %s", plan->spec.text, why);
  snprintf(plan->chosen_by, sizeof plan->chosen_by, "caller");
  return SWP_SUCCESS;
}
