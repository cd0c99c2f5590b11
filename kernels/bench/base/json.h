/* One JSON object a line, made in memory and written at once, so that a file normally never holds half a
   record. */
#ifndef BENCH_JSON_H
#define BENCH_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json {
  FILE *text; /* a memory stream */
  char *bytes;
  size_t length;
  bool first; /* of the innermost object or array */
};

void json_begin(struct json *json, const char *record);

void json_string(struct json *json, const char *key, const char *value);
void json_int(struct json *json, const char *key, int64_t value);
void json_double(struct json *json, const char *key, double value);
void json_bool(struct json *json, const char *key, bool value);

/* Arrays of a member of structures: the first member, the size of the structure, the number of structures. */
void json_ints(struct json *json, const char *key, const int *first, size_t stride, int count);
void json_doubles(struct json *json, const char *key, const double *first, size_t stride, int count);

/* '{' or '[' after a key (NULL in an array), and its end. */
void json_open(struct json *json, const char *key, char bracket);
void json_close(struct json *json, char bracket);

/* Ends the object and writes its line to the file. 0, or -1 with failure_text() set. */
int json_write(struct json *json, FILE *file, const char *path);

#endif
