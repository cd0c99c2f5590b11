/*
 * Which method, and why: the choices of the caller, a race, the rules of tables and a model for one operation
 * on ranks of one layout, by priority, and last the default. The first that matches and can be used is
 * chosen, by a binary search among bytes, without communication.
 */
#ifndef SWP_CHOICES_H
#define SWP_CHOICES_H

#include "kinds.h"
#include "table.h"

enum { EVIDENCE_BYTES = 256 };

enum source { FROM_CALLER, FROM_RACE, FROM_RULE, FROM_MODEL, FROM_DEFAULT };

struct choice {
  struct spec spec;
  struct range bytes;
  enum source source;
  const char *table; /* path, and line: of a rule */
  int line;
  const char *unusable; /* of a rule, as there */
  int owner;            /* the first choice with this spec: what is prepared for it holds for all of them */
};

/* The first choice, from this many bytes on, that may be used and whose bytes match. */
struct step {
  double from_bytes;
  int first;
};

struct choices {
  int count, nsteps;
  struct choice *list;
  struct step *steps;
  char tables[2][192];           /* paths: of the user's table, and of the other; "" without one */
  char evidence[EVIDENCE_BYTES]; /* of the race, or of the model */
  bool hurried;                  /* a race was wanted, and its budget too short */
};

/* Where choices come from, by priority; each may be NULL. With a caller's method there is no other. */
struct sources {
  const struct spec *caller;
  const swp_table *users;
  const struct spec *measured; /* for the bytes of the features */
  const swp_table *table;
  const struct spec *estimated;
  const char *evidence; /* of measured or estimated */
  bool hurried;
};

/* Collects the choices of the sources for the features, for any bytes. The tables may be freed afterwards.
   Local. swp_choices_release must be called in any case. Errors: SWP_ERR_MEMORY. */
int swp_choices_compile(const struct sources *sources, const struct features *features, int64_t *account,
                        struct choices **choices);

/* Sets refused, by owner, where this process can do what that of another rank cannot. Collective;
   communicates only if there may be such a choice. Errors: SWP_ERR_MPI. */
int swp_choices_agree(MPI_Comm comm, const struct choices *choices, enum swp_operation operation,
                      const char **refused);

/* NULL is allowed. */
void swp_choices_release(struct choices *choices);

/* Finds the first choice for the features. refused, if not NULL, holds by owner the reason why a method
   cannot be used, or NULL. Local. Errors, the same on every rank: SWP_ERR_NOT_APPLICABLE. */
int swp_choices_first(const struct choices *choices, const struct features *features,
                      const char *const *refused, struct match *match);

/* Writes for people why a choice was made, and which rule was passed over. `length` is at least 1. */
void swp_choices_explain(const struct choices *choices, const struct match *match, char *text, size_t length);

#endif
