// Counts the agent's threads: they must not keep the program's process alive.
#pragma once

namespace warplens {

//! Held by each thread of ours for as long as it lives.
class HelperThread {
 public:
  HelperThread();
  ~HelperThread();
  HelperThread(const HelperThread &) = delete;
  HelperThread &operator=(const HelperThread &) = delete;
};

//! [MT] The main thread has ended by pthread_exit, and only ours are left: then the process ends once all of ours do.
bool only_helpers_left();

//! [FORK] In a child: they are not here.
void forget_helpers();

}  // namespace warplens
