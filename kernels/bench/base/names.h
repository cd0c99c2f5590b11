/* Names that raw files hold. */
#ifndef BENCH_NAMES_H
#define BENCH_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the tuner keeps a raw file with this name (tuner/domain/records.py): it is not too long, and has
   neither control characters nor one of `without`. Local. */
bool name_usable(const char *name, size_t most_bytes, const char *without);

#endif
