/* What the wrappers of the larger stub share. */
#ifndef WARPLENS_PRELOAD_TAP_H
#define WARPLENS_PRELOAD_TAP_H

#include "preload/stub.h"
#include "warplens/tap.h"

extern WarplensTap g_tap;

#endif
