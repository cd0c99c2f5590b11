#include "sync.h"

#include <string.h>

#define SCHEME(name) extern const struct sync_scheme sync_scheme_##name;
#include "sync/schemes.def"
#undef SCHEME

#define SCHEME(name) &sync_scheme_##name,
static const struct sync_scheme *const schemes[] = {
#include "sync/schemes.def"
    NULL};
#undef SCHEME

const struct sync_scheme *sync_scheme(int index) {
  return schemes[index];
}

const struct sync_scheme *sync_choose(const struct team *team, const char *name) {
  if (!*name)
    name = team->machines == 1 ? "window" : "barrier";
  for (int i = 0; schemes[i]; i++)
    if (strcmp(schemes[i]->name, name) == 0)
      return schemes[i];
  return NULL;
}

struct sync sync_create(const struct sync_scheme *scheme, const struct team *team) {
  return (struct sync){.scheme = scheme, .team = team};
}
