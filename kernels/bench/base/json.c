#include "json.h"

#include "error.h"
#include "team.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void separate(struct json *json) {
  if (!json->first)
    fputs(", ", json->text);
  json->first = false;
}

/* The length of the UTF-8 sequence at text, 0 when there is none. */
static int utf8_length(const unsigned char *text) {
  const int length = text[0] < 0x80 ? 1 : text[0] < 0xc2 ? 0 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
  if (text[0] > 0xf4 || (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
      (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
    return 0;
  for (int i = 1; i < length; i++)
    if ((text[i] & 0xc0) != 0x80)
      return 0;
  return length;
}

static void quote(struct json *json, const char *value) {
  fputc('"', json->text);
  for (const unsigned char *at = (const unsigned char *)value; *at;) {
    const int length = utf8_length(at);
    if (length == 0 || *at < 0x20 || *at == 0x7f)
      fprintf(json->text, "\\u%04x", length ? *at : 0xfffd);
    else if (*at == '"' || *at == '\\')
      fprintf(json->text, "\\%c", *at);
    else
      fwrite(at, 1, (size_t)length, json->text);
    at += length ? length : 1;
  }
  fputc('"', json->text);
}

static void name(struct json *json, const char *key) {
  separate(json);
  if (key)
    fprintf(json->text, "\"%s\": ", key);
}

void json_begin(struct json *json, const char *record) {
  *json = (struct json){.first = true};
  json->text = open_memstream(&json->bytes, &json->length);
  if (!json->text)
    team_fail("out of memory: cannot make a record");
  fputc('{', json->text);
  json_string(json, "record", record);
}

void json_string(struct json *json, const char *key, const char *value) {
  name(json, key);
  quote(json, value);
}

void json_int(struct json *json, const char *key, int64_t value) {
  name(json, key);
  fprintf(json->text, "%lld", (long long)value);
}

void json_double(struct json *json, const char *key, double value) {
  name(json, key);
  fprintf(json->text, "%.12g", value);
}

void json_bool(struct json *json, const char *key, bool value) {
  name(json, key);
  fputs(value ? "true" : "false", json->text);
}

void json_ints(struct json *json, const char *key, const int *first, size_t stride, int count) {
  json_open(json, key, '[');
  for (int i = 0; i < count; i++)
    json_int(json, NULL, *(const int *)(const void *)((const char *)first + (size_t)i * stride));
  json_close(json, ']');
}

void json_doubles(struct json *json, const char *key, const double *first, size_t stride, int count) {
  json_open(json, key, '[');
  for (int i = 0; i < count; i++)
    json_double(json, NULL, *(const double *)(const void *)((const char *)first + (size_t)i * stride));
  json_close(json, ']');
}

void json_open(struct json *json, const char *key, char bracket) {
  name(json, key);
  fputc(bracket, json->text);
  json->first = true;
}

void json_close(struct json *json, char bracket) {
  fputc(bracket, json->text);
  json->first = false;
}

int json_write(struct json *json, FILE *file, const char *path) {
  fputs("}\n", json->text);
  int status = 0;
  if (fclose(json->text))
    team_fail("out of memory: cannot make a record");
  errno = 0;
  if (fwrite(json->bytes, 1, json->length, file) != json->length || fflush(file))
    status = failure_set("cannot write %s: %s", path, strerror(errno));
  free(json->bytes);
  return status;
}
