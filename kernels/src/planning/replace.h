/* Files that are written whole, as by tuner/atomic.py: readers see the old one or the new one. */
#ifndef SWP_REPLACE_H
#define SWP_REPLACE_H

/* Finds whether a file can be replaced: 0, or -1 with errno. */
int swp_replace_possible(const char *path);

/* Replaces a file, or makes it; text and name are on the disk then. Deletes what killed processes left beside
   it. 0, or -1 with errno. */
int swp_replace(const char *path, const char *text);

#endif
