// The kernel's part of a sample's chain, and whether the kernel shows its addresses at all.
#include "agent/sources/perf/kernel.h"

#include <linux/perf_event.h>

#include <cstdio>
#include <vector>

#include "tests/check.h"

namespace warplens::test {
namespace {

constexpr auto kKernel = static_cast<uint64_t>(PERF_CONTEXT_KERNEL);
constexpr auto kUser = static_cast<uint64_t>(PERF_CONTEXT_USER);
constexpr uint64_t kCode = 0xffffffff81000000;

std::vector<uint64_t> part(const std::vector<uint64_t> &chain, bool *cut) {
  std::vector<uint64_t> found(agent::kMostKernelFrames);
  found.resize(
      agent::kernel_frames(reinterpret_cast<const char *>(chain.data()), chain.size(), found.data(), cut));
  return found;
}

void test_chains() {
  bool cut = true;
  CHECK(part({}, &cut).empty() && !cut);
  CHECK(part({kUser, 0x401000, 0x402000}, &cut).empty());
  CHECK((part({kKernel, kCode, kCode + 16}, &cut) == std::vector<uint64_t>{kCode, kCode + 16}));
  CHECK((part({kKernel, kCode, kUser, 0x401000}, &cut) == std::vector<uint64_t>{kCode}));
  CHECK((part({kUser, 0x401000, kKernel, kCode}, &cut) == std::vector<uint64_t>{kCode}));
  // What no marker announces, and what is no address of the kernel, is no frame of it.
  CHECK(part({kCode, kCode + 16}, &cut).empty());
  CHECK((part({kKernel, 0x401000, kCode}, &cut) == std::vector<uint64_t>{kCode}));
  CHECK(part({static_cast<uint64_t>(PERF_CONTEXT_HV), kCode}, &cut).empty() && !cut);
}

void test_deep_chains() {
  std::vector<uint64_t> chain{kKernel};
  for (uint64_t i = 0; i < agent::kMostKernelFrames; ++i) {
    chain.push_back(kCode + i);
  }
  bool cut = true;
  CHECK(part(chain, &cut).size() == agent::kMostKernelFrames && !cut);
  chain.push_back(kUser);
  chain.push_back(0x401000);
  CHECK(part(chain, &cut).size() == agent::kMostKernelFrames && !cut);
  chain.insert(chain.begin() + 1, kCode + 4096);
  std::vector<uint64_t> found = part(chain, &cut);
  CHECK(found.size() == agent::kMostKernelFrames && cut && found[0] == kCode + 4096);
}

void test_symbols() {
  CHECK(!agent::has_addresses(""));
  CHECK(!agent::has_addresses("0000000000000000 A a\n0000000000000000 T b\n0000000000000000 T abc"));
  CHECK(agent::has_addresses("0000000000000000 A a\nffffffff81000000 T b\n"));
  CHECK(agent::has_addresses("0000000000000000 A a\n0000000000001000 A b\n0000"));
  CHECK(!agent::has_addresses("\n\n T b\nno symbols"));
  agent::shows_kernel_addresses();
}

}  // namespace
}  // namespace warplens::test

int main() {
  warplens::test::test_chains();
  warplens::test::test_deep_chains();
  warplens::test::test_symbols();
  std::printf("%d checks, %d failures\n", g_checks, g_failures);
  return g_failures != 0;
}
