// The C ABI that the launcher calls: clocks, the control page, and what a range costs here.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include "agent/attached.h"
#include "agent/python/memory/layout.h"
#include "agent/session.h"
#include "spool/process_log.h"
#include "spool/schemas/schema.h"
#include "spool/system/space.h"
#include "spool/window.h"
#include "warplens/warplens.h"

#define WARPLENS_EXPORT __attribute__((visibility("default")))

using namespace warplens;

namespace {

double time_pairs(ThreadLog &log, uint32_t pairs) {
  uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  for (uint32_t i = 0; i < pairs; ++i) {
    Label label;
    label.name = log.intern("calibration", 11);
    log.push(0, label);
    log.pop(0, now_ns(log.clock()));
  }
  return static_cast<double>(clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / pairs;
}

}  // namespace

extern "C" {

WARPLENS_EXPORT uint32_t warplens_abi_version(void) {
  return 7;
}

WARPLENS_EXPORT int warplens_python_known(void) {
  const agent::PythonRuntime *python = agent::find_python();
  return python == nullptr ? -1 : python->is_known ? 1 : 0;
}

WARPLENS_EXPORT uint32_t warplens_clock_sample(uint64_t out[3]) {
  ClockKind kind = best_clock_kind();
  ClockSample sample = sample_clocks(kind);
  out[0] = sample.counter;
  out[1] = sample.monotonic;
  out[2] = sample.realtime;
  return static_cast<uint32_t>(kind);
}

WARPLENS_EXPORT int warplens_control_create(const char *path, const uint64_t early[3],
                                            const WarplensCapture *capture) {
  const WarplensCapture everything{sizeof(WarplensCapture), 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, nullptr, 0, {}, {}};
  const WarplensCapture &wanted = capture != nullptr ? *capture : everything;
  if (wanted.size < sizeof(WarplensCapture)) {
    return EINVAL;
  }
  if (wanted.texts_size > kControlTextsSize) {
    return E2BIG;
  }
  int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) {
    return errno;
  }
  bool has_space = can_reserve(fd);
  int error = posix_fallocate(fd, 0, kControlSize);
  void *pages =
      error != 0 ? MAP_FAILED : mmap(nullptr, kControlSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (error == 0 && pages == MAP_FAILED) {
    error = errno;
  }
  if (error == 0 && !has_space && !can_write(static_cast<ControlPage *>(pages))) {
    munmap(pages, kControlSize);
    error = ENOSPC;
  }
  close(fd);
  if (error != 0) {
    unlink(path);
    return error;
  }
  auto *control = new (pages) ControlPage{};
  ClockKind kind = best_clock_kind();
  control->version = kControlVersion;
  control->has_space = has_space ? 1 : 0;
  control->clock = calibrate(kind, {early[0], early[1], early[2]}, sample_clocks(kind));
  control->trigger = static_cast<Trigger>(wanted.trigger);
  control->window_limit = wanted.window_limit;
  control->trigger_closes = wanted.trigger_closes;
  control->any_domain = wanted.any_domain;
  control->filter = static_cast<DomainFilter>(wanted.filter);
  control->filter_count = wanted.filter_count;
  control->keep_ns = wanted.keep_ns;
  control->max_bytes = wanted.max_bytes;
  static_assert(sizeof(control->cuda) == sizeof(wanted.cuda));
  std::memcpy(&control->cuda, &wanted.cuda, sizeof(control->cuda));
  static_assert(sizeof(control->cpu) == sizeof(wanted.cpu));
  std::memcpy(&control->cpu, &wanted.cpu, sizeof(control->cpu));
  if (wanted.texts_size != 0) {
    std::memcpy(static_cast<char *>(pages) + kControlTexts, wanted.texts, wanted.texts_size);
  }
  if (wanted.open != 0) {
    open_window(control, Cause::start, 0);
  }
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(control->magic, kControlMagic, sizeof(kControlMagic));
  munmap(pages, kControlSize);
  return 0;
}

WARPLENS_EXPORT int64_t warplens_window_open(void *control, uint32_t cause, uint64_t open_ns) {
  auto *page = static_cast<ControlPage *>(control);
  return open_window(page, static_cast<Cause>(cause), 0, open_ns);
}

WARPLENS_EXPORT int64_t warplens_window_close(void *control, uint32_t cause) {
  auto *page = static_cast<ControlPage *>(control);
  return close_window(page, static_cast<Cause>(cause));
}

WARPLENS_EXPORT int64_t warplens_window_keep(void *control, uint32_t cause, uint64_t span_ns,
                                             uint32_t go_on) {
  auto *page = static_cast<ControlPage *>(control);
  return keep_window(page, static_cast<Cause>(cause), span_ns, go_on != 0, now_ns(page->clock));
}

WARPLENS_EXPORT int64_t warplens_window_close_abandoned(void *control) {
  return close_abandoned_window(static_cast<ControlPage *>(control));
}

WARPLENS_EXPORT int warplens_control_charge(void *control, int64_t bytes) {
  auto *page = static_cast<ControlPage *>(control);
  if (bytes < 0) {
    discharge(page, static_cast<size_t>(-bytes));
    return 0;
  }
  return charge(page, static_cast<size_t>(bytes));
}

WARPLENS_EXPORT int warplens_profiler_start(void) {
  return agent::profiler_start();
}

WARPLENS_EXPORT int warplens_profiler_stop(void) {
  return agent::profiler_stop();
}

WARPLENS_EXPORT double warplens_pair_cost(const char *directory, uint32_t pairs) {
  ClockKind kind = best_clock_kind();
  ClockSample early = sample_clocks(kind);
  std::string path = std::string(directory) + "/calibration-" + std::to_string(getpid());
  // Their mappings live as long as the launcher: a few pages.
  auto *names = new (std::nothrow) Names;
  auto *process = names == nullptr ? nullptr : new (std::nothrow) ProcessLog(*names);
  if (process == nullptr) {
    return -ENOMEM;
  }
  usleep(200);
  int error = process->open(path, "{" + schema_json() + "}", calibrate(kind, early, sample_clocks(kind)));
  if (error != 0) {
    delete process;
    return -error;
  }
  ThreadLog *log = process->enter_thread();
  double best = -ENOMEM;
  if (log != nullptr) {
    constexpr uint32_t kRounds = 5;
    best = time_pairs(*log, std::max(pairs / kRounds, 1u));
    for (uint32_t i = 1; i < kRounds; ++i) {
      best = std::min(best, time_pairs(*log, std::max(pairs / kRounds, 1u)));
    }
  }
  unlink(path.c_str());
  return best;
}

WARPLENS_EXPORT int warplens_start(const char *directory) {
  return agent::start_recording(directory);
}

WARPLENS_EXPORT int warplens_stop(void) {
  return agent::stop_recording();
}

WARPLENS_EXPORT uint64_t warplens_attached(char *paths, uint64_t size) {
  return agent::list_attached(paths, size);
}

}  // extern "C"
