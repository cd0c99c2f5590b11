/* The file is locked, so that lines of processes that write for themselves do not mix. */
#define _GNU_SOURCE
#include "write.h"

#include "layout.h"
#include "printable.h"
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAG = 1, PROGRAM_BYTES = 256 };

static int rank, procs;
static char node[MPI_MAX_PROCESSOR_NAME];

bool write_file(char *path, size_t path_bytes) {
  enum { FLAGS = O_WRONLY | O_CREAT | O_CLOEXEC };
  int file = open(path, FLAGS | O_TRUNC, 0666);
  const size_t length = strlen(path);
  for (int number = 1; file < 0 && (errno == EISDIR || errno == EEXIST); number++) {
    if ((size_t)snprintf(path + length, path_bytes - length, "/%d", number) >= path_bytes - length)
      return false;
    file = open(path, FLAGS | O_EXCL, 0666);
  }
  return file >= 0 && close(file) == 0;
}

void write_begin(void) {
  int length;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &procs);
  PMPI_Get_processor_name(node, &length);
}

static void print_text(FILE *to, const char *text) {
  fputc('"', to);
  for (; *text != '\0'; text++)
    if (*text == '"' || *text == '\\')
      fprintf(to, "\\%c", *text);
    else if ((unsigned char)*text >= ' ' && (unsigned char)*text < 0x7f)
      fputc(*text, to);
  fputc('"', to);
}

/* Seconds are printed as integers, as the program's locale may have another decimal point. */
static void print_seconds(FILE *to, const char *before, double seconds) {
  const long long ns = (long long)(seconds * 1e9 + 0.5);
  fprintf(to, "%s%lld.%09lld", before, ns / 1000000000, ns % 1000000000);
}

static void print_calls(FILE *to) {
  const struct tally *tally;
  fprintf(to, ",\"calls\":[");
  for (int i = 0; (tally = record_tally(i)) != NULL; i++) {
    fprintf(to, "%s{\"call\":\"%s\",\"group\":%d,\"type\":", i > 0 ? "," : "", tally->name,
            tally->group != NULL ? tally->group->number : -1);
    print_text(to, tally->type);
    const bool has_size = tally->rounded > 0 && tally->calls > 0;
    fprintf(to, ",\"bytes\":%.0f,\"calls\":%lld", has_size ? tally->bytes / (double)tally->calls : 0,
            (long long)tally->calls);
    print_seconds(to, ",\"seconds\":", record_seconds(tally));
    fputc('}', to);
  }
  fprintf(to, "]");
}

static void print_groups(FILE *to) {
  fprintf(to, ",\"groups\":[");
  for (const struct group *group = record_groups(); group != NULL; group = group->next) {
    fprintf(to, "{\"group\":%d,\"members\":\"%016llx\",\"procs\":%d,\"nodes\":%d,\"ppn\":%d,\"samples\":[",
            group->number, (unsigned long long)group->members, group->procs, group->nodes, group->ppn);
    for (int i = 0; i < group->samples && !group->has_threads; i++) {
      const struct sample *sample = &group->sample[i];
      fprintf(to, "%s[%lld", i > 0 ? "," : "", (long long)sample->call);
      print_seconds(to, ",", sample->started);
      print_seconds(to, ",", sample->seconds);
      fprintf(to, ",%d]", record_index(sample->tally));
    }
    fprintf(to, "]}%s", group->next != NULL ? "," : "");
  }
  fprintf(to, "]");
}

/* The line of this process; NULL without memory. */
static char *print_line(bool finalized, bool aborted, double seconds, size_t *length) {
  char *line = NULL, program[PROGRAM_BYTES];
  FILE *to = open_memstream(&line, length);
  if (to == NULL)
    return NULL;
  fprintf(to, "{\"profile\":1,\"rank\":%d,\"procs\":%d,\"finalized\":%s,\"aborted\":%s,\"program\":", rank,
          procs, finalized ? "true" : "false", aborted ? "true" : "false");
  snprintf(program, sizeof program, "%s", program_invocation_short_name);
  print_text(to, program);
  fprintf(to, ",\"node\":");
  print_text(to, node);
  print_seconds(to, ",\"seconds\":", seconds);
  fprintf(to, ",\"lost\":%lld", (long long)record_lost());
  print_calls(to);
  print_groups(to);
  fprintf(to, "}\n");
  return fclose(to) == 0 ? line : NULL;
}

void write_complain(const char *path, const char *why) {
  char shown[4096];
  swp_printable(path, shown, sizeof shown);
  fprintf(stderr, "switchpoint: profile %s: %s\n", shown, why);
}

/* Opens the file for lines. Locked, as a network's file system may have no atomic append; one without locks
   has them from the same node. */
static int open_locked(const char *path) {
  struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  const int file = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
  if (file < 0)
    write_complain(path, strerror(errno));
  while (file >= 0 && fcntl(file, F_SETLKW, &whole) != 0 && errno == EINTR)
    ;
  return file;
}

static bool append(int file, const char *path, const char *line, size_t length) {
  while (length > 0) {
    ssize_t written = write(file, line, length);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0) {
      write_complain(path, strerror(errno));
      return false;
    }
    line += written;
    length -= (size_t)written;
  }
  return true;
}

/* Begins a new line where another process was killed while it wrote. */
static bool end_line(int file, const char *path) {
  char last = '\n';
  const off_t size = lseek(file, 0, SEEK_END);
  return size <= 0 || pread(file, &last, 1, size - 1) != 1 || last == '\n' || append(file, path, "\n", 1);
}

/* Locked for this line alone: a rank that ends by itself writes its own while rank 0 waits for it. */
static bool write_line(const char *path, const char *line, size_t length) {
  const int file = open_locked(path);
  const bool written = file >= 0 && end_line(file, path) && append(file, path, line, length);
  if (file >= 0)
    close(file);
  return written;
}

/* Rank 0 holds one line of another at a time. All are received, even where one cannot be written. */
static void write_received(const char *path, MPI_Comm comm, bool writable) {
  for (int from = 1; from < procs; from++) {
    int length;
    MPI_Status status;
    PMPI_Probe(from, TAG, comm, &status);
    PMPI_Get_count(&status, MPI_CHAR, &length);
    char *line = malloc((size_t)length + 1);
    if (line == NULL)
      PMPI_Abort(comm, EXIT_FAILURE);
    PMPI_Recv(line, length, MPI_CHAR, from, TAG, comm, MPI_STATUS_IGNORE);
    writable = writable && write_line(path, line, (size_t)length);
    free(line);
  }
}

void write_end(const char *path, MPI_Comm comm, bool aborted, double seconds) {
  const bool together = comm != MPI_COMM_NULL;
  size_t length = 0;
  char *line = print_line(together, aborted, seconds, &length);
  if (line == NULL)
    length = 0;
  if (together && rank != 0) {
    PMPI_Send(line, (int)length, MPI_CHAR, 0, TAG, comm);
  } else {
    const bool writable = write_line(path, line, length);
    if (together)
      write_received(path, comm, writable);
  }
  free(line);
}
