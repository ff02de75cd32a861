// Memory: addresses that nothing is behind on the device, real pages for the host and for managed memory.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "session.h"

namespace fake {
namespace {

struct Block {
  uint64_t bytes;
  uint32_t kind;  // CUPTI's
  Pool *pool;
};
std::map<uint64_t, Block> &g_blocks = *new std::map<uint64_t, Block>;
std::atomic<uint64_t> g_next_address{0x7f00'0000'0000};

void memory_record(uint32_t operation, uint64_t address, const Block &block, uint32_t correlation,
                   Stream *stream) {
  uint32_t device = stream->context->device;
  truth(
      R"({"what": "%s", "pid": %d, "address": %llu, "bytes": %llu, "kind": %u, "correlation": %u, "device": %u})",
      operation == 1 ? "alloc" : "free", getpid(), static_cast<unsigned long long>(address),
      static_cast<unsigned long long>(block.bytes), block.kind, correlation, device);
  if (!anybody_wants(kMemory)) {
    return;
  }
  Record record(kMemory);
  record.put<uint32_t>(4, operation);
  record.put<uint32_t>(8, block.kind);
  record.put<uint32_t>(12, correlation);
  record.put<uint64_t>(16, address);
  record.put<uint64_t>(24, block.bytes);
  record.put<uint64_t>(32, cupti_now());
  record.put<uint64_t>(40, reinterpret_cast<uint64_t>(&memory_record));
  record.put<uint32_t>(48, static_cast<uint32_t>(getpid()));
  record.put<uint32_t>(52, device);
  record.put<uint32_t>(56, stream->context->id);
  record.put<uint32_t>(60, stream->id);
  record.put<uint32_t>(72, block.pool != nullptr ? 1 : 0);
  if (block.pool != nullptr) {
    record.put<uint32_t>(80, 1);  // a pool of this process
    record.put<uint64_t>(88, block.pool->address);
    record.put<uint64_t>(96, block.pool->threshold);
    record.put<uint64_t>(104, block.pool->size);
    record.put<uint64_t>(112, block.pool->used);
  }
  deliver(record);
}

void pool_record(uint32_t operation, const Pool &pool, uint32_t correlation, uint64_t keep) {
  truth(R"({"what": "pool", "pid": %d, "operation": %u, "address": %llu, "correlation": %u})", getpid(),
        operation, static_cast<unsigned long long>(pool.address), correlation);
  if (!anybody_wants(kMemoryPool)) {
    return;
  }
  Record record(kMemoryPool);
  record.put<uint32_t>(4, operation);
  record.put<uint32_t>(8, 1);
  record.put<uint32_t>(12, correlation);
  record.put<uint32_t>(16, static_cast<uint32_t>(getpid()));
  record.put<uint32_t>(20, pool.device);
  record.put<uint64_t>(24, keep);
  record.put<uint64_t>(32, pool.address);
  record.put<uint64_t>(40, pool.size);
  record.put<uint64_t>(48, pool.threshold);
  record.put<uint64_t>(56, cupti_now());
  record.put<uint64_t>(64, pool.used);
  deliver(record);
}

uint64_t take_address(uint64_t bytes) {
  return g_next_address.fetch_add((bytes + 0xffff) & ~0xffffull);
}

void *host_pages(size_t bytes) {
  void *pages = mmap(nullptr, bytes == 0 ? 1 : bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

int keep(uint64_t address, Block block, uint32_t correlation, Stream *stream) {
  {
    std::lock_guard hold(gpu_lock());
    g_blocks[address] = block;
    if (block.pool != nullptr) {
      block.pool->used += block.bytes;
      block.pool->size = std::max(block.pool->size, block.pool->used);
    }
  }
  memory_record(1, address, block, correlation, stream);
  return 0;
}

int release(uint64_t address, uint32_t correlation, Stream *stream) {
  Block block{};
  {
    std::lock_guard hold(gpu_lock());
    auto found = g_blocks.find(address);
    if (found == g_blocks.end()) {
      return 1;
    }
    block = found->second;
    g_blocks.erase(found);
    if (block.pool != nullptr) {
      block.pool->used -= block.bytes;
    }
  }
  memory_record(2, address, block, correlation, stream);
  if (block.kind == 2 || block.kind == 5 || (block.kind == 3 && block.pool == nullptr && is_backed())) {
    munmap(reinterpret_cast<void *>(address), block.bytes == 0 ? 1 : block.bytes);
  }
  return 0;
}

Pool *default_pool(uint32_t device) {
  static Pool *pools[16] = {};
  std::lock_guard hold(gpu_lock());
  if (pools[device] == nullptr) {
    pools[device] = new Pool{take_address(1), 0, 0, 0, device};
  }
  return pools[device];
}

// The block that holds all of these bytes; null: none.
const Block *block_around(uint64_t address, uint64_t bytes) {
  auto after = g_blocks.upper_bound(address);
  if (after == g_blocks.begin()) {
    return nullptr;
  }
  auto &[begin, block] = *--after;
  return address - begin <= block.bytes && bytes <= block.bytes - (address - begin) ? &block : nullptr;
}

// A migration of unified memory, or what led to it; `kind` is CUPTI's counter.
void um_record(uint32_t kind, uint64_t value, uint64_t start, uint64_t end, uint64_t address, uint32_t from,
               uint32_t to, uint32_t flags, Context *context) {
  Record record(kUm);
  record.put<uint32_t>(4, kind);
  record.put<uint64_t>(8, value);
  record.put<uint64_t>(32, address);
  record.put<uint32_t>(40, from);
  record.put<uint32_t>(44, to);
  record.put<uint32_t>(52, static_cast<uint32_t>(getpid()));
  record.put<uint32_t>(56, flags);
  deliver_later(record, start, end, context);
}

std::atomic<uint32_t> g_um_counters{0};

}  // namespace
}  // namespace fake

using namespace fake;  // NOLINT: from here on nothing but exports

bool fake::is_backed() {
  return *setting("FAKE_CUDA_BACKED") != 0;
}

// It goes with its context; the pages stay, for who still writes there by mistake.
void fake::forget_device_memory() {
  std::lock_guard hold(gpu_lock());
  std::erase_if(g_blocks, [](const auto &known) { return known.second.kind == 3; });
}

bool fake::is_device_memory(uint64_t address, uint64_t bytes) {
  std::lock_guard hold(gpu_lock());
  const Block *block = block_around(address, bytes);
  return block != nullptr && block->kind == 3;
}

FAKE_EXPORT int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  USABLE();
  Call call(kDriverApi, 243, "cuMemAlloc_v2");
  if (bytes > 150'000'000'000u) {
    return call.give(2);
  }
  *address = is_backed() ? reinterpret_cast<uint64_t>(host_pages(bytes)) : take_address(bytes);
  return keep(*address, {bytes, 3, nullptr}, call.correlation(), stream_of(nullptr));
}

FAKE_EXPORT int cuMemFree_v2(uint64_t address) {
  USABLE();
  Call call(kDriverApi, 245, "cuMemFree_v2");
  wait_context(stream_of(nullptr)->context);
  return call.give(release(address, call.correlation(), stream_of(nullptr)));
}

FAKE_EXPORT int cuMemAllocManaged(uint64_t *address, size_t bytes, unsigned) {
  USABLE();
  Call call(kDriverApi, 371, "cuMemAllocManaged");
  *address = reinterpret_cast<uint64_t>(host_pages(bytes));
  return keep(*address, {bytes, 5, nullptr}, call.correlation(), stream_of(nullptr));
}

FAKE_EXPORT int cuMemHostAlloc(void **pages, size_t bytes, unsigned) {
  USABLE();
  Call call(kDriverApi, 39, "cuMemHostAlloc");
  *pages = host_pages(bytes);
  return keep(reinterpret_cast<uint64_t>(*pages), {bytes, 2, nullptr}, call.correlation(),
              stream_of(nullptr));
}

FAKE_EXPORT int cuMemFreeHost(void *pages) {
  USABLE();
  Call call(kDriverApi, 38, "cuMemFreeHost");
  return call.give(release(reinterpret_cast<uint64_t>(pages), call.correlation(), stream_of(nullptr)));
}

FAKE_EXPORT int cuMemAllocAsync(uint64_t *address, size_t bytes, void *handle) {
  USABLE();
  Call call(kDriverApi, 598, "cuMemAllocAsync");
  Stream *stream = stream_of(handle);
  *address = take_address(bytes);
  return keep(*address, {bytes, 3, default_pool(stream->context->device)}, call.correlation(), stream);
}

FAKE_EXPORT int cuMemFreeAsync(uint64_t address, void *handle) {
  USABLE();
  Call call(kDriverApi, 600, "cuMemFreeAsync");
  return call.give(release(address, call.correlation(), stream_of(handle)));
}

FAKE_EXPORT int cuMemPoolCreate(Pool **pool, const void *) {
  USABLE();
  Call call(kDriverApi, 607, "cuMemPoolCreate");
  *pool = new Pool{take_address(1), 1 << 25, 0, 1 << 20, stream_of(nullptr)->context->device};
  pool_record(1, **pool, call.correlation(), 0);
  return 0;
}

FAKE_EXPORT int cuMemPoolTrimTo(Pool *pool, size_t bytes) {
  USABLE();
  Call call(kDriverApi, 602, "cuMemPoolTrimTo");
  pool->size = std::max<uint64_t>(pool->used, bytes);
  pool_record(3, *pool, call.correlation(), bytes);
  return 0;
}

FAKE_EXPORT int cuMemPoolDestroy(Pool *pool) {
  USABLE();
  Call call(kDriverApi, 608, "cuMemPoolDestroy");
  pool_record(2, *pool, call.correlation(), 0);
  delete pool;
  return 0;
}

// Moves managed memory: migrations and the faults of the GPU that would have caused them.
FAKE_EXPORT int cuMemPrefetchAsync(uint64_t address, size_t bytes, int device, void *handle) {
  USABLE();
  Call call(kDriverApi, 467, "cuMemPrefetchAsync");
  Stream *stream = stream_of(handle);
  uint64_t duration = 2000 + bytes / 10;
  uint64_t start = enqueue(stream, duration, 3000);
  bool to_host = device < 0;
  uint32_t counters = g_um_counters.load(), here = stream->context->device;
  truth(R"({"what": "um", "pid": %d, "kind": %u, "bytes": %zu, "address": %llu, "start": %llu, "end": %llu})",
        getpid(), to_host ? 2 : 1, bytes, static_cast<unsigned long long>(address),
        static_cast<unsigned long long>(start - kGpuEpoch),
        static_cast<unsigned long long>(start + duration - kGpuEpoch));
  if ((counters >> (to_host ? 2 : 1) & 1) != 0) {
    um_record(to_host ? 2 : 1, bytes, start, start + duration, address, to_host ? here : 0xffffffff,
              to_host ? 0xffffffff : here, 2, stream->context);
  }
  if (to_host && (counters >> 3 & 1) != 0) {
    um_record(3, 1, start, start, address, 0xffffffff, here, 1, stream->context);
  }
  if (!to_host && (counters >> 4 & 1) != 0) {
    um_record(4, 12, start, start + duration / 2, address, here, here, 1, stream->context);
  }
  return 0;
}

struct UmConfig {
  uint32_t scope, kind, device, enable;
};

FAKE_EXPORT int cuptiActivityConfigureUnifiedMemoryCounter(UmConfig *configs, uint32_t count) {
  if (out_of_bounds("cuptiActivityConfigureUnifiedMemoryCounter")) {
    return 999;
  }
  if (trap("no-um") != 0) {
    return 28;
  }
  for (uint32_t index = 0; index < count; ++index) {
    const UmConfig &config = configs[index];
    if (config.kind == 0 || config.kind > 8) {
      return 1;
    }
    g_um_counters = config.enable != 0 ? g_um_counters.load() | 1u << config.kind
                                       : g_um_counters.load() & ~(1u << config.kind);
  }
  return 0;
}
