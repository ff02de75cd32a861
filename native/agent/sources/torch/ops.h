// Records operators when they begin and end.
#pragma once

#include <cstring>

#include "library.h"
#include "spool/thread_log.h"

namespace warplens::agent::torch {

//! Records operators of every thread from now on, in `domain`, while somebody listens to them. `inputs`: with shapes and types of
//! what they work on.
void begin_ops(const Library &library, uint16_t domain, bool inputs);

//! The same for another recording of this process.
void resume_ops(bool inputs);

//! Adds PyTorch's callbacks, or removes them. The caller holds Changing. Operators that are open end as they began.
void listen_to_ops(bool on);

//! Nothing is recorded any more. Callbacks may still come.
void end_ops();

//! [MT][HOT] Puts shapes and types of a record's inputs into `label`, as texts.
void describe_inputs(const Library &library, const TorchRecord &record, ThreadLog &log, Label &label);

}  // namespace warplens::agent::torch
