/* Decides from a program's file whether our libraries can be loaded into it. */
#ifndef WARPLENS_PRELOAD_PROGRAM_H
#define WARPLENS_PRELOAD_PROGRAM_H

#include <stddef.h>

/* Looks at the program that running `path` (below `directory`, with `flags` as for execveat) would start, through "#!" lines.
 * Returns a WarplensForeign, or a negative errno where there is nothing to run. `resolved` gets the path of the ELF file, cut
 * to nothing where it does not fit. Async-signal-safe. */
int examine_program(int directory, const char *path, int flags, char *resolved, size_t size);

#endif
