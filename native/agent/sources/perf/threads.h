// Lists the threads of the recorded process.
// When its events are opened it has one thread, unless an observer watches it from outside.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "warplens/cpu_records.h"

namespace warplens::agent {

struct SubjectThread {
  uint32_t tid;
  ThreadState state;
  std::string name;  // empty: that of the process
};

//! In this process `main_tid` alone: the threads that it begins come with it.
std::vector<SubjectThread> subject_threads(int main_tid);

}  // namespace warplens::agent
