// The tree of stacks: a stack has one number for as long as it is known, and what is known takes little memory.
#include "agent/stacks.h"

#include <cstdio>

#include "tests/scratch.h"

using warplens::agent::Frame;
using warplens::agent::stack_node;

namespace {

size_t resident_anonymous() {
  size_t kib = 0;
  if (FILE *status = std::fopen("/proc/self/status", "r")) {
    char line[256];
    while (std::fgets(line, sizeof(line), status) != nullptr &&
           std::sscanf(line, "RssAnon: %zu", &kib) != 1) {
    }
    std::fclose(status);
  }
  return kib << 10;
}

Frame at(uint64_t address) {
  Frame frame;
  frame.address = address;
  return frame;
}

void test_known_stacks() {
  Scratch scratch;
  Names names;
  ProcessLog process(names, 7);
  CHECK(process.open(scratch.path, "{}", kClock) == 0);
  uint32_t outer = stack_node(process, 0, at(1));
  uint32_t inner = stack_node(process, outer, at(2));
  CHECK(outer == 1 && inner == 2);
  CHECK(stack_node(process, 0, at(1)) == outer && stack_node(process, outer, at(2)) == inner);
  CHECK(stack_node(process, inner, at(2)) == 3);
}

// A sampler that sees a new place each time, for days.
void test_new_stacks_without_end() {
  Scratch scratch;
  Names names;
  ProcessLog process(names, 8);
  CHECK(process.open(scratch.path, "{}", kClock) == 0);
  size_t before = resident_anonymous();
  uint32_t last = 0;
  uint32_t outer = stack_node(process, 0, at(1));
  for (uint64_t address = 2; address < 1'500'000; ++address) {
    uint32_t number = stack_node(process, outer, at(address));
    CHECK(number > last && number > outer);
    last = number;
    CHECK(stack_node(process, outer, at(address)) == number);
  }
  CHECK(resident_anonymous() < before + (size_t{24} << 20));
  // What was forgotten is written again, with another number.
  uint32_t again = stack_node(process, 0, at(1));
  CHECK(again > last && stack_node(process, 0, at(1)) == again);
  CHECK(count(scratch.path, ChunkKind::wide, RecordType::cpu_frame) == again);
}

}  // namespace

int main() {
  test_known_stacks();
  test_new_stacks_without_end();
  std::printf("stacks: %d checks, %d failed\n", g_checks, g_failures);
  return g_failures == 0 ? 0 : 1;
}
