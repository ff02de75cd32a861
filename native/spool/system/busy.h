// Marks a thread as busy in code that takes locks.
// A signal handler that annotates must not wait for the thread that it interrupted.
#pragma once

namespace warplens {

extern __thread volatile bool t_busy;

class Busy {
 public:
  Busy() : mine_(!t_busy) { t_busy = true; }
  ~Busy() {
    if (mine_) {
      t_busy = false;
    }
  }
  Busy(const Busy &) = delete;
  Busy &operator=(const Busy &) = delete;
  //! False in a handler that interrupted this thread on a slow path.
  explicit operator bool() const { return mine_; }

 private:
  bool mine_;
};

}  // namespace warplens
