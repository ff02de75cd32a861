// Records operators when they begin and end.
#pragma once

#include <cstring>

#include "library.h"
#include "spool/thread_log.h"

namespace warplens::agent::torch {

//! Records every operator of every thread from now on, in `domain`. `inputs`: with shapes and types of what they work on.
void begin_ops(const Library &library, uint16_t domain, bool inputs);

//! Nothing is recorded any more. Callbacks may still come.
void end_ops();

//! [MT][HOT] Puts shapes and types of a record's inputs into `label`, as texts.
void describe_inputs(const Library &library, const TorchRecord &record, ThreadLog &log, Label &label);

}  // namespace warplens::agent::torch
