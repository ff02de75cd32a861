/* What the wrappers of the larger stub share. */
#ifndef WARPLINE_PRELOAD_TAP_H
#define WARPLINE_PRELOAD_TAP_H

#include "stub.h"
#include "warpline/tap.h"

extern WarplineTap g_tap;

#endif
