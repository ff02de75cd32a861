// Settings from the environment, the log of what was done wrong, and the clocks.
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "fake.h"

namespace fake {
namespace {

uint64_t read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

const std::map<std::string, uint64_t> &traps() {
  static const auto *found = [] {
    auto *made = new std::map<std::string, uint64_t>;
    std::string text = setting("FAKE_CUPTI_TRAPS");
    for (size_t at = 0; at < text.size();) {
      size_t end = text.find(',', at);
      end = end == std::string::npos ? text.size() : end;
      std::string word = text.substr(at, end - at);
      size_t equals = word.find('=');
      uint64_t value = equals == std::string::npos ? 1 : std::strtoull(word.c_str() + equals + 1, nullptr, 0);
      (*made)[word.substr(0, equals)] = value;
      at = end + 1;
    }
    return made;
  }();
  return *found;
}

// One write for each line: processes and threads share the file.
void append(const char *variable, const char *format, va_list words) {
  const char *path = setting(variable);
  if (*path == 0) {
    return;
  }
  char line[2048];
  int used = std::vsnprintf(line, sizeof(line) - 1, format, words);
  if (used < 0) {
    return;
  }
  size_t size = static_cast<size_t>(used) < sizeof(line) - 1 ? static_cast<size_t>(used) : sizeof(line) - 2;
  line[size++] = '\n';
  int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file >= 0) {
    [[maybe_unused]] ssize_t written = write(file, line, size);
    close(file);
  }
}

}  // namespace

std::atomic<bool> g_initialized{false};
std::atomic<bool> g_forked{false};

const char *setting(const char *name) {
  const char *value = std::getenv(name);
  return value == nullptr ? "" : value;
}

uint64_t trap(const char *name) {
  const auto &all = traps();
  if (all.empty()) {
    return 0;
  }
  auto found = all.find(name);
  return found == all.end() ? 0 : found->second;
}

void note(const char *format, ...) {
  va_list words;
  va_start(words, format);
  append("FAKE_CUDA_LOG", format, words);
  va_end(words);
}

void truth(const char *format, ...) {
  va_list words;
  va_start(words, format);
  append("FAKE_CUDA_TRUTH", format, words);
  va_end(words);
}

uint64_t monotonic_ns() {
  return read_clock(CLOCK_MONOTONIC);
}

uint64_t realtime_ns() {
  return read_clock(CLOCK_REALTIME);
}

void sleep_until_gpu(uint64_t when) {
  uint64_t host = when - kGpuEpoch;
  timespec until{static_cast<time_t>(host / 1'000'000'000u), static_cast<long>(host % 1'000'000'000u)};
  while (monotonic_ns() < host) {
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }
}

uint32_t system_tid() {
  return static_cast<uint32_t>(syscall(SYS_gettid));
}

}  // namespace fake
