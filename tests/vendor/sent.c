/*
 * What collective calls send: messages, as Open MPI's monitoring counts them, else bytes of the nodes' cards.
 * Usage: sent BYTES[,BYTES]... OPERATION...; prints a line for each: OPERATION BYTES
 * SENDER>RECEIVER:MESSAGES..., or OPERATION BYTES SENDER>0:CARD_BYTES...
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_CALLS = 2, CALLS = 4 };

static int rank, procs;

static void call(const char *operation, void *send, void *recv, int bytes) {
  const int doubles = bytes / (int)sizeof(double);
  if (!strcmp(operation, "bcast"))
    MPI_Bcast(send, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
  else if (!strcmp(operation, "gather"))
    MPI_Gather(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
  else if (!strcmp(operation, "scatter"))
    MPI_Scatter(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
  else if (!strcmp(operation, "reduce"))
    MPI_Reduce(send, recv, doubles, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  else if (!strcmp(operation, "allreduce"))
    MPI_Allreduce(send, recv, doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  else if (!strcmp(operation, "allgather"))
    MPI_Allgather(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, MPI_COMM_WORLD);
  else if (!strcmp(operation, "alltoall"))
    MPI_Alltoall(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, MPI_COMM_WORLD);
  else
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int is_monitored;

static void read_card(size_t *bytes) {
  MPI_Barrier(MPI_COMM_WORLD);
  FILE *file = fopen("/sys/class/net/eth0/statistics/tx_bytes", "r");
  if (file == NULL || fscanf(file, "%zu", bytes) != 1)
    MPI_Abort(MPI_COMM_WORLD, 1);
  fclose(file);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void read_counts(MPI_T_pvar_session session, MPI_T_pvar_handle handle, size_t *counts) {
  if (!is_monitored)
    read_card(counts);
  else if (MPI_T_pvar_read(session, handle, counts) != MPI_SUCCESS)
    MPI_Abort(MPI_COMM_WORLD, 2);
}

int main(int argc, char **argv) {
  int level, index, count = 1;
  MPI_T_pvar_session session;
  MPI_T_pvar_handle handle;
  MPI_Comm world = MPI_COMM_WORLD;
  MPI_Init(&argc, &argv);
  MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &procs);
  const char *name = "pml_monitoring_messages_count";
  is_monitored = MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_SIZE, &index) == MPI_SUCCESS;
  MPI_T_pvar_session_create(&session);
  if (is_monitored) {
    MPI_T_pvar_handle_alloc(session, index, &world, &handle, &count);
    MPI_T_pvar_start(session, handle);
  }
  size_t *before = calloc((size_t)count, sizeof *before), *after = calloc((size_t)count, sizeof *after);
  size_t *all = calloc((size_t)count * (size_t)procs, sizeof *all);
  for (int i = 2; i < argc; i++) {
    char *sizes = strdup(argv[1]);
    for (char *size = strtok(sizes, ","); size != NULL; size = strtok(NULL, ",")) {
      const int bytes = atoi(size);
      char *send = calloc((size_t)procs, (size_t)bytes), *recv = calloc((size_t)procs, (size_t)bytes);
      for (int k = 0; k < WARM_CALLS; k++)
        call(argv[i], send, recv, bytes);
      read_counts(session, handle, before);
      for (int k = 0; k < CALLS; k++)
        call(argv[i], send, recv, bytes);
      read_counts(session, handle, after);
      for (int k = 0; k < count; k++)
        after[k] -= before[k];
      MPI_Gather(after, (int)(sizeof *after) * count, MPI_BYTE, all, (int)(sizeof *after) * count, MPI_BYTE,
                 0, world);
      if (rank == 0) {
        printf("%s %d", argv[i], bytes);
        for (int from = 0; from < procs; from++)
          for (int to = 0; to < count; to++)
            if (all[from * count + to] > 0)
              printf(" %d>%d:%zu", from, to, all[from * count + to]);
        printf("\n");
      }
      free(send);
      free(recv);
    }
    free(sizes);
  }
  if (is_monitored)
    MPI_T_pvar_handle_free(session, &handle);
  MPI_T_pvar_session_free(&session);
  MPI_T_finalize();
  MPI_Finalize();
  free(before);
  free(after);
  free(all);
  return 0;
}
