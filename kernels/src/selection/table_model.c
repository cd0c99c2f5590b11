/* The lines of a method table that carry a model's parameters. Grammar: docs/reference/table.md. */
#include "table_reader.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

enum { VALUES = 6, DIGITS = 15, EXPONENT_MOST = 40 };

static const char *const pair_names[PAIR_KINDS] = {
    [PAIR_ON_NODE] = "on_node", [PAIR_OFF_NODE] = "off_node", [PAIR_ALONE] = "alone"};

/* The subjects of lines. A line needs all fields of its subject, each once; `at` is the place of the only one
   in the model, or in that of the pair. */
static const struct kind {
  const char *name;
  bool of_pair;
  size_t at;
  const char *fields[VALUES + 1];
} kinds[] = {
    {"message", true, 0, {"up_to", "alpha_s", "step_s", "receive_s", "per_byte_s", "beta_s"}},
    {"rate", true, 0, {"up_to", "b_max", "b_inj", "b_node", "processes"}},
    {"synchronous", true, offsetof(struct pair_model, penalty_s), {"penalty_s"}},
    {"copy", false, offsetof(struct model, copy_s_per_byte), {"s_per_byte"}},
    {"reduce", false, offsetof(struct model, reduce_s_per_byte), {"s_per_byte"}},
    {"fence", false, offsetof(struct model, fence_barriers), {"barriers"}},
    {"node", false, offsetof(struct model, cores), {"cores"}},
};

/* The first kinds by their place above; they have code of their own. */
enum { MESSAGE, RATE, SYNCHRONOUS, KINDS = sizeof kinds / sizeof kinds[0] };

/* A parsed line: the values by their place among the fields. */
struct said {
  int pair; /* -1: not yet */
  bool given[VALUES];
  double values[VALUES];
};

static const char *read_digits(const char *text, double *digits, int *count) {
  for (*count = 0; isdigit((unsigned char)text[*count]) && *count < DIGITS; (*count)++)
    *digits = *digits * 10 + (text[*count] - '0');
  return text + *count;
}

/* A decimal number with an exponent, whatever the locale; false when it is none. */
static bool read_real(const char *text, bool is_signed, double *value) {
  bool negative = is_signed && *text == '-', falls;
  int whole, decimals = 0, digits = 0;
  double exponent = 0, scale = 1;
  *value = 0;
  text = read_digits(text + negative, value, &whole);
  if (whole > 0 && *text == '.') {
    text = read_digits(text + 1, value, &decimals);
    if (decimals == 0)
      return false;
  }
  if (whole > 0 && *text == 'e') {
    falls = text[1] == '-';
    text = read_digits(text + 1 + (falls || text[1] == '+'), &exponent, &digits);
    if (digits == 0 || exponent > EXPONENT_MOST)
      return false;
    exponent = falls ? -exponent : exponent;
  }
  exponent -= decimals;
  for (int n = (int)(exponent < 0 ? -exponent : exponent); n > 0; n--)
    scale *= 10;
  *value = (negative ? -*value : *value);
  *value = exponent < 0 ? *value / scale : *value * scale;
  return whole > 0 && *text == '\0';
}

static int parse_value(struct reader *reader, const struct kind *kind, const char *key, const char *text,
                       struct said *said) {
  int i = 0;
  while (kind->fields[i] != NULL && strcmp(key, kind->fields[i]) != 0)
    i++;
  if (kind->fields[i] == NULL)
    return BROKEN(reader, "unknown field '%s' of model %s", key, kind->name);
  if (said->given[i])
    return BROKEN(reader, "%s is given twice", key);
  said->given[i] = true;
  if (strcmp(key, "up_to") == 0 && strcmp(text, "*") == 0) {
    said->values[i] = INFINITY;
    return SWP_SUCCESS;
  }
  if (!read_real(text, strcmp(key, "b_inj") == 0, &said->values[i]))
    return BROKEN(reader, "malformed number '%s' of %s; write it as 1.5e-07", text, key);
  return SWP_SUCCESS;
}

static int parse_pair(struct reader *reader, const char *text, struct said *said) {
  if (said->pair >= 0)
    return BROKEN(reader, "pair is given twice");
  for (int pair = 0; pair < PAIR_KINDS; pair++)
    if (strcmp(text, pair_names[pair]) == 0)
      said->pair = pair;
  return said->pair >= 0 ? SWP_SUCCESS
                         : BROKEN(reader, "unknown pair '%s'; write on_node, off_node or alone", text);
}

