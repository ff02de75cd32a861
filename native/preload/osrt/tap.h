/* Shared by the wrappers: the tap. */
#ifndef WARPLENS_PRELOAD_TAP_H
#define WARPLENS_PRELOAD_TAP_H

#include "preload/stub.h"
#include "warplens/tap.h"

extern WarplensTap g_tap;

/* The program is about to forbid itself system calls: all of the CPU side ends. `why` is a literal. Keeps errno. */
void tap_stop(const char *why);

#endif
