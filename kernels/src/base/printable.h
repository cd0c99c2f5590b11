/* What files and users say, quoted in a message of one line. */
#ifndef SWP_PRINTABLE_H
#define SWP_PRINTABLE_H

#include <stddef.h>
#include <stdio.h>

/* Copies a text, control characters as \x1b, and cuts it to `room` bytes with its end. */
static inline void swp_printable(const char *text, char *copy, size_t room) {
  size_t used = 0;
  for (; *text != '\0' && used + sizeof "\\x1b" <= room; text++) {
    const unsigned char c = (unsigned char)*text;
    if (c < ' ' || c == 0x7f)
      used += (size_t)snprintf(copy + used, room - used, "\\x%02x", (unsigned)c);
    else
      copy[used++] = *text;
  }
  copy[used] = '\0';
}

#endif
