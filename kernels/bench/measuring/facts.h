/* The system and software of a launch, as recorded in its file. */
#ifndef BENCH_FACTS_H
#define BENCH_FACTS_H

#include "team.h"

enum { NODE_TEXT_ROOM = 256 };
typedef char node_text[NODE_TEXT_ROOM];

struct facts {
  char date[32];         /* 2026-11-21T03:45:00Z */
  char compact_date[32]; /* 20261121T034500Z */
  char identity[64];     /* 1795232700.123456789-4711: unique to this launch */
  node_text cpu_model;   /* those of the nodes, where they differ */
  char allocation[128];  /* of the batch system; empty without one */
  char mpi_library[256];
  char mpi_standard[16];
  char binding[256]; /* the cores of rank 0: "0-1,4" */
  bool bound;        /* every rank may use fewer cores than the ranks of its node together */
  int sockets;       /* of a node, the most; -1: unknown */
  double load[3];
  node_text *hostnames; /* on rank 0: one per node, to be freed */
};

/* Collective. Other texts are those of rank 0. */
void facts_collect(const struct team *team, struct facts *facts);

#endif
