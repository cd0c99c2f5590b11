#include "error.h"

#include "printable.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char text[1024];

int failure_set(const char *format, ...) {
  if (text[0] == '\0') {
    char what[sizeof text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    swp_printable(what, text, sizeof text);
  }
  return -1;
}

void failure_place(const char *format, ...) {
  char what[sizeof text], place[sizeof text / 4];
  memcpy(what, text, sizeof what);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(place, sizeof place, format, arguments);
  va_end(arguments);
  swp_printable(place, text, sizeof place);
  const size_t used = strlen(text);
  snprintf(text + used, sizeof text - used, ": %.*s", (int)(sizeof text - used) - 3, what);
}

const char *failure_text(void) {
  return text;
}

const char *path_shown(const char *path) {
  static char shown[4096];
  swp_printable(path, shown, sizeof shown);
  return shown;
}

void failure_clear(void) {
  text[0] = '\0';
}
