/* The list of methods that are off. */
#include "off.h"

#include "error.h"
#include "sharing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char SEPARATORS[] = " ;";
static const char NODE_MEMORY[] = "node-memory"; /* stands for all that take such memory */

/* The next word of the list, and its length; 0 behind the last. */
static size_t next_word(const char **word) {
  *word += strspn(*word, SEPARATORS);
  return strcspn(*word, SEPARATORS);
}

static const char *list(void) {
  const char *text = getenv(SWP_OFF);
  return text != NULL ? text : "";
}

static bool is_text(const char *text, const char *word, size_t length) {
  return strlen(text) == length && memcmp(text, word, length) == 0;
}

static bool is_meant(const struct spec *spec, const char *word, size_t length) {
  return is_text(spec->method->name, word, length) || is_text(spec->text, word, length) ||
         (is_text(NODE_MEMORY, word, length) && swp_is_by_memory(spec));
}

bool swp_is_off(const struct spec *spec) {
  const char *word = list();
  for (size_t length; (length = next_word(&word)) > 0; word += length)
    if (is_meant(spec, word, length))
      return true;
  return false;
}

bool swp_is_candidate(const struct spec *spec, const struct features *features) {
  return !swp_is_off(spec) && swp_not_applicable(spec, features) == NULL;
}

int swp_off_refuse(const struct spec *spec) {
  return swp_is_off(spec) ? swp_fail(SWP_ERR_NOT_APPLICABLE, "%s: %s", spec->text, SWP_WHY_OFF) : SWP_SUCCESS;
}

static int check_word(const char *word, size_t length) {
  char text[SPEC_BYTES] = "", usual[SPEC_BYTES] = "";
  struct spec spec;
  bool known = is_text(NODE_MEMORY, word, length);
  if (length < sizeof text)
    memcpy(text, word, length);
  for (int operation = 0; operation < OPERATIONS; operation++) {
    if (strcmp(text, swp_shapes[operation].default_method) == 0)
      return swp_fail(SWP_ERR_METHOD, "%s: %s cannot be off: it is the method that others fall back to",
                      SWP_OFF, text);
    if (swp_spec_parse((enum swp_operation)operation, text, &spec) != SWP_SUCCESS)
      continue;
    known = known || is_meant(&spec, word, length);
    snprintf(usual, sizeof usual, "%s", spec.text);
  }
  if (!known && *usual != '\0')
    return swp_fail(SWP_ERR_METHOD, "%s: write %s for %s", SWP_OFF, usual, text);
  return known ? SWP_SUCCESS
               : swp_fail(SWP_ERR_METHOD, "%s: no method '%.*s'; swpbench list shows all", SWP_OFF,
                          (int)(length < SPEC_BYTES ? length : SPEC_BYTES), word);
}

int swp_off_check(void) {
  const char *word = list();
  for (size_t length; (length = next_word(&word)) > 0; word += length) {
    int error = check_word(word, length);
    if (error != SWP_SUCCESS)
      return error;
  }
  return SWP_SUCCESS;
}
