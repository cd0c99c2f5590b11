/* What files and users say, quoted in a message of one line. */
#ifndef SWP_PRINTABLE_H
#define SWP_PRINTABLE_H

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The bytes of the character at the start of a text if a terminal obeys it, or it changes the direction of
   writing: those that tuner/files.py escapes, too. 0: it is another. */
static inline size_t swp_control(const char *text) {
  static const char *const ranges[][2] = {
      {"\x01", "\x1f"},                 /* C0 */
      {"\x7f", "\x7f"},                 /* DEL */
      {"\xc2\x80", "\xc2\x9f"},         /* C1: U+0080 to U+009F */
      {"\xd8\x9c", "\xd8\x9c"},         /* U+061C */
      {"\xe2\x80\x8e", "\xe2\x80\x8f"}, /* U+200E, U+200F */
      {"\xe2\x80\xa8", "\xe2\x80\xae"}, /* U+2028 to U+202E */
      {"\xe2\x81\xa6", "\xe2\x81\xa9"}, /* U+2066 to U+2069 */
  };
  for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
    const size_t bytes = strlen(ranges[i][0]);
    if (strncmp(text, ranges[i][0], bytes) >= 0 && strncmp(text, ranges[i][1], bytes) <= 0)
      return bytes;
  }
  return 0;
}

/* Copies a text, such characters as \x1b or \u202e, and cuts it to `room` bytes with its end. */
static inline void swp_printable(const char *text, char *copy, size_t room) {
  size_t used = 0;
  while (*text != '\0' && used + sizeof "\\u202e" <= room) {
    const unsigned char *c = (const unsigned char *)text;
    const size_t bytes = swp_control(text);
    if (bytes == 0) {
      copy[used++] = *text;
    } else {
      unsigned code = bytes == 1 ? c[0] : c[0] & 0xffu >> (bytes + 1);
      for (size_t i = 1; i < bytes; i++)
        code = code << 6 | (c[i] & 0x3fu);
      used += (size_t)snprintf(copy + used, room - used, code < 0x100 ? "\\x%02x" : "\\u%04x", code);
    }
    text += bytes == 0 ? 1 : bytes;
  }
  copy[used] = '\0';
}

#endif
