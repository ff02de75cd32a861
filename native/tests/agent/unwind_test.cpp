// The agent's unwinder finds what the compiler's finds, and damaged tables do it no harm.
#include <unwind.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "agent/unwind/expression.h"
#include "agent/unwind/unwinder.h"
#include "tests/agent/unwind_stacks.h"
#include "tests/check.h"
#include "tests/scratch.h"

namespace warplens::test {
namespace {

using agent::Registers;

std::vector<uint64_t> g_expected;
std::vector<agent::NativeFrame> g_found;
agent::Reached g_reached;
bool g_live = false;

_Unwind_Reason_Code note(_Unwind_Context *context, void *) {
  g_expected.push_back(_Unwind_GetIP(context));
  return _URC_NO_REASON;
}

void capture(Registers *registers) {
#if defined(__x86_64__)
  asm volatile(
      "leaq 0(%%rip), %%rax\n movq %%rax, 128(%0)\n movq %%rbx, 24(%0)\n movq %%rbp, 48(%0)\n"
      "movq %%rsp, 56(%0)\n movq %%r12, 96(%0)\n movq %%r13, 104(%0)\n movq %%r14, 112(%0)\n"
      "movq %%r15, 120(%0)"
      :
      : "r"(registers->value)
      : "rax", "memory");
#endif
}

__attribute__((noinline)) void leaf() {
  g_expected.clear();
  _Unwind_Backtrace(note, nullptr);
  Registers registers{};
  capture(&registers);
  static uint8_t bytes[16 << 10];
  agent::StackView stack{registers.sp(), bytes, agent::read_own(registers.sp(), bytes, sizeof(bytes)),
                         g_live};
  agent::MappingView mappings;
  agent::modules().view(&mappings);
  g_found.resize(4096);
  size_t count = agent::unwind(mappings, agent::row_cache(), stack, registers, g_found.data(), g_found.size(),
                               &g_reached);
  g_found.resize(count);
}

// All but the innermost, which is at another place in leaf(). What the compiler's adds at the end, a null, is no frame.
void compare(const char *way) {
  while (!g_expected.empty() && g_expected.back() == 0) {
    g_expected.pop_back();
  }
  std::vector<uint64_t> found;
  for (const agent::NativeFrame &frame : g_found) {
    found.push_back(frame.address);
  }
  bool same = found.size() == g_expected.size() && found.size() > 2 &&
              std::equal(found.begin() + 1, found.end(), g_expected.begin() + 1);
  if (!same) {
    std::fprintf(stderr, "%s: %zu frames, expected %zu\n", way, found.size(), g_expected.size());
  }
  CHECK(same);
  CHECK(g_reached == agent::Reached::end);
}

void test_stacks() {
  by_calls(leaf);
  compare("calls");
  by_recursion(leaf, 20);
  compare("recursion");
  by_alloca(leaf, 333);
  compare("alloca");
  by_library(leaf);
  compare("library");
  by_alignment(leaf);
  compare("alignment");
  by_exception_frames(leaf);
  compare("exceptions");
  by_signal(leaf);
  compare("signal");
}

// Deeper than the copy: it ends there, or goes on in the memory itself.
void test_deep_stacks() {
  by_recursion(leaf, 1000);
  CHECK(g_reached == agent::Reached::lost);
  CHECK(g_found.size() > 20 && g_found.size() < 1000);
  CHECK(
      std::equal(g_found.begin() + 1, g_found.end(), g_expected.begin() + 1,
                 [](const agent::NativeFrame &frame, uint64_t address) { return frame.address == address; }));
  g_live = true;
  by_recursion(leaf, 1000);
  compare("deep");
  g_live = false;
}

std::vector<char> own_file() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void look_everywhere(const agent::ElfImage &image, std::mt19937_64 &random) {
  for (const auto &segment : image.segments()) {
    for (int i = 0; segment.code && i < 50; ++i) {
      agent::RowDraft draft;
      agent::find_row(image, segment.address + random() % std::max<uint64_t>(segment.size, 1), &draft);
    }
  }
  image.find("main");
}

// Whatever is in a file, reading it ends, and touches nothing else.
void test_damaged_files() {
  const std::vector<char> good = own_file();
  std::mt19937_64 random(4711);
  Scratch folder;
  const std::string &path = folder.path;
  agent::ElfImage whole;
  CHECK(whole.open("/proc/self/exe", 0, 0));
  CHECK(whole.tables() != 0 && !whole.segments().empty());
  for (int round = 0; round < 200; ++round) {
    std::vector<char> bad = good;
    if (round % 4 == 0) {
      bad.resize(random() % bad.size());
    } else if (round % 4 == 1) {
      for (int i = 0; i < 20; ++i) {
        bad[random() % 4096] = static_cast<char>(random());
      }
    } else {  // the tables, which lie behind the code
      size_t tables = 0;
      for (const auto &segment : whole.segments()) {
        if (whole.tables() - segment.address < segment.size) {
          tables = segment.offset + (whole.tables() - segment.address);
        }
      }
      for (int i = 0; i < 2000; ++i) {
        size_t at = tables + random() % (whole.tables_size() * 6);
        bad[std::min(at, bad.size() - 1)] = static_cast<char>(random());
      }
    }
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(bad.data(), static_cast<std::streamsize>(bad.size()));
    agent::ElfImage image;
    if (image.open(path.c_str(), 0, 0)) {
      look_everywhere(image, random);
    }
  }
}

// A file that is cut short while it is mapped: its bytes are missing, and nobody dies.
void test_file_that_shrinks() {
  Scratch folder;
  const std::string &path = folder.path;
  const std::vector<char> good = own_file();
  std::ofstream(path, std::ios::binary).write(good.data(), static_cast<std::streamsize>(good.size()));
  agent::ElfImage image;
  CHECK(image.open(path.c_str(), 0, 0));
  CHECK(truncate(path.c_str(), 0) == 0);
  std::mt19937_64 random(1);
  look_everywhere(image, random);
}

void test_expressions_end() {
  std::mt19937_64 random(99);
  Registers registers{};
  uint8_t stack[64] = {};
  agent::StackView view{0x1000, stack, sizeof(stack), false};
  for (int round = 0; round < 20000; ++round) {
    uint8_t bytes[24];
    for (uint8_t &byte : bytes) {
      byte = static_cast<uint8_t>(random());
    }
    uint64_t result = 0;
    uint64_t first = random();
    agent::evaluate(bytes, random() % sizeof(bytes), registers, view, &first, &result);
  }
  // Jumps to itself.
  const uint8_t loop[] = {0x30, 0x2f, 0xfc, 0xff};
  uint64_t result = 0;
  CHECK(!agent::evaluate(loop, sizeof(loop), registers, view, nullptr, &result));
}

void test_mappings_replace_each_other() {
  agent::Modules modules;
  modules.add(0x1000, 0x5000, 0, 1, 10, "/nowhere/a");
  modules.add(0x2000, 0x3000, 0, 1, 11, "/nowhere/b");
  CHECK(modules.find(0x1fff).module->path == "/nowhere/a");
  CHECK(modules.find(0x2000).module->path == "/nowhere/b");
  CHECK(modules.find(0x3000).module->path == "/nowhere/a");
  CHECK(modules.find(0x5000).module == nullptr);
  CHECK(modules.find(0xfff).module == nullptr);
  modules.add(0, 0x10000, 0, 1, 12, "/nowhere/c");
  CHECK(modules.find(0x2000).module->path == "/nowhere/c");
  agent::MappingView view;
  modules.view(&view);
  CHECK(view.mappings.size() == 1);
}

}  // namespace
}  // namespace warplens::test

int main() {
  using namespace warplens::test;
#if defined(__x86_64__)
  warplens::agent::modules().refresh(1);
  test_stacks();
  test_deep_stacks();
#endif
  test_damaged_files();
  test_file_that_shrinks();
  test_expressions_end();
  test_mappings_replace_each_other();
  std::printf("unwind: %d checks, %d failed\n", g_checks, g_failures);
  return g_failures == 0 ? 0 : 1;
}
