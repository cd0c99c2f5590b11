/* Other implementations of discovery, with which the library's methods are compared. */
#ifndef STUDIES_RIVAL_H
#define STUDIES_RIVAL_H

#include "operation.h"

/* The messages that an execution delivered, in any order of sources; all have one size. */
struct delivery {
  int count;
  const int *sources;
  const char *data; /* message i is at i * message_bytes */
};

/* Sends the messages of a workload, all of message_bytes and one after the other in workload->send. */
struct rival {
  const char *variants[5]; /* its names for its algorithms, up to NULL */
  /* Before the first execution and after the last, of each workload; may be NULL. Collective. */
  void (*open)(const struct workload *workload);
  void (*close)(void);
  /* Before each execution, untimed; may be NULL. */
  void (*prepare)(void);
  /* Timed. Collective; ends the job when it fails. */
  struct delivery (*execute)(const struct workload *workload, int message_bytes, int variant);
  /* Frees the messages delivered; may be NULL. */
  void (*release)(void);
};

/* The lower bound: a hand-written exchange in which every rank knows its senders. */
extern const struct rival known_senders;

/* Peers, each present if the program was built with it. */
extern const struct rival mpi_advance, petsc;

#endif
