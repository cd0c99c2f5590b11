#include "parsers.h"

#include "allocate.h"
#include "off.h"
#include "table.h"

#include <stdlib.h>
#include <string.h>

static bool table(char *text, size_t length) {
  swp_table *table = NULL;
  const char *path = as_file(text, length);
  char *content;
  int64_t read;
  int error = swp_table_text(path, &content, &read);
  if (error == SWP_SUCCESS)
    error = swp_table_parse(path, content, (size_t)read, &table);
  insist((error == SWP_SUCCESS) == (table != NULL), "a table that is refused, or none");
  swp_table_free(&table);
  swp_release(content);
  return error == SWP_SUCCESS;
}

/* Reads the text as a method of any operation. */
static bool spec(char *text, size_t length) {
  (void)length;
  bool known = false;
  for (int operation = 0; operation < OPERATIONS; operation++) {
    struct spec spec, again;
    if (swp_spec_parse((enum swp_operation)operation, text, &spec) != SWP_SUCCESS)
      continue;
    known = true;
    insist(swp_spec_parse((enum swp_operation)operation, spec.text, &again) == SWP_SUCCESS,
           "a spec cannot be read as it is written");
    insist(strcmp(spec.text, again.text) == 0, "a spec is written in two ways");
  }
  return known;
}

static bool off(char *text, size_t length) {
  (void)length;
  setenv(SWP_OFF, text, 1);
  return swp_off_check() == SWP_SUCCESS;
}

const struct parser library_parsers[] = {{"off", off}, {"spec", spec}, {"table", table}, {NULL, NULL}};
