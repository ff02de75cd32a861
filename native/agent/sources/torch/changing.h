// Keeps forks and changes of PyTorch's list of callbacks apart.
#pragma once

namespace warplens::agent::torch {

//! Held while something is called that takes PyTorch's lock of callbacks: no thread forks meanwhile. By one thread at a time.
class Changing {
 public:
  Changing();
  ~Changing();
  Changing(const Changing &) = delete;
  Changing &operator=(const Changing &) = delete;
};

//! Sleeps for 50 microseconds.
void pause_briefly();

}  // namespace warplens::agent::torch
