// Compiled without frame pointers.
#include "tests/agent/unwind_stacks.h"

#include <alloca.h>
#include <signal.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace warplens::test {
namespace {

Leaf g_leaf;
volatile int g_sink;

int compare(const void *a, const void *b) {
  if (g_leaf != nullptr) {
    Leaf leaf = g_leaf;
    g_leaf = nullptr;
    leaf();
  }
  return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

void handle(int) {
  g_leaf();
  g_sink = g_sink + 1;
}

}  // namespace

__attribute__((noinline)) void by_calls(Leaf leaf) {
  leaf();
  g_sink = g_sink + 1;
}

__attribute__((noinline)) void by_recursion(Leaf leaf, int depth) {
  char some[40];
  std::memset(some, depth, sizeof(some));
  if (depth == 0) {
    leaf();
  } else {
    by_recursion(leaf, depth - 1);
  }
  g_sink = g_sink + some[depth % 40];
}

__attribute__((noinline)) void by_alloca(Leaf leaf, int size) {
  auto *bytes = static_cast<char *>(alloca(static_cast<size_t>(size)));
  std::memset(bytes, size, static_cast<size_t>(size));
  by_recursion(leaf, 3);
  g_sink = g_sink + bytes[size / 2];
}

__attribute__((noinline)) void by_library(Leaf leaf) {
  g_leaf = leaf;
  int numbers[] = {5, 3, 9, 1, 7, 2};
  qsort(numbers, 6, sizeof(int), compare);
  g_sink = g_sink + numbers[0];
}

__attribute__((noinline)) void by_alignment(Leaf leaf) {
  alignas(128) char bytes[256];
  std::memset(bytes, 1, sizeof(bytes));
  by_calls(leaf);
  g_sink = g_sink + bytes[static_cast<size_t>(g_sink) % 256];
}

__attribute__((noinline)) void by_exception_frames(Leaf leaf) {
  std::string text(static_cast<size_t>(g_sink % 7 + 20), 'x');
  try {
    by_alignment(leaf);
  } catch (int) {
    text += 'y';
  }
  g_sink = g_sink + static_cast<int>(text.size());
}

__attribute__((noinline)) void by_signal(Leaf leaf) {
  g_leaf = leaf;
  struct sigaction action{};
  action.sa_handler = handle;
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
  g_sink = g_sink + 1;
}

}  // namespace warplens::test
