/*
 * Particles in a cube, and their orthogonal recursive bisection: the ranks are halved, and the particles by a
 * plane so that each half has its share; and so on, along each axis in turn.
 */
#ifndef BENCH_PARTICLES_H
#define BENCH_PARTICLES_H

#include "team.h"

#include <stdint.h>

enum { AXES = 3 };

struct point {
  double at[AXES]; /* each from 0 to 1 */
};

/*
 * The position of a particle at the start or, with `moved`, after a step of at most `length`: half of the
 * particles are anywhere and move anywhere, the others are in a few clouds, each of which moves as one. A
 * function of seed and number alone.
 */
struct point particle(int64_t seed, int64_t number, bool moved, double length);

/*
 * The rank that gets each of the n particles of this rank. Every rank gets the same number of all particles,
 * one more or less. Collective.
 */
void bisect(const struct team *team, int64_t n, const struct point *points, int *owners);

#endif
