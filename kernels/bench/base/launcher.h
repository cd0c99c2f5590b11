/* The launcher of the process, as its environment shows it. */
#ifndef BENCH_LAUNCHER_H
#define BENCH_LAUNCHER_H

/*
 * Fails, with the kept text, if the launcher started several processes and MPI knows of this one only: the
 * launcher is that of another MPI library, or speaks another language than the library expects.
 */
int launcher_check(int procs);

#endif
