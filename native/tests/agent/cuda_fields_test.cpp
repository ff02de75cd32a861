// Every field of every record of CUPTI, in the layout of each version, and where it ends up in the spool.
#include <cstddef>

#include "tests/agent/cuda_recording.h"

namespace warplens::agent {

const char *cupti_callback_name(const Cupti &, CuptiDomain domain, uint32_t cbid) {
  return name_of_call(domain, cbid);
}

namespace {

constexpr uint32_t kVersions[] = {kCupti118, kCupti122,   kCupti124, kCupti126,
                                  kCupti128, kCupti130u1, kCupti132, kCupti134u1};

// Every field of every kind, in all versions: fields that a version lacks are rubbish there, and must not be read.
void test_fields() {
  for (uint32_t version : kVersions) {
    g_version = version;
    Recording to;
    uint64_t t = to.now;
    CuptiKernelActivity kernel{};
    kernel.kind = kCuptiConcurrentKernel;
    kernel.cache_config = 0x21;
    kernel.registers = 40;
    kernel.start = t + 100;
    kernel.end = t + 200;
    kernel.device = 1;
    kernel.context = 2;
    kernel.stream = 7;
    for (int i = 0; i < 3; ++i) {
      kernel.grid[i] = 10 + i;
      kernel.block[i] = 20 + i;
      kernel.cluster[i] = static_cast<uint32_t>(30 + i);
    }
    kernel.static_shared = 1024;
    kernel.dynamic_shared = 2048;
    kernel.local_per_thread = 16;
    kernel.correlation = ++g_correlation;
    kernel.grid_id = -5;
    kernel.name = "_Z4gemmPf";
    kernel.launch_type = 1;
    kernel.shared_executed = 4096;
    kernel.graph_node = 0x1'0000'0009;
    kernel.graph = 3;
    kernel.channel = 12;
    kernel.local_total = uint64_t{5} << 32;
    CuptiMemcpyActivity copy{};
    copy.kind = kCuptiMemcpy;
    copy.copy_kind = 1;
    copy.source_kind = 2;
    copy.destination_kind = 3;
    copy.flags = 1;
    copy.bytes = uint64_t{1} << 33;
    copy.start = t + 300;
    copy.end = t + 400;
    copy.stream = 8;
    copy.correlation = ++g_correlation;
    copy.graph = 4;
    copy.copies = 6;
    CuptiPeerCopyActivity peer{};
    peer.kind = kCuptiMemcpyPeer;
    peer.copy_kind = 10;
    peer.bytes = 55;
    peer.start = t + 400;
    peer.end = t + 500;
    peer.device = 1;
    peer.source_device = 1;
    peer.destination_device = 2;
    peer.correlation = ++g_correlation;
    CuptiMemsetActivity set{};
    set.kind = kCuptiMemset;
    set.value = 0xab;
    set.bytes = 77;
    set.start = t + 500;
    set.end = t + 600;
    set.correlation = ++g_correlation;
    set.flags = 1;
    set.memory_kind = 3;
    set.graph_node = 8;
    CuptiSynchronizationActivity sync{};
    sync.kind = kCuptiSynchronization;
    sync.type = 2;
    sync.start = t + 600;
    sync.end = t + 700;
    sync.correlation = ++g_correlation;
    sync.context = 1;
    sync.stream = 7;
    sync.event = 9;
    sync.event_sync = 33;
    sync.result = 600;
    CuptiCudaEventActivity event{};
    event.kind = kCuptiCudaEvent;
    event.correlation = ++g_correlation;
    event.stream = 7;
    event.event = 9;
    event.device = 1;
    event.device_time = t + 650;
    event.event_sync = 33;
    CuptiMemoryActivity memory{};
    memory.kind = kCuptiMemory;
    memory.operation = 1;
    memory.memory_kind = 3;
    memory.correlation = ++g_correlation;
    memory.address = 0x7f00;
    memory.bytes = 4096;
    memory.time = t + 700;
    memory.pc = 0x1234;
    memory.device = 1;
    memory.stream = 7;
    memory.pool_kind = 1;
    memory.pool = 0x5000;
    memory.pool_size = 8192;
    memory.pool_used = 4097;
    memory.pool_threshold = 3;
    memory.source = "libtorch.so";
    CuptiMemoryPoolActivity pool{};
    pool.kind = kCuptiMemoryPool;
    pool.operation = 3;
    pool.pool_kind = 1;
    pool.correlation = ++g_correlation;
    pool.device = 1;
    pool.bytes_to_keep = 2;
    pool.address = 0x5000;
    pool.size = 16384;
    pool.threshold = 5;
    pool.time = t + 800;
    pool.used = 6;
    CuptiExternalActivity external{kCuptiExternal, 4, 0xffff'ffff'ffff, 12345, 0};
    CuptiOverheadActivity overhead{
        kCuptiOverhead, 2 << 16, kCuptiObjectThread, {4, 99, 0}, t + 1, t + 2, 17, 0, nullptr};
    CuptiGraphActivity graph{kCuptiGraph, ++g_correlation, t + 900, t + 950, 1, 21, 2, 7, nullptr};
    CuptiUmActivity um{
        kCuptiUmCounter, kCuptiUmHostToDevice, 65536, t + 1000, t + 1100, 0xa000, 5, 6, 7, 4, 2, 0};
    CuptiUmActivity fault{kCuptiUmCounter, kCuptiUmCpuFaults, 3, t + 1000, 0, 0xb000, 5, 0, 0, 4, 1, 0};
    CuptiJitActivity jit{kCuptiJit, 1, 3, 0, t + 3, t + 4, 18, 0, 0, 0, nullptr, 4, 98};
    CuptiDeviceActivity device{};
    device.kind = kCuptiDevice;
    device.memory_bandwidth = 3'000'000;
    device.memory = uint64_t{141} << 30;
    device.l2_size = 60 << 20;
    device.clock = 1'980'000;
    device.multiprocessors = 132;
    device.major = 9;
    device.device = 1;
    for (uint8_t i = 0; i < 16; ++i) {
      device.uuid.bytes[i] = i;
    }
    device.name = "NVIDIA H200";
    CuptiContextActivity context{kCuptiContext, 2, 1, 1, 7};
    CuptiStreamActivity stream{kCuptiStream, 2, 13, static_cast<uint32_t>(-1), 2, 5};
    Batch batch;
    batch.add(device).add(context).add(stream).add(device);
    batch.add(call(true, 1, t + 10, t + 20, 12345)).add(call(false, 1, t + 30, t + 40));
    batch.add(kernel).add(copy).add(peer).add(set).add(sync).add(event).add(memory).add(pool);
    batch.add(external).add(overhead).add(graph).add(um).add(fault).add(jit);
    batch.send(to.process);

    auto calls = to.all<CudaApiRecord>(RecordType::cuda_api);
    CHECK(calls.size() == 2);
    CHECK(calls[0].start == t + 10 && calls[0].end == t + 20 && calls[0].tid == 77);
    CHECK(calls[0].correlation == 12345 && calls[0].cbid == 1 && calls[0].head.domain == 0);
    CHECK(to.text(calls[0].head.name) == "cudaLaunchKernel_v7000");
    CHECK(calls[1].head.domain == 1 && to.text(calls[1].head.name) == "cuLaunchKernel");

    auto kernels = to.all<CudaKernelRecord>(RecordType::cuda_kernel);
    CHECK(kernels.size() == 1);
    const CudaKernelRecord &k = kernels[0];
    CHECK(to.text(k.head.name) == "_Z4gemmPf" && k.start == t + 100 && k.end == t + 200);
    CHECK(k.device == 1 && k.context == 2 && k.stream == 7 && k.correlation == kernel.correlation);
    CHECK(k.grid_x == 10 && k.grid_y == 11 && k.grid_z == 12 && k.block_x == 20 && k.block_z == 22);
    CHECK(k.cluster_x == 30 && k.cluster_y == 31 && k.cluster_z == 32 && k.channel == 12);
    CHECK(k.static_shared == 1024 && k.dynamic_shared == 2048 && k.shared_executed == 4096);
    CHECK(k.local_per_thread == 16 && k.local_total == uint64_t{5} << 32 && k.registers == 40);
    CHECK(k.graph_node == 0x1'0000'0009 && k.graph == 3 && k.grid_id == -5 && k.launch_type == 1 &&
          k.cache_config == 0x21);

    auto copies = to.all<CudaMemcpyRecord>(RecordType::cuda_memcpy);
    CHECK(copies.size() == 2);
    CHECK(copies[0].bytes == uint64_t{1} << 33 && copies[0].copy_kind == 1 && copies[0].source_kind == 2);
    CHECK(copies[0].destination_kind == 3 && copies[0].flags == 1 && copies[0].stream == 8 &&
          copies[0].graph == 4);
    CHECK(copies[0].copies == (version >= kCupti128 ? 6 : 0));
    CHECK(copies[0].source_device == 0xffffffff && copies[0].destination_device == 0xffffffff);
    CHECK(copies[1].source_device == 1 && copies[1].destination_device == 2 && copies[1].copy_kind == 10);
    CHECK(copies[1].correlation == peer.correlation && copies[1].bytes == 55);

    auto sets = to.all<CudaMemsetRecord>(RecordType::cuda_memset);
    CHECK(sets.size() == 1 && sets[0].value == 0xab && sets[0].bytes == 77 && sets[0].memory_kind == 3);
    CHECK(sets[0].flags == 1 && sets[0].graph_node == 8 && sets[0].correlation == set.correlation);

    bool newer = version >= kCupti128;
    auto syncs = to.all<CudaSyncRecord>(RecordType::cuda_sync);
    CHECK(syncs.size() == 1 && syncs[0].kind == 2 && syncs[0].event == 9 && syncs[0].stream == 7);
    CHECK(syncs[0].event_sync == (newer ? 33 : 0) && syncs[0].result == (newer ? 600 : 0));
    auto events = to.all<CudaEventRecord>(RecordType::cuda_event);
    CHECK(events.size() == 1 && events[0].event == 9 && events[0].stream == 7);
    CHECK(events[0].start == (newer ? t + 650 : 0) && events[0].event_sync == (newer ? 33 : 0));
    CHECK(events[0].device == (newer ? 1 : 0xffffffff));

    auto memories = to.all<CudaMemoryRecord>(RecordType::cuda_memory);
    CHECK(memories.size() == 2);
    CHECK(memories[0].operation == CudaMemoryOperation::allocate && memories[0].bytes == 4096);
    CHECK(memories[0].address == 0x7f00 && memories[0].pc == 0x1234 && memories[0].pool == 0x5000);
    CHECK(memories[0].pool_size == 8192 && memories[0].pool_used == 4097 && memories[0].pool_threshold == 3);
    CHECK(to.text(memories[0].head.name) == (version >= kCupti126 ? "libtorch.so" : ""));
    CHECK(memories[1].operation == CudaMemoryOperation::pool_trim && memories[1].pool == 0x5000);
    CHECK(memories[1].pool_size == 16384 && memories[1].pool_used == 6 && memories[1].start == t + 800);

    auto externals = to.all<CudaExternalRecord>(RecordType::cuda_external);
    CHECK(externals.size() == 1 && externals[0].external == 0xffff'ffff'ffff && externals[0].kind == 4);
    CHECK(externals[0].correlation == 12345);
    auto overheads = to.all<CudaOverheadRecord>(RecordType::cuda_overhead);
    CHECK(overheads.size() == 2 && overheads[0].kind == 2 << 16 && overheads[0].tid == 99);
    CHECK(overheads[0].correlation == (version >= kCupti124 ? 17 : 0) && overheads[0].jit == 0);
    CHECK(overheads[1].jit == 3 && overheads[1].kind == 1 && overheads[1].correlation == 18);
    CHECK(overheads[1].tid == (version >= kCupti124 ? 98 : 0));
    auto graphs = to.all<CudaGraphRecord>(RecordType::cuda_graph);
    CHECK(graphs.size() == 1 && graphs[0].graph == 21 && graphs[0].correlation == graph.correlation);
    CHECK(graphs[0].end == t + 950 && graphs[0].device == 1);
    auto ums = to.all<CudaUmRecord>(RecordType::cuda_um);
    CHECK(ums.size() == 2 && ums[0].value == 65536 && ums[0].source == 5 && ums[0].destination == 6);
    CHECK(ums[0].flags == 2 && ums[1].start == ums[1].end && ums[1].kind == kCuptiUmCpuFaults);

    auto devices = to.all<CudaDeviceRecord>(RecordType::cuda_device);
    CHECK(devices.size() == 1 && to.text(devices[0].head.name) == "NVIDIA H200" && devices[0].device == 1);
    CHECK(devices[0].memory == uint64_t{141} << 30 && devices[0].multiprocessors == 132 &&
          devices[0].major == 9);
    CHECK(devices[0].uuid_low == 0x0706050403020100 && devices[0].uuid_high == 0x0f0e0d0c0b0a0908);
    CHECK(devices[0].clock == 1'980'000 && devices[0].l2_size == 60 << 20 &&
          devices[0].memory_bandwidth == 3'000'000);
    auto contexts = to.all<CudaContextRecord>(RecordType::cuda_context);
    CHECK(contexts.size() == 1 && contexts[0].context == 2 && contexts[0].device == 1 &&
          contexts[0].null_stream == 7);
    auto streams = to.all<CudaStreamRecord>(RecordType::cuda_stream);
    CHECK(streams.size() == 1 && streams[0].stream == 13 && streams[0].kind == 2 &&
          streams[0].priority == 0xffffffff);
    for (size_t slot = 0; slot < kDropSlots; ++slot) {
      CHECK(to.dropped(slot) == 0);
    }
  }
  g_version = kCupti130u1;
}

}  // namespace
}  // namespace warplens::agent

int main() {
  using namespace warplens::agent;
  test_fields();
  std::printf("cuda_fields: %d checks, %d failed\n", g_checks, g_failures);
  return g_failures == 0 ? 0 : 1;
}
