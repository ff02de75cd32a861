// What a record of CUPTI costs the agent: walked, checked, named and written. Beside it the least there is to do: the same buffers
// walked, and as many bytes copied in memory. Built at run time by cuda_records.py; prints JSON.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "native/tests/cupti_batch.h"
#include "spool/schemas/schema.h"
#include "warplens/cuda_records.h"

namespace warplens::agent {

const char *cupti_callback_name(const Cupti &, CuptiDomain domain, uint32_t cbid) {
  return name_of_call(domain, cbid);
}

namespace {

constexpr size_t kBuffer = size_t{1} << 20;
constexpr size_t kBuffers = 16;  // as many as are in flight: they do not stay in the cache
constexpr int kNames = 100;

uint64_t cpu_ns() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

enum class Mix { calls, kernels, both };

struct Filled {
  std::vector<uint8_t> bytes;
  size_t records = 0;
  size_t written = 0;  // bytes in the spool
};

std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  for (int i = 0; i < kNames; ++i) {
    names.push_back("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm" +
                    std::to_string(i) + "EEEEviT0_T1_14_some_long_name");
  }
  return names;
}

// Buffers as CUPTI fills them: each kernel behind the call that launched it.
std::vector<Filled> fill(Mix mix, const std::vector<std::string> &names, uint32_t &correlation,
                         uint64_t start) {
  std::vector<Filled> buffers(kBuffers);
  for (Filled &buffer : buffers) {
    for (;; ++correlation) {
      Batch batch;
      uint64_t at = start + correlation % 1'000'000'000;
      if (mix != Mix::kernels) {
        batch.add(CuptiApiActivity{kCuptiRuntime, 1, at, at + 5, 4, 77, correlation, 0});
      }
      if (mix != Mix::calls) {
        CuptiKernelActivity kernel{};
        kernel.kind = kCuptiConcurrentKernel;
        kernel.start = at + 10;
        kernel.end = at + 20;
        kernel.correlation = correlation;
        kernel.name = names[correlation * 7 % kNames].c_str();
        batch.add(kernel);
      }
      const std::vector<uint8_t> &bytes = batch.bytes();
      if (buffer.bytes.size() + bytes.size() > kBuffer) {
        break;
      }
      buffer.bytes.insert(buffer.bytes.end(), bytes.begin(), bytes.end());
      buffer.records += mix == Mix::both ? 2 : 1;
      buffer.written += (mix != Mix::kernels ? sizeof(CudaApiRecord) : 0) +
                        (mix != Mix::calls ? sizeof(CudaKernelRecord) : 0);
    }
  }
  return buffers;
}

struct Cost {
  double ours;
  double least;
};

Cost measure(Mix mix, const std::string &path) {
  std::vector<std::string> texts = kernel_names();
  ClockParams clock{ClockKind::monotonic, 0, 0, 0, 1};
  Names names;
  auto process = std::make_unique<ProcessLog>(names);
  if (process->open(path, "{}", clock) != 0) {
    std::exit(1);
  }
  begin(*process);
  static uint32_t correlation = 1;
  CuptiFunctions functions{};
  functions.activity_get_next_record = walk;
  Cupti cupti{&functions, g_version, 13000, nullptr, false};
  Cost best{1e9, 1e9};
  uint64_t start = now_ns(clock);
  size_t total = 0;
  [[maybe_unused]] volatile char sink = 0;
  for (int round = 0; round < 5; ++round) {
    std::vector<Filled> buffers = fill(mix, texts, correlation, start - 2'000'000'000);
    size_t records = 0;
    size_t written = 0;
    for (const Filled &buffer : buffers) {
      records += buffer.records;
      written += buffer.written;
    }
    total += records;
    uint64_t before = cpu_ns();
    for (Filled &buffer : buffers) {
      kCudaSource.records({cupti, *process, false, buffer.bytes.data(), buffer.bytes.size(), 0});
    }
    best.ours = std::min(best.ours, static_cast<double>(cpu_ns() - before) / static_cast<double>(records));

    // The least: the record's share of them copied, into memory that is there.
    std::vector<char> copy(written);
    before = cpu_ns();
    size_t at = 0;
    for (Filled &buffer : buffers) {
      CuptiActivity *record = nullptr;
      CuptiBatch batch{cupti, *process, false, buffer.bytes.data(), buffer.bytes.size(), 0};
      while (next_record(batch, &record)) {
        size_t size = record->kind == kCuptiRuntime ? sizeof(CudaApiRecord) : sizeof(CudaKernelRecord);
        std::memcpy(copy.data() + at, record, size);
        at += size;
      }
    }
    best.least = std::min(best.least, static_cast<double>(cpu_ns() - before) / static_cast<double>(records));
    sink = copy[written / 2];
  }
  uint64_t lost = 0;
  for (auto &slot : process->file().header()->dropped) {
    lost += slot.load();
  }
  if (lost != 0) {
    std::fprintf(stderr, "%zu records, %llu lost\n", total, static_cast<unsigned long long>(lost));
    std::exit(1);
  }
  process->finish();
  unlink(path.c_str());
  return best;
}

}  // namespace
}  // namespace warplens::agent

int main(int argc, char **argv) {
  using namespace warplens::agent;
  if (argc != 2) {
    return 2;
  }
  const struct {
    const char *name;
    Mix mix;
  } mixes[] = {{"calls", Mix::calls}, {"kernels", Mix::kernels}, {"both", Mix::both}};
  const char *comma = "{";
  for (const auto &one : mixes) {
    Cost cost = measure(one.mix, std::string(argv[1]) + "/" + one.name + ".spool");
    std::printf("%s\"%s\": [%.2f, %.2f]", comma, one.name, cost.ours, cost.least);
    comma = ", ";
  }
  std::printf("}\n");
  return 0;
}
