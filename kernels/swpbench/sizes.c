#include "command_line.h"

#include "error.h"

#include <stdlib.h>
#include <string.h>

static const int64_t SIZE_MOST = INT64_C(1) << 40;

enum { DIGITS_MOST = 13 };

/* Reads "64", "64K", "1M" or "1G" up to a character of `ends`; NULL when it is none. */
static const char *parse_size(const char *text, const char *ends, int64_t *bytes) {
  const char *end = text + strspn(text, "0123456789");
  if (end == text || end - text > DIGITS_MOST)
    return NULL;
  const int64_t number = strtoll(text, NULL, 10);
  const int64_t unit = *end == 'K' ? 1 << 10 : *end == 'M' ? 1 << 20 : *end == 'G' ? 1 << 30 : 1;
  end += unit > 1;
  if (number < 1 || number > SIZE_MOST / unit || !strchr(ends, *end))
    return NULL;
  *bytes = number * unit;
  return end;
}

/* Reads one element, SIZE or FIRST:LAST:xFACTOR; NULL when it is neither. */
static const char *parse_element(const char *text, int64_t *first, int64_t *last, int64_t *factor) {
  text = parse_size(text, ":,", first);
  *last = *first;
  *factor = 2;
  if (!text || *text != ':')
    return text;
  text = parse_size(text + 1, ":", last);
  if (!text || text[0] != ':' || text[1] != 'x')
    return NULL;
  text = parse_size(text + 2, ",", factor);
  return *factor < 2 || *last < *first ? NULL : text;
}

int sizes_parse(const char *text, struct items *sizes) {
  *sizes = (struct items){0};
  for (const char *rest = text; rest;) {
    int64_t first = 0, last = 0, factor = 0;
    rest = parse_element(rest, &first, &last, &factor);
    if (!rest)
      return failure_set("--sizes \"%s\": write a list of SIZE or FIRST:LAST:xFACTOR, such as 8:1M:x2,3000",
                         text);
    for (int64_t size = first; size <= last; size *= factor) {
      items_add(sizes, size);
      if (size > last / factor)
        break;
    }
    rest = *rest == ',' ? rest + 1 : NULL;
  }
  items_distinct(sizes);
  return 0;
}
