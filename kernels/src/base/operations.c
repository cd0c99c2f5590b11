#include "operations.h"

#include <stddef.h>

enum { PEERS, ROOTED };
enum { MOVES, REDUCES };

const struct shape swp_shapes[OPERATIONS] = {
#define OPERATION(upper, lower, default_method, rooted, reduces, send, recv)                                 \
  [SWP_##upper] = {#lower, default_method, rooted, reduces, send, recv},
#include "switchpoint_operations.def"
#undef OPERATION
};

const char *swp_operation_name(int operation) {
  return operation >= 0 && operation < OPERATIONS ? swp_shapes[operation].name : NULL;
}
