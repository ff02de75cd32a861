// Switches kinds of records on and off, for one subscriber of the process or for several.
#pragma once

#include "cupti_source.h"

namespace warplens::agent {

//! What of CUPTI could not be switched on: a CudaNotice with its value and text.
using CuptiComplaint = void (*)(CudaNotice notice, int64_t value, const char *text);

//! Sets what must be set before anything is switched on.
void configure_cupti(const Cupti &cupti, const CudaSettings &settings, CuptiComplaint complain);

//! Devices, contexts and streams: there are few of them, and all are wanted, whenever they are made. `dump`: those that exist, too.
void switch_objects_on(const Cupti &cupti, bool dump, CuptiComplaint complain);
void switch_objects_off(const Cupti &cupti);

//! Switches on all else that `settings` want. One thread at a time. True: calls of kCuptiDeviceGetCount are recorded, too.
bool switch_kinds_on(const Cupti &cupti, const CudaSettings &settings, CuptiComplaint complain);

//! And off again: work that was launched before still comes.
void switch_kinds_off(const Cupti &cupti, const CudaSettings &settings);

//! Unified memory: works only where CUDA has started. False: not yet.
bool switch_um_on(const Cupti &cupti, const CudaSettings &settings, CuptiComplaint complain);

}  // namespace warplens::agent
