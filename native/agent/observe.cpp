// A process of the launcher that records another one from outside: nothing is started or loaded in that.
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "agent/hooks/cpu.h"
#include "agent/session.h"
#include "spool/system/subject.h"
#include "warplens/format.h"
#include "warplens/warplens.h"

namespace {

// Until the subject has ended or become another program, or we are to stop.
void wait_for_end(int pid, int stop) {
  constexpr int kLookMs = 200;  // where the system has no file for a process
  int process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  pollfd waits[] = {{stop, POLLIN, 0}, {warplens::subject_left_fd(), POLLIN, 0}, {process, POLLIN, 0}};
  while (poll(waits, 3, process >= 0 ? -1 : kLookMs) <= 0) {
    if (process < 0 && kill(pid, 0) != 0) {
      break;
    }
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int warplens_observe(const char *directory, int pid,
                                                                       int stop) {
  using namespace warplens;
  setenv("WARPLENS_SPOOL", directory, 1);
  watch_subject(pid);
  if (!agent::prepare()) {
    return ENOMEM;
  }
  ControlPage *control = agent::control_page();
  if (control == nullptr) {
    return ENOENT;
  }
  agent::begin_outside(control->cpu);
  wait_for_end(pid, stop);
  agent::finish_session();
  return 0;
}
