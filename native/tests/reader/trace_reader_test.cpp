// Chrome traces: whole ones, cut off at every byte, changed at random, in pieces of all sizes. Meant for the sanitizers.
#include "reader/chrome/trace_reader.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "reader/chrome/json_text.h"
#include "tests/check.h"

using namespace warplens::reader;

namespace {

constexpr const char *kTrace = R"({
  "schemaVersion": 1, "metadata": {"a": ["}", "\""], "b": 1.5e3},
  "deviceProperties": [{"id": 0, "name": "GPU"}],
  "traceEvents": [
  {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "ts": 0, "args": {"name": "python \u00e4\ud83d\ude00"}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 10.5, "dur": 4.25,
   "args": {"External id": 3, "Input Dims": [[1, 2], []], "Collective name": "allreduce", "Call stack": "a\\b"}},
  {"args": {"grid": [8, 2, 1], "stream": 7, "correlation": 5}, "dur": 1e1, "ts": 20, "tid": "stream 7", "pid": 0,
   "name": "gemm", "cat": "kernel", "ph": "X"},
  {"ph": "B", "name": "b", "pid": 7, "tid": 8, "ts": 1}, {"ph": "E", "pid": 7, "tid": 8, "ts": 3},
  {"ph": "b", "cat": "c", "id": "0x1", "name": "async", "pid": 7, "tid": 8, "ts": 1},
  {"ph": "e", "cat": "c", "id": "0x1", "id2": {"local": 4}, "name": "async", "pid": 7, "tid": 8, "ts": 2},
  {"ph": "C", "name": "count", "pid": 7, "tid": 8, "ts": 2, "args": {"x": 1, "y": 2.5, "z": NaN}},
  {"ph": "s", "cat": "fwdbwd", "name": "fwdbwd", "id": 1, "pid": 7, "tid": 7, "ts": 10.5},
  {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 7, "tid": 7, "ts": 11, "args": {"Addr": 64, "Bytes": -8}}
  ]
})";

std::unique_ptr<TraceReader> read(const std::string &text, size_t piece) {
  auto reader = std::make_unique<TraceReader>();
  for (size_t at = 0; at < text.size(); at += piece) {
    // A copy of just these bytes, so that reading beyond them is seen.
    const std::vector<char> bytes(
        text.begin() + static_cast<std::ptrdiff_t>(at),
        text.begin() + static_cast<std::ptrdiff_t>(std::min(at + piece, text.size())));
    reader->feed(bytes.data(), bytes.size());
  }
  reader->finish();
  return reader;
}

template <typename Value>
std::vector<Value> column(TraceReader &reader, Kind kind, Field field) {
  std::vector<Value> values(reader.events().rows(kind).size());
  CHECK(reader.events().rows(kind).take(field, reinterpret_cast<char *>(values.data())));
  return values;
}

void test_whole() {
  const std::string text = kTrace;
  for (size_t piece = 1; piece < text.size(); piece = piece < 80 ? piece + 1 : piece * 2) {
    const auto reader = read(text, piece);
    CHECK(reader->ending() == TraceReader::kWhole);
    CHECK(reader->broken() == 0 && reader->broken_at() == -1);
    CHECK(reader->members().size() == 2 && reader->skipped().size() == 1);
    CHECK(column<int64_t>(*reader, kOp, kStart) == std::vector<int64_t>{10'500});
    CHECK(column<int64_t>(*reader, kOp, kEnd) == std::vector<int64_t>{14'750});
    CHECK(column<int64_t>(*reader, kKernel, kEnd) == std::vector<int64_t>{30'000});
    CHECK(column<int32_t>(*reader, kKernel, kGridX) == std::vector<int32_t>{8});
    CHECK(reader->events().rows(kRange).size() == 1 && reader->events().rows(kAsync).size() == 1);
    CHECK(reader->events().rows(kCounter).size() == 3 && reader->events().rows(kMemory).size() == 1);
    CHECK(reader->events().rows(kCollectiveCall).size() == 1 && reader->events().rows(kFlow).size() == 1);
  }
}

void test_cut_off() {
  const std::string text = kTrace;
  for (size_t size = 0; size < text.size(); ++size) {
    const auto reader = read(text.substr(0, size), 17);
    CHECK(reader->ending() == (size == 0 ? TraceReader::kNoTrace : TraceReader::kCut));
    CHECK(size == 0 || reader->broken_at() >= 0);
  }
}

void test_changed() {
  std::mt19937 random(20'240'607);
  const std::string text = kTrace;
  constexpr std::string_view kLetters = "{}[]\",:\\u0eE+-.d8 \n";
  for (int round = 0; round < 800; ++round) {
    std::string changed = text;
    for (int change = 0; change < 3; ++change) {
      const size_t at = random() % changed.size();
      switch (random() % 3) {
        case 0:
          changed[at] = kLetters[random() % kLetters.size()];
          break;
        case 1:
          changed.erase(at, random() % 9);
          break;
        default:
          changed.insert(at, 1, static_cast<char>(random()));
      }
    }
    const auto reader = read(changed, 1 + random() % 300);
    std::string out;
    for (uint32_t code = 0; code < reader->events().texts().size(); ++code) {
      json::unescape(reader->events().texts()[code], out);
    }
    CHECK(reader->events().count(kEvents) <= 12);
  }
}

void test_many_texts() {
  TextCodes codes;
  for (int round = 0; round < 2; ++round) {
    for (uint32_t number = 0; number < 50'000; ++number) {
      CHECK(codes.code("name " + std::to_string(number)) == number);
    }
  }
  CHECK(codes.size() == 50'000 && codes[49'999] == "name 49999");
}

}  // namespace

int main() {
  test_whole();
  test_cut_off();
  test_changed();
  test_many_texts();
  std::printf("trace_reader: %d checks, %d failed\n", g_checks, g_failures);
  return g_failures == 0 ? 0 : 1;
}
