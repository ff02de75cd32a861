// What becomes of the records that CUPTI hands over.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <string>
#include <thread>

#include "tests/agent/cuda_recording.h"

namespace warplens::agent {

const char *cupti_callback_name(const Cupti &, CuptiDomain domain, uint32_t cbid) {
  return name_of_call(domain, cbid);
}

namespace {

// The driver's functions count where the program calls them itself.
void test_nested() {
  for (bool all : {false, true}) {
    CudaSettings settings{};
    settings.flags = all ? kCudaAllApis : 0;
    Recording to(settings);
    uint64_t t = to.now;
    Batch()
        .add(call(false, 1, t + 12, t + 14, 500))
        .add(call(false, 1, t + 12, t + 15, 501, 78))  // of another thread, at the same time
        .add(call(true, 1, t + 10, t + 20, 500))
        .add(call(true, 2, t + 21, t + 22))
        .add(call(true, 3, t + 50, t + 60, 510))  // CUPTI promises no order
        .add(call(false, 3, t + 52, t + 55, 511))
        .add(call(false, 2, t + 23, t + 24))
        .add(call(false, 3, t + 30, t + 40, 502))
        .send(to.process);
    size_t driver = 0;
    for (const CudaApiRecord &record : to.all<CudaApiRecord>(RecordType::cuda_api)) {
      driver += record.head.domain;
      CHECK(all || record.head.domain == 0 || (record.correlation != 500 && record.correlation != 511));
    }
    CHECK(driver == (all ? 5 : 2));
    CHECK(to.all<CudaApiRecord>(RecordType::cuda_api).size() == (all ? 8 : 4));
  }
  // More of them than wait at a time.
  Recording to;
  Batch batch;
  for (uint64_t i = 0; i < 1000; ++i) {
    batch.add(call(false, 1, to.now + i, to.now + i + 1));
  }
  batch.send(to.process);
  CHECK(to.all<CudaApiRecord>(RecordType::cuda_api).size() == 1000);
}

void test_names() {
  Recording to;
  uint64_t t = to.now;
  char name[] = "_Z5firstv";
  uint32_t c = g_correlation += 100;
  Batch().add(kernel(c, t, t + 1, name)).add(kernel(c + 1, t, t + 1, name)).send(to.process);
  std::strcpy(name, "_Z3twov");  // its module was unloaded, and another one lies there now
  Batch().add(kernel(c + 2, t, t + 1, name)).send(to.process);
  std::string longest(40'000, 'x');
  Batch()
      .add(kernel(c + 3, t, t + 1, longest.c_str()))
      .add(kernel(c + 4, t, t + 1, longest.c_str()))
      .add(kernel(c + 5, t, t + 1, nullptr))
      .add(kernel(c + 6, t, t + 1, ""))
      .send(to.process);
  auto kernels = to.all<CudaKernelRecord>(RecordType::cuda_kernel);
  CHECK(kernels.size() == 7);
  CHECK(to.text(kernels[0].head.name) == "_Z5firstv" && kernels[1].head.name == kernels[0].head.name);
  CHECK(to.text(kernels[2].head.name) == "_Z3twov");
  CHECK(to.text(kernels[3].head.name).size() == Names::kLongest &&
        kernels[4].head.name == kernels[3].head.name);
  CHECK(kernels[5].head.name == 0 && kernels[6].head.name == 0);
  Batch().add(call(true, 5, t, t + 1)).send(to.process);
  int asked = g_names_asked;
  Batch().add(call(true, 5, t, t + 2)).add(call(true, 5, t, t + 3)).send(to.process);
  CHECK(g_names_asked == asked);
  Batch().add(call(true, 99'999, t, t + 4)).add(call(false, 100'000, t, t + 5)).send(to.process);
  auto calls = to.all<CudaApiRecord>(RecordType::cuda_api);
  CHECK(calls.size() == 5 && to.text(calls[3].head.name) == "cuda 99999" &&
        to.text(calls[4].head.name) == "cu 100000");
}

// Times that say nothing, records that came before, kinds that nobody asked for: counted, and left out.
void test_counted() {
  Recording to;
  uint64_t t = to.now;
  uint32_t c = g_correlation += 100;
  Batch batch;
  batch.add(kernel(c, 0, 0))
      .add(kernel(c + 1, t + 2, t + 1))
      .add(kernel(c + 2, t, 0))
      .add(kernel(c + 3, t, t + 1));
  batch.add(call(true, 1, 0, 0, c + 4)).add(call(true, 1, t, t + 1, c + 5));
  CuptiKernelActivity node = kernel(c + 6, t, t + 1);
  for (uint64_t i = 1; i <= 3; ++i) {  // one launch, the same times
    node.graph_node = i;
    batch.add(node);
  }
  struct {
    CuptiKind kind = 54;
    uint32_t rest[3] = {};
  } unknown;
  batch.add(unknown);
  batch.send(to.process);
  CHECK(to.all<CudaKernelRecord>(RecordType::cuda_kernel).size() == 4);
  CHECK(to.dropped(kCuptiInvalid) == 3 && to.dropped(kCuptiUnfinished) == 1 &&
        to.dropped(kCuptiUnknown) == 1);
  CHECK(to.dropped(kCuptiRepeated) == 0);
  batch.send(to.process);
  CHECK(to.dropped(kCuptiRepeated) == 5);
  CHECK(to.all<CudaKernelRecord>(RecordType::cuda_kernel).size() == 4);
  CHECK(to.all<CudaApiRecord>(RecordType::cuda_api).size() == 1);
  CHECK(to.all<CudaNoticeRecord>(RecordType::cuda_notice).empty());
  // What was unfinished, later.
  Batch().add(kernel(c + 2, t, t + 9)).send(to.process);
  CHECK(to.all<CudaKernelRecord>(RecordType::cuda_kernel).size() == 5);
  // Without memory for it: counted by type.
  batch.send(to.process, 0, true);
  CHECK(to.dropped(static_cast<size_t>(RecordType::cuda_kernel)) == 7);
  CHECK(to.dropped(static_cast<size_t>(RecordType::cuda_api)) == 2);
  CHECK(to.dropped(kCuptiUnknown) == 3);
  {
    Busy busy;  // a signal handler that launches kernels interrupted a slow path: no lock is waited for
    batch.send(to.process);
  }
  CHECK(to.dropped(static_cast<size_t>(RecordType::cuda_kernel)) == 14);
}

void test_clocks() {
  {  // CUPTI runs on another clock, which was measured
    Recording to;
    uint64_t t = to.now;
    uint32_t c = ++g_correlation;
    Batch().add(call(true, 1, t + 5, t + 6, c)).add(kernel(c, t + 7, t + 8)).send(to.process, 1000);
    Batch().add(kernel(++g_correlation, t + 5007, t + 5008)).send(to.process, -5000);
    CHECK(to.all<CudaApiRecord>(RecordType::cuda_api)[0].start == t + 1005);
    auto kernels = to.all<CudaKernelRecord>(RecordType::cuda_kernel);
    CHECK(kernels.size() == 2 && kernels[0].start == t + 1007 && kernels[1].end == t + 8);
    CHECK(to.all<CudaNoticeRecord>(RecordType::cuda_notice).empty());
  }
  {  // some records kept CLOCK_REALTIME
    Recording to;
    ClockSample sample = sample_clocks(ClockKind::monotonic);
    uint64_t off = sample.realtime - sample.monotonic;
    uint32_t c = g_correlation += 10;
    Batch()
        .add(kernel(c, to.now + off, to.now + off + 50))
        .add(kernel(c + 1, to.now + 100, to.now + 150))
        .add(kernel(c + 2, to.now + off + 200, to.now + off + 250))
        .send(to.process);
    auto kernels = to.all<CudaKernelRecord>(RecordType::cuda_kernel);
    CHECK(kernels.size() == 3);
    for (const CudaKernelRecord &record : kernels) {
      CHECK(record.start + 1'000'000'000 > to.now && record.start < to.now + 1'000'000'000);
      CHECK(record.end - record.start == 50);
    }
    auto notices = to.all<CudaNoticeRecord>(RecordType::cuda_notice);
    CHECK(notices.size() == 1 && notices[0].notice == CudaNotice::clock);
    CHECK(to.text(notices[0].head.name) == "those on CLOCK_REALTIME were moved to it");
    CHECK(notices[0].value > 0 && static_cast<uint64_t>(notices[0].value) + 1'000'000'000 > off);
  }
  {  // work long before the call that launched it, whose record comes behind it
    Recording to;
    uint32_t c = ++g_correlation;
    Batch()
        .add(kernel(c, to.now - 5'000'000, to.now - 4'000'000))
        .add(call(true, 1, to.now, to.now + 1, c))
        .send(to.process);
    CHECK(to.all<CudaKernelRecord>(RecordType::cuda_kernel).size() == 1);
    auto notices = to.all<CudaNoticeRecord>(RecordType::cuda_notice);
    CHECK(notices.size() == 1 && notices[0].notice == CudaNotice::clock && notices[0].value == -5'000'000);
  }
  {  // nothing ties these to any clock
    Recording to;
    uint32_t c = g_correlation += 10;
    Batch().add(kernel(c, 1, 50)).add(kernel(c + 1, to.now * 3, to.now * 3 + 1)).send(to.process);
    CHECK(to.all<CudaKernelRecord>(RecordType::cuda_kernel).empty());
    CHECK(to.dropped(kCuptiInvalid) == (to.now > 60'000'000'000 ? 2 : 1));
    CHECK(to.all<CudaNoticeRecord>(RecordType::cuda_notice).size() == 1);
  }
  {  // a begin that is none, on a clock ahead of ours: it would come to lie behind the end
    Recording to;
    uint32_t c = g_correlation += 10;
    constexpr int64_t kAhead = 1'700'000'000'000'000'000;
    Batch()
        .add(kernel(c, 5, to.now + kAhead + 5))
        .add(kernel(c + 1, to.now + kAhead, to.now + kAhead + 5))
        .send(to.process, -kAhead);
    CHECK(to.all<CudaKernelRecord>(RecordType::cuda_kernel).size() == 1);
    CHECK(to.dropped(kCuptiInvalid) == 1);
  }
  {  // work that has not ended yet, though it has
    Recording to;
    uint32_t c = g_correlation += 10;
    Batch().add(kernel(c, to.now, to.now + 3'000'000'000)).send(to.process);
    CHECK(to.all<CudaKernelRecord>(RecordType::cuda_kernel).size() == 1);
    auto notices = to.all<CudaNoticeRecord>(RecordType::cuda_notice);
    CHECK(notices.size() == 1 && notices[0].value > 1'000'000'000 && notices[0].value <= 3'000'000'000);
  }
  {  // work that begins before its call
    Recording to;
    uint32_t c = g_correlation += 10;
    uint64_t t = to.now;
    Batch()
        .add(call(true, 1, t + 5'000'000, t + 5'000'010, c))
        .add(kernel(c, t + 4'999'000, t + 5'000'100))
        .send(to.process);
    CHECK(to.all<CudaNoticeRecord>(RecordType::cuda_notice).empty());
    Batch()
        .add(call(true, 1, t + 6'000'000, t + 6'000'010, c + 1))
        .add(kernel(c + 1, t, t + 10))
        .send(to.process);
    auto notices = to.all<CudaNoticeRecord>(RecordType::cuda_notice);
    CHECK(notices.size() == 1 && notices[0].value == -6'000'000);
    CHECK(to.all<CudaKernelRecord>(RecordType::cuda_kernel).size() == 2);
  }
}

// Kinds stay on: calls are kept where they overlap a window, work wherever it may have been launched in one.
void test_windows() {
  ControlPage *control = control_page();
  control->gate.store(0);
  windows_of(control)->open_ns.store(0);
  {
    Recording to({}, control);
    uint64_t t = to.now - 1'000'000'000;
    const auto window = [&](uint32_t number, uint64_t open, uint64_t close) {
      CaptureWindow &window = windows_of(control)[number];
      window.open_ns.store(open);
      window.close_ns.store(close);
      window.opened_by.store(static_cast<uint32_t>(Cause::command));
      control->gate.store(2 * number + (close == 0 ? 1 : 2));
    };
    const auto sent = [&](uint32_t c, uint64_t start, uint64_t work) {
      size_t before = to.all<CudaApiRecord>(RecordType::cuda_api).size() +
                      2 * to.all<CudaKernelRecord>(RecordType::cuda_kernel).size();
      Batch().add(call(true, 1, start, start + 100, c)).add(kernel(c, work, work + 100)).send(to.process);
      return to.all<CudaApiRecord>(RecordType::cuda_api).size() +
             2 * to.all<CudaKernelRecord>(RecordType::cuda_kernel).size() - before;
    };
    constexpr uint64_t kSecond = 10'000'000;
    uint32_t c = g_correlation += 1000;
    g_correlation += 1000;
    CHECK(sent(c, t, t + 200) == 0);  // before any window
    window(0, t + kSecond, 0);
    CHECK(sent(c + 1, t + 300, t + 400) == 0);
    CHECK(sent(c + 2, t + kSecond - 50, t + kSecond + 60) == 3);  // over the edge
    CHECK(sent(c + 3, t + kSecond + 500, t + kSecond + 600) == 3);
    window(0, t + kSecond, t + 2 * kSecond);
    CHECK(sent(c + 4, t + 2 * kSecond - 50, t + 5 * kSecond) == 3);  // launched in it, and ran long after
    CHECK(sent(c + 5, t + 3 * kSecond, t + 3 * kSecond + 500) == 0);
    Batch().add(kernel(c + 6, t + 4 * kSecond, t + 4 * kSecond + 1)).send(to.process);
    CHECK(to.all<CudaKernelRecord>(RecordType::cuda_kernel).back().correlation ==
          c + 6);  // nobody knows its call
    window(1, t + 6 * kSecond, 0);
    CHECK(sent(c + 7, t + 3 * kSecond, t + 7 * kSecond) == 0);         // launched before it
    CHECK(sent(c + 8, t + kSecond + 9, t + 7 * kSecond + 1000) == 3);  // late to come, of the first window
    CHECK(sent(c + 9, t + 6 * kSecond + 9, t + 7 * kSecond + 2000) == 3);
    for (size_t slot = 0; slot < kDropSlots; ++slot) {
      CHECK(to.dropped(slot) == 0);
    }
    // Memory is followed throughout.
    CuptiMemoryActivity memory{};
    memory.kind = kCuptiMemory;
    memory.operation = 1;
    memory.time = t + 10;
    Batch().add(memory).send(to.process);
    CHECK(to.all<CudaMemoryRecord>(RecordType::cuda_memory).size() == 1);
  }
  unmap_memory(control, kControlSize);
}

// A later recording, in which CUPTI counts anew: what it knew of the calls of the first one is nothing to go by.
void test_again() {
  ControlPage *control = control_page();
  control->gate.store(0);
  uint32_t c = g_correlation += 10;
  {
    Recording to({}, control);
    Batch().add(call(true, 1, to.now, to.now + 1, c)).send(to.process);
    CHECK(to.all<CudaApiRecord>(RecordType::cuda_api).empty());
  }
  {
    Recording to;
    Batch().add(kernel(c, to.now, to.now + 5)).add(call(true, 1, to.now, to.now + 1, c)).send(to.process);
    CHECK(to.all<CudaKernelRecord>(RecordType::cuda_kernel).size() == 1);
    CHECK(to.all<CudaApiRecord>(RecordType::cuda_api).size() == 1);
  }
  unmap_memory(control, kControlSize);
}

void test_notices() {
  Recording to;
  kCudaSource.notice(to.process, CudaNotice::busy, 39, "nsys");
  kCudaSource.made(to.process, {0x1000, 0, 3, 0});
  kCudaSource.made(to.process, {0x1000, 0x2000, 3, 13});
  auto notices = to.all<CudaNoticeRecord>(RecordType::cuda_notice);
  CHECK(notices.size() == 1 && notices[0].notice == CudaNotice::busy && notices[0].value == 39);
  CHECK(to.text(notices[0].head.name) == "nsys" && notices[0].start >= to.now);
  auto contexts = to.all<CudaContextRecord>(RecordType::cuda_context);
  CHECK(contexts.size() == 1 && contexts[0].handle == 0x1000 && contexts[0].context == 3);
  CHECK(contexts[0].device == 0xffffffff && contexts[0].null_stream == 0xffffffff);
  auto streams = to.all<CudaStreamRecord>(RecordType::cuda_stream);
  CHECK(streams.size() == 1 && streams[0].handle == 0x2000 && streams[0].stream == 13 &&
        streams[0].kind == 0);
}

void test_nodes_of_graphs() {
  Recording to;
  ThreadLog *thread = to.process.enter_thread();
  Label step, inner;
  step.name = thread->intern("step", 4);
  inner.name = thread->intern("inner", 5);
  thread->push(0, step);
  thread->push(0, {});  // without a name
  thread->push(1, inner);
  kCudaSource.graph_node(to.process, thread, 5, 0);
  kCudaSource.graph_node(to.process, thread, 6, 5);
  while (thread->pop(1, to.now) >= 0 || thread->pop(0, to.now) >= 0) {
  }
  kCudaSource.graph_node(to.process, thread, 7, 0);
  kCudaSource.graph_node(to.process, nullptr, 8, 0);
  auto nodes = to.all<CudaGraphNodeRecord>(RecordType::cuda_graph_node);
  CHECK(nodes.size() == 4 && nodes[0].node == 5 && nodes[0].original == 0 && nodes[0].start >= to.now);
  CHECK(to.text(nodes[0].head.name) == "step\ninner" && nodes[0].tid != 0);
  CHECK(nodes[1].node == 6 && nodes[1].original == 5 && nodes[1].head.name == 0);
  CHECK(nodes[2].head.name == 0 && nodes[3].node == 8 && nodes[3].head.name == 0);
}

void enter_and_leave(bool runtime, uint32_t cbid, bool enter, uint64_t *word, uint32_t correlation) {
  CuptiDomain domain = runtime ? kCuptiRuntimeApi : kCuptiDriverApi;
  CuptiCallbackData data{};
  data.site = enter ? kCuptiEnter : kCuptiExit;
  data.function = name_of_call(domain, cbid);
  data.correlation_data = word;
  data.correlation = correlation;
  kCudaSource.api_call(domain, cbid, &data);
}

void test_backtraces() {
  {
    Recording to;
    CHECK(!kCudaSource.wants_api_call(kCuptiRuntimeApi, 1));
  }
  CudaSettings settings{};
  settings.backtrace = kCudaKernelCalls | kCudaSyncCalls | kCudaMemoryCalls;
  settings.backtrace_ns[1] = 4'000'000'000;  // memory: none takes so long
  settings.backtrace_ns[2] = 1'000'000;
  Recording to(settings);
  CHECK(kCudaSource.wants_api_call(kCuptiRuntimeApi, 1) && kCudaSource.wants_api_call(kCuptiDriverApi, 1));
  CHECK(kCudaSource.wants_api_call(kCuptiRuntimeApi, 4) && kCudaSource.wants_api_call(kCuptiRuntimeApi, 5));
  CHECK(!kCudaSource.wants_api_call(kCuptiRuntimeApi, 2) && !kCudaSource.wants_api_call(kCuptiRuntimeApi, 6));
  CHECK(!kCudaSource.wants_api_call(kCuptiRuntimeApi, 100'000));
  uint64_t outer = 0;
  uint64_t inner = 0;
  enter_and_leave(true, 1, true, &outer, 41);
  enter_and_leave(false, 1, true, &inner, 41);
  enter_and_leave(false, 1, false, &inner, 41);
  enter_and_leave(true, 1, false, &outer, 41);
  enter_and_leave(true, 5, true, &outer, 42);  // memory: too short
  enter_and_leave(true, 5, false, &outer, 42);
  enter_and_leave(true, 4, true, &outer, 43);  // a wait: too short
  enter_and_leave(true, 4, false, &outer, 43);
  enter_and_leave(true, 4, true, &outer, 44);
  usleep(1500);
  enter_and_leave(true, 4, false, &outer, 44);
  uint64_t other = 0;
  enter_and_leave(true, 1, true, &outer, 45);  // its return is not heard of
  enter_and_leave(true, 1, true, &other, 46);
  enter_and_leave(true, 1, false, &other, 46);
  auto found = to.all<CudaBacktraceRecord>(RecordType::cuda_backtrace);
  CHECK(found.size() == 3);
  CHECK(found[0].correlation == 41 && found[0].category == kCudaKernelCalls && found[0].frames == 0);
  CHECK(to.text(found[0].head.name) == "cudaLaunchKernel_v7000");
  CHECK(found[0].tid == static_cast<uint32_t>(gettid()) && found[0].start >= to.now);
  CHECK(found[1].correlation == 44 && found[1].category == kCudaSyncCalls);
  CHECK(found[1].end - found[1].start >= 1'000'000);
  CHECK(found[2].correlation == 46);
}

// Batches of several threads at once, as with a buffer for each thread.
void test_threads() {
  Recording to;
  constexpr uint32_t kBatches = 50;
  constexpr uint32_t kEach = 200;
  uint32_t first = g_correlation += 10;
  std::thread threads[4];
  for (uint32_t thread = 0; thread < 4; ++thread) {
    threads[thread] = std::thread([&, thread] {
      uint32_t c = first + thread * kBatches * kEach;
      for (uint32_t i = 0; i < kBatches; ++i) {
        Batch batch;
        for (uint32_t k = 0; k < kEach; ++k, ++c) {
          char name[16];
          std::snprintf(name, sizeof(name), "k%u", c % 100);
          batch.add(call(true, 1, to.now + c, to.now + c + 1, c))
              .add(kernel(c, to.now + c, to.now + c + 2, name));
          batch.send(to.process);
          batch = {};
        }
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  auto kernels = to.all<CudaKernelRecord>(RecordType::cuda_kernel);
  CHECK(kernels.size() == 4 * kBatches * kEach);
  CHECK(to.all<CudaApiRecord>(RecordType::cuda_api).size() == 4 * kBatches * kEach);
  for (const CudaKernelRecord &record : kernels) {
    CHECK(to.text(record.head.name) == "k" + std::to_string(record.correlation % 100));
  }
}

// A thread that waits until it is let go.
class Named {
 public:
  explicit Named(const char *name)
      : thread_([this, name] {
          pthread_setname_np(pthread_self(), name);
          tid_.store(static_cast<uint32_t>(gettid()));
          tid_.notify_one();
          done_.wait(false);
        }) {
    tid_.wait(0);
  }
  ~Named() {
    done_.store(true);
    done_.notify_one();
    thread_.join();
  }
  uint32_t tid() const { return tid_.load(); }

 private:
  std::atomic<uint32_t> tid_{0};
  std::atomic<bool> done_{false};
  std::thread thread_;
};

// What the system calls threads that call CUDA, once in each recording; never more than there is room for.
void test_names_of_threads() {
  Named loader("data loader");
  Named other("new\nline\n");
  uint32_t gone = 0;
  std::thread([&gone] { gone = static_cast<uint32_t>(gettid()); }).join();
  for (int recording = 0; recording < 2; ++recording) {
    Recording to;
    Batch batch;
    uint64_t t = to.now;
    for (uint32_t tid : {loader.tid(), other.tid(), loader.tid(), gone, uint32_t{0}, ~uint32_t{0}}) {
      t += 10;
      batch.add(call(true, 1, t, t + 5, 0, tid));
    }
    batch.send(to.process);
    Batch().add(call(true, 1, t + 10, t + 15, 0, other.tid())).send(to.process);
    auto found = to.all<CudaThreadRecord>(RecordType::cuda_thread);
    CHECK(found.size() == 2);
    CHECK(found[0].tid == loader.tid() && found[0].start == to.now + 10);
    CHECK(to.text(found[0].head.name) == "data loader");
    CHECK(found[1].tid == other.tid() && to.text(found[1].head.name) == "new\nline\n");
    CHECK(to.all<CudaApiRecord>(RecordType::cuda_api).size() == 7);
  }
  Recording to;
  Batch batch;
  for (uint32_t tid = 1u << 30; tid < (1u << 30) + 5000; ++tid) {
    batch.add(call(true, 1, to.now, to.now + 5, 0, tid));
  }
  batch.add(call(true, 1, to.now, to.now + 5, 0, loader.tid())).send(to.process);
  CHECK(to.all<CudaThreadRecord>(RecordType::cuda_thread).empty());
  CHECK(to.all<CudaApiRecord>(RecordType::cuda_api).size() == 5001);
}

}  // namespace
}  // namespace warplens::agent

int main() {
  using namespace warplens::agent;
  test_nested();
  test_names();
  test_counted();
  test_clocks();
  test_windows();
  test_again();
  test_notices();
  test_nodes_of_graphs();
  test_backtraces();
  test_threads();
  test_names_of_threads();
  std::printf("cuda_records: %d checks, %d failed\n", g_checks, g_failures);
  return g_failures == 0 ? 0 : 1;
}
