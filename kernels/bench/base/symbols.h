/* The functions around addresses, static ones included. */
#ifndef BENCH_SYMBOLS_H
#define BENCH_SYMBOLS_H

#include <stddef.h>

/* Writes "function+0x1f (file)" of a return address; "0x1f2e (file)", which addr2line understands, where the
   file's symbol table does not have it. Not for signal handlers. */
void symbol_name(const void *address, char *name, size_t length);

#endif
