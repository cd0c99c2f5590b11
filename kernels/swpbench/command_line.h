/* The command lines of `swpbench run`, `swpbench probe`, `swpbench overlap` and `swpbench soak`. */
#ifndef SWPBENCH_COMMAND_LINE_H
#define SWPBENCH_COMMAND_LINE_H

#include "options.h"

/* Bits, so that an option can belong to several. */
enum command { COMMAND_RUN = 1, COMMAND_PROBE = 2, COMMAND_OVERLAP = 4, COMMAND_SOAK = 8 };

struct command_line {
  enum command command;
  struct options options;
  const char *pattern;     /* as it is written */
  const char *computation; /* of overlap; NULL: as much as there is */
  struct items sizes;      /* those of the options */
  char *races;             /* the text of the options' races */
};

/* Sets line->command. False: the word is none of these commands. */
bool command_find(const char *word, struct command_line *line);

/* Reads the arguments after the command, which is set. 0, or -1 with failure_text() set. Local;
   command_line_free, after which other arguments can be read, must be called in both cases. */
int command_line_parse(int argc, char **argv, struct command_line *line);
void command_line_free(struct command_line *line);

/* Prints the help of all of swpbench. */
void command_line_help(void);

/* Reads "8:1M:x2,3000" into increasing sizes without repeats. 0 or -1; the caller frees their list in both
   cases. */
int sizes_parse(const char *text, struct items *sizes);

#endif
