// Keeps a thread from being cancelled inside of the agent.
// Cancelled there, it would end in a call that is no cancellation point, and keep what the call has
// taken. It is cancelled later, where it expects that.
#pragma once

#include <pthread.h>

namespace warplens {

class Uncancelled {
 public:
  Uncancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  // A thread that may be cancelled anywhere ends here.
  ~Uncancelled() noexcept(false) { pthread_setcancelstate(before_, nullptr); }
  Uncancelled(const Uncancelled &) = delete;
  Uncancelled &operator=(const Uncancelled &) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace warplens
