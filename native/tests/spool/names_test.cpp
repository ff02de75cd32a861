// Names without end: what the process keeps of them is bounded, and each of them is in the spool.
#include "spool/schemas/schema.h"
#include "tests/scratch.h"

namespace {

constexpr uint32_t kNames = 300'000;  // several times what is kept

std::string called(uint32_t i) {
  return "request " + std::to_string(i) + " of a user with a long name";
}

// The texts of a spool by their numbers.
std::vector<std::string> texts(const std::string &path) {
  std::vector<char> bytes;
  std::vector<std::string> found;
  for (const ChunkHeader *chunk : chunks(path, bytes, ChunkKind::strings)) {
    const char *at = reinterpret_cast<const char *>(chunk + 1);
    const char *end = reinterpret_cast<const char *>(chunk) + chunk->size;
    while (at + sizeof(StringHead) <= end) {
      const auto *head = reinterpret_cast<const StringHead *>(at);
      if (head->length_plus_1 == 0) {
        break;
      }
      found.resize(std::max<size_t>(found.size(), head->id + 1));
      found[head->id] = std::string(at + sizeof(StringHead), head->length_plus_1 - 1);
      at += (sizeof(StringHead) + head->length_plus_1 - 1 + 7) / 8 * 8;
    }
  }
  return found;
}

size_t anonymous_kib() {
  size_t kib = 0;
  if (FILE *status = std::fopen("/proc/self/status", "r")) {
    char line[256];
    while (std::fgets(line, sizeof(line), status) != nullptr) {
      std::sscanf(line, "RssAnon: %zu", &kib);
    }
    std::fclose(status);
  }
  return kib;
}

void test_names_without_end() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, "{}", kClock) == 0);
  ThreadLog *log = process.enter_thread();
  std::vector<uint32_t> numbers(kNames);
  size_t before = anonymous_kib();
  for (uint32_t i = 0; i < kNames; ++i) {
    std::string name = called(i);
    numbers[i] = log->intern(name.data(), name.size());
  }
#if defined(__SANITIZE_ADDRESS__)
  CHECK(before != 0);  // the sanitizer takes more than we do
#else
  CHECK(anonymous_kib() - before < 10 * 1024 + kNames * sizeof(uint32_t) / 1024);
#endif
  std::vector<std::string> written = texts(scratch.path);
  bool right = true;
  for (uint32_t i = 0; i < kNames; ++i) {
    right = right && numbers[i] < written.size() && written[numbers[i]] == called(i);
  }
  CHECK(right);
  CHECK(process.file().header()->dropped[0].load() == 0);
  // What was met first is kept, what was met last is remembered, and what was forgotten is written again.
  std::string first = called(0), middle = called(kNames / 2), last = called(kNames - 1);
  CHECK(process.passing(first) == numbers[0]);
  CHECK(process.passing(last) == numbers[kNames - 1]);
  uint32_t again = process.passing(middle);
  CHECK(again != 0 && again != numbers[kNames / 2] && texts(scratch.path)[again] == middle);
  // Handles are for good.
  uint32_t handle = process.intern("a handle");
  CHECK(process.text(handle) == "a handle" && process.intern("a handle") == handle &&
        process.passing("a handle") == handle);
}

// A child of a fork writes the names of the ranges that it got from its parent into its own spool.
void test_open_ranges_keep_their_names() {
  Scratch scratch, later;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, "{" + schema_json() + "}", kClock) == 0);
  ThreadLog *log = process.enter_thread();
  uint32_t outer = 0, started = 0;
  for (uint32_t i = 0; i < kNames; ++i) {
    uint32_t number = process.passing(called(i));
    outer = i == kNames / 2 ? number : outer;
    started = i == kNames / 3 ? number : started;
  }
  CHECK(process.text(outer).empty() && process.text(started).empty());
  log->push(0, named(outer));
  CHECK(process.start_range(*log, 0, named(started)) != 0);
  process.inherited(log);
  CHECK(process.text(outer) == called(kNames / 2) && process.text(started) == called(kNames / 3));
  process.finish();
  ProcessLog second(names);
  CHECK(second.open(later.path, "{}", kClock) == 0);
  std::vector<std::string> written = texts(later.path);
  CHECK(written[outer] == called(kNames / 2) && written[started] == called(kNames / 3));
  CHECK(second.passing(called(kNames - 1)) > kNames);  // numbers that pass are those of one recording
  CHECK(texts(later.path).back() == called(kNames - 1));
}

}  // namespace

int main() {
  test_names_without_end();
  test_open_ranges_keep_their_names();
  std::printf("names: %d checks, %d failed\n", g_checks, g_failures);
  return g_failures == 0 ? 0 : 1;
}
