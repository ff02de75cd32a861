/* Wrappers: waiting for events and signals, and sleeping. */
#define _GNU_SOURCE
#include <errno.h>

#include "osrt.h"

#define DECLARE(type, name, parameters, ...) type name parameters;
OSRT_WAITS(DECLARE)

OSRT_WAITS(OS_WRAPPER)
