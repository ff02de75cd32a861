// The open calls of a profiled thread, in memory that its end frees.
#include "calls.h"

#include <pthread.h>

#include <cstdlib>

namespace warplens::binding {

namespace {

__thread ThreadCalls *t_calls __attribute__((tls_model("initial-exec"))) = nullptr;
pthread_key_t g_key;
bool g_key_made = false;

void free_calls(void *at) {
  ThreadCalls *calls = static_cast<ThreadCalls *>(at);
  std::free(calls->calls);
  std::free(calls);
  t_calls = nullptr;
}

}  // namespace

bool init_calls() {
  g_key_made = g_key_made || pthread_key_create(&g_key, free_calls) == 0;
  return true;
}

ThreadCalls *thread_calls() {
  if (t_calls == nullptr) [[unlikely]] {
    ThreadCalls *made = static_cast<ThreadCalls *>(std::calloc(1, sizeof(ThreadCalls)));
    if (made != nullptr && g_key_made) {
      pthread_setspecific(g_key, made);
    }
    t_calls = made;
  }
  return t_calls;
}

bool reserve_call(ThreadCalls *calls) {
  if (calls->count < calls->capacity) [[likely]] {
    return true;
  }
  const int capacity = calls->capacity == 0 ? 64 : 2 * calls->capacity;
  void *wider = std::realloc(calls->calls, static_cast<size_t>(capacity) * sizeof(OpenCall));
  if (wider == nullptr) {
    return false;
  }
  calls->calls = static_cast<OpenCall *>(wider);
  calls->capacity = capacity;
  return true;
}

}  // namespace warplens::binding
