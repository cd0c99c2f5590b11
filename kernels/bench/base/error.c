#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char text[1024];

int failure_set(const char *format, ...) {
  if (text[0] == '\0') {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
  }
  return -1;
}

void failure_place(const char *format, ...) {
  char what[sizeof text];
  memcpy(what, text, sizeof what);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text / 4, format, arguments);
  va_end(arguments);
  const size_t used = strlen(text);
  snprintf(text + used, sizeof text - used, ": %.*s", (int)(sizeof text - used) - 3, what);
}

const char *failure_text(void) {
  return text;
}

void failure_clear(void) {
  text[0] = '\0';
}
