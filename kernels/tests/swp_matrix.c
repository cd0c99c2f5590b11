/*
 * What the reader of matrices makes of files, written down for a comparison with another reader: for each
 * path on standard input one line, "accepted" with the sums of the rows and columns, or why it is refused.
 */
#include "error.h"
#include "matrix_market.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  char path[4096];
  while (fgets(path, sizeof path, stdin)) {
    path[strcspn(path, "\n")] = '\0';
    struct matrix_market matrix;
    struct matrix_entry batch[7];
    int64_t rows = 0, columns = 0;
    int count = matrix_market_open(path, &matrix) ? -1 : 1;
    while (count > 0 && (count = matrix_market_read(&matrix, batch, 7)) > 0)
      for (int i = 0; i < count; i++) {
        rows += batch[i].row;
        columns += batch[i].column;
      }
    matrix_market_close(&matrix);
    if (count < 0)
      printf("%s\n", failure_text());
    else
      printf("accepted %" PRId64 " %" PRId64 "\n", rows, columns);
    fflush(stdout);
    failure_clear();
  }
  return 0;
}
