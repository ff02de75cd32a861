// Records the tasks of warplens.nvtx.
// warplens.nvtx calls warplens_tasks() of the C ABI when code takes turns on a thread.
#include <atomic>

#include "agent/session.h"
#include "agent/watch.h"
#include "chain.h"
#include "define.h"
#include "event.h"
#include "warplens/warplens.h"

namespace warplens::agent {
namespace {

std::atomic<uint32_t> g_last_task{0};

uint32_t create(const char *name, const char *library, uint64_t parent) {
  ThreadLog *log = thread_log();
  return log == nullptr ? 0 : guarded(uint32_t{0}, [&] {
    if (ThreadLog::Busy busy(*log); busy && parent != 0) {
      log->process()->name_as_parent(parent);
    }
    uint32_t task = g_last_task.fetch_add(1, std::memory_order_relaxed) + 1;
    Json json("task");
    json.member("name", name);
    json.member("library", library);
    json.member("parent", parent);
    define(0, Kind::once, task, json.close());
    return task;
  });
}

void enter(uint32_t task) {
  if (ThreadLog *log = thread_log()) {
    log->switch_task(task, now_ns(log->clock()));
  }
}

uint64_t start(nvtxDomainRegistration_st *domain, const nvtxEventAttributes_v2 *event, uint32_t task,
               uint64_t parent) {
  uint16_t number = domain_of(domain);
  ThreadLog *log = is_left_out(number) ? nullptr : thread_log();
  return log == nullptr ? 0 : start_range<true>(*log, number, label_of(*log, number, event), task, parent);
}

}  // namespace
}  // namespace warplens::agent

extern "C" __attribute__((visibility("default"))) const WarplensTasks *warplens_tasks(void) {
  using namespace warplens::agent;
  if (!prepare()) {
    return nullptr;
  }
  static const WarplensTasks tasks = {sizeof(WarplensTasks), create, enter, start,
                                      reinterpret_cast<const uint32_t *>(&g_life->generation)};
  return tasks_with_others(tasks);
}