static int parse_fields(struct reader *reader, const struct kind *kind, char *line, struct said *said) {
  for (char *key, *value;;) {
    int error = swp_table_field(reader, &line, &key, &value);
    if (error == SWP_SUCCESS && key == NULL)
      break;
    if (error == SWP_SUCCESS && kind->of_pair && strcmp(key, "pair") == 0)
      error = parse_pair(reader, value, said);
    else if (error == SWP_SUCCESS)
      error = parse_value(reader, kind, key, value, said);
    if (error != SWP_SUCCESS)
      return error;
  }
  if (kind->of_pair && said->pair < 0)
    return BROKEN(reader, "model %s needs pair=", kind->name);
  for (int i = 0; kind->fields[i] != NULL; i++)
    if (!said->given[i])
      return BROKEN(reader, "model %s needs %s=", kind->name, kind->fields[i]);
  return SWP_SUCCESS;
}

/* Protocols follow each other by size. */
static int check_next(struct reader *reader, const char *kind, int count, double before, double up_to) {
  if (count == MODEL_PROTOCOLS)
    return BROKEN(reader, "more than %d lines of model %s for one pair", MODEL_PROTOCOLS, kind);
  if (count > 0 && !(up_to > before))
    return BROKEN(reader, "model %s: up_to must increase from line to line", kind);
  return SWP_SUCCESS;
}

static int keep_message(struct reader *reader, const double *v, struct pair_model *pair) {
  double before = pair->nmessages > 0 ? pair->messages[pair->nmessages - 1].up_to_bytes : 0;
  int error = check_next(reader, kinds[MESSAGE].name, pair->nmessages, before, v[0]);
  if (error == SWP_SUCCESS)
    pair->messages[pair->nmessages++] = (struct message_cost){v[0], v[1], v[2], v[3], v[4], v[5]};
  return error;
}

static int keep_rate(struct reader *reader, const double *v, struct pair_model *pair) {
  double before = pair->nrates > 0 ? pair->rates[pair->nrates - 1].up_to_bytes : 0;
  int error = check_next(reader, kinds[RATE].name, pair->nrates, before, v[0]);
  if (error != SWP_SUCCESS)
    return error;
  if (v[4] < 1 || (v[1] > 0 && v[1] + (v[4] - 1) * v[2] <= 0))
    return BROKEN(reader, "the rate of %.0f processes, b_max + (processes - 1) b_inj, must be positive",
                  v[4]);
  pair->rates[pair->nrates++] = (struct rates){v[0], v[1], v[2], v[3], v[4]};
  return SWP_SUCCESS;
}

static int keep(struct reader *reader, int kind, const struct said *said) {
  struct model *model = &reader->table->model;
  const bool of_pair = kinds[kind].of_pair;
  const int index = of_pair ? said->pair : 0;
  struct pair_model *pair = &model->pairs[index];
  if (kind == MESSAGE)
    return keep_message(reader, said->values, pair);
  if (kind == RATE)
    return keep_rate(reader, said->values, pair);
  unsigned *given = &reader->model_lines[index];
  if (*given & 1u << kind)
    return BROKEN(reader, "model %s is given twice", kinds[kind].name);
  *given |= 1u << kind;
  if (kind == SYNCHRONOUS)
    pair->has_penalty = true;
  memcpy((char *)(of_pair ? (void *)pair : model) + kinds[kind].at, said->values, sizeof said->values[0]);
  return SWP_SUCCESS;
}

int swp_table_model(struct reader *reader, char *line) {
  line += strspn(line, " \t");
  size_t length = strcspn(line, " \t");
  struct said said = {.pair = -1};
  for (int kind = 0; kind < KINDS; kind++)
    if (strlen(kinds[kind].name) == length && memcmp(kinds[kind].name, line, length) == 0) {
      int error = parse_fields(reader, &kinds[kind], line + length, &said);
      return error == SWP_SUCCESS ? keep(reader, kind, &said) : error;
    }
  return BROKEN(reader,
                "expected model message, rate, synchronous, copy, reduce, fence or node, found '%.*s'",
                (int)(length < 40 ? length : 40), line);
}

int swp_table_model_end(struct reader *reader) {
  for (int pair = 0; pair < PAIR_KINDS; pair++) {
    const struct pair_model *of = &reader->table->model.pairs[pair];
    bool messages_end = of->nmessages == 0 || isinf(of->messages[of->nmessages - 1].up_to_bytes);
    bool rates_end = of->nrates == 0 || isinf(of->rates[of->nrates - 1].up_to_bytes);
    if (!messages_end || !rates_end)
      return BROKEN(reader, "model %s pair=%s has no line with up_to=*",
                    kinds[messages_end ? RATE : MESSAGE].name, pair_names[pair]);
    if (of->nmessages == 0 && (of->nrates > 0 || of->has_penalty))
      return BROKEN(reader, "model pair=%s has no message line", pair_names[pair]);
  }
  return SWP_SUCCESS;
}
