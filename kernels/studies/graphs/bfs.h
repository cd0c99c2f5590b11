/* `swpbench bfs`: breadth-first searches by every discovery method. */
#ifndef STUDIES_BFS_H
#define STUDIES_BFS_H

#include "team.h"

/* Runs the command with the words after `bfs`. Collective; the failure is agreed and reported. 0 or -1. */
int bfs_command(const struct team *team, int argc, char **argv);

#endif
