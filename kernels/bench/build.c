/* What CMake knows of the build; the commit is looked up at every build. */
#include "facts.h"

#include "commit.h"

const char *build_compiler(void) {
  return BUILD_COMPILER;
}

const char *build_flags(void) {
  return BUILD_FLAGS;
}

const char *build_commit(void) {
  return BUILD_COMMIT;
}
