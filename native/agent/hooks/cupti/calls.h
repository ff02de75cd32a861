// Chooses the API functions that are recorded.
// The numbers of functions are looked up by their names.
#pragma once

#include <cstdint>
#include <string_view>

#include "drivers/cupti.h"

namespace warplens::agent {

struct Cupti;

//! Learns the names of all functions. Once, before the others are called.
void learn_calls(const Cupti &cupti);

//! [HOT] Whether a function is recorded unless all are asked for: it does something. Others just ask, like cudaGetLastError; of the
//! driver's functions, which the runtime's are made of, those that start, wait for or move something.
bool is_recorded_call(CuptiDomain domain, uint32_t cbid);

//! [HOT] Whether it starts kernels.
bool is_launch(CuptiDomain domain, uint32_t cbid);

//! Its name, without a call of CUPTI; null where learn_calls did not get one.
const char *known_call_name(CuptiDomain domain, uint32_t cbid);

//! How many functions there are: numbers are below this.
uint32_t call_count(CuptiDomain domain);

//! The rule behind is_recorded_call, by the name that CUPTI gives.
bool is_worth_recording(CuptiDomain domain, std::string_view name);

}  // namespace warplens::agent
