/* Sockets: the processor packages of a node, which hwloc knows where the library is built with it. */
#ifndef SWP_SOCKET_H
#define SWP_SOCKET_H

enum { SOCKET_UNKNOWN = -1 };

/*
 * *count: the sockets of this process's machine; *own: the one with all cores that the process may use.
 * SOCKET_UNKNOWN without hwloc, and *own where the process is not bound to one socket. Found at the first
 * call. Local.
 */
void swp_socket_find(int *count, int *own);

#endif
