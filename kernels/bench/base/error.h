/* The text of a local failure, kept until all ranks have agreed on it (team_agree). */
#ifndef BENCH_ERROR_H
#define BENCH_ERROR_H

/* Keeps the text, unless an earlier one is kept already, and returns -1. */
int failure_set(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Puts words before the kept text, which say where it happened. */
void failure_place(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The kept text, "" when nothing failed here. */
const char *failure_text(void);

/* A path as it can be printed, until the next call. */
const char *path_shown(const char *path);

/* Discards the kept text, if the failure was handled and the job continues. */
void failure_clear(void);

#endif
