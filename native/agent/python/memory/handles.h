// Finds the system id of a thread from its pthread_t.
#pragma once

#include <cstdint>

namespace warplens::agent {

//! [MT] The number of the thread of this process with that pthread_t; 0 if unknown. The thread may be gone.
uint32_t tid_of_handle(uintptr_t handle);

//! [MT] What a thread of this process used of the processors, ns; -1 where there is none of that number.
int64_t thread_cpu_ns(uint32_t tid);

}  // namespace warplens::agent
