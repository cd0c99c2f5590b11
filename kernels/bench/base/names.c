#include "names.h"

#include "printable.h"

#include <string.h>

bool name_usable(const char *name, size_t most_bytes, const char *without) {
  bool usable = strlen(name) <= most_bytes;
  for (const char *at = name; *at; at++)
    usable = usable && !strchr(without, *at) && !swp_control(at);
  return usable;
}
