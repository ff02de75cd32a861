// Payloads, what the end of a range changes, definitions, operations and tasks in the spool.
#include <sys/resource.h>

#include <cstring>

#include "spool/schemas/schema.h"
#include "spool/system/busy.h"
#include "tests/scratch.h"

namespace {

struct Read {
  std::vector<char> bytes;

  explicit Read(const std::string &path) { chunks(path, bytes, ChunkKind::records); }
  const BlobHead &blob(uint64_t offset) const {
    return *reinterpret_cast<const BlobHead *>(bytes.data() + offset);
  }
  std::string text(uint64_t offset) const {
    return {bytes.data() + offset + sizeof(BlobHead), blob(offset).size_plus_1 - 1};
  }
  const FileHeader &header() const { return *reinterpret_cast<const FileHeader *>(bytes.data()); }
};

template <typename Record>
std::vector<Record> records(const std::string &path, RecordType type) {
  std::vector<char> bytes;
  std::vector<Record> found;
  for (const ChunkHeader *chunk : chunks(path, bytes, ChunkKind::records)) {
    for (size_t at = sizeof(ChunkHeader); at + chunk->stride <= chunk->size; at += chunk->stride) {
      Record record;
      std::memcpy(&record, reinterpret_cast<const char *>(chunk) + at, sizeof(record));
      if (record.head.type == type) {
        found.push_back(record);
      }
    }
  }
  return found;
}

BlobLog::Blob write(ThreadLog &log, const std::string &text, uint32_t flags = 0) {
  ThreadLog::Busy busy(log);
  return log.write_blob({0, flags, 1023, 0}, text.data(), text.size());
}

Change ending(ThreadLog &log, const std::string &text) {
  Change change;
  BlobLog::Blob blob = write(log, text, kBlobAtEnd);
  change.last_blob = blob.head;
  change.label.payload = blob.offset;
  change.label.flags = kPayloadMask;
  return change;
}

void test_blobs() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, "{" + schema_json() + "}", kClock) == 0);
  ThreadLog *log = process.enter_thread();
  std::vector<std::pair<uint64_t, std::string>> written;
  for (size_t i = 0; i < 3000; ++i) {  // over many chunks of all sizes
    std::string text(i % 700, static_cast<char>('a' + i % 26));
    written.emplace_back(write(*log, text).offset, text);
  }
  for (size_t size : {BlobLog::kLargest - 1, BlobLog::kLargest, BlobLog::kLargest + 1}) {
    written.emplace_back(write(*log, std::string(size, 'L')).offset,
                         std::string(std::min(size, BlobLog::kLargest), 'L'));
  }
  Read file(scratch.path);
  for (const auto &[offset, text] : written) {
    CHECK(offset % 8 == 0 && offset != 0);
    CHECK(file.text(offset) == text);
  }
  CHECK((file.blob(written.back().first).flags & kBlobCut) != 0);
  CHECK((file.blob(written[written.size() - 2].first).flags & kBlobCut) == 0);
  CHECK(file.header().dropped[kCutPayloads].load() == 1);
  CHECK(file.header().dropped[kLostPayloads].load() == 0);
}

void test_changes() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, "{" + schema_json() + "}", kClock) == 0);
  ThreadLog *log = process.enter_thread();
  Label number = named(7);
  number.payload = 42;
  number.flags = 2;
  log->push(0, number);
  log->push(3, named(8));  // another domain is above it
  Change change = ending(*log, "end");
  change.label.color = 5;
  change.label.flags |= kFlagColor;
  change.label.category = 6;
  change.category = true;
  CHECK(log->pop(0, 10, change) == 0);
  Change renamed;
  renamed.name = true;
  renamed.label.name = 9;
  CHECK(log->pop(3, 11, renamed) == 0);
  CHECK(log->pop(0, 12, ending(*log, "nothing is open")) == -1);
  uint64_t id = process.start_range(*log, 0, named(7), 3, 4);
  change = ending(*log, "of a start");
  CHECK(process.end_range(*log, id, 13, &change));
  auto ranges = records<EventRecord>(scratch.path, RecordType::range);
  CHECK(ranges.size() == 2);
  Read file(scratch.path);
  CHECK(ranges[0].color == 5 && ranges[0].category == 6 && ranges[0].head.name == 7);
  CHECK(ranges[0].head.flags == (kPayloadMask | kFlagColor));
  CHECK(file.text(ranges[0].payload) == "end");
  const BlobHead &own = file.blob(file.blob(ranges[0].payload).next);
  CHECK(own.schema == 17 && own.size_plus_1 == 9 && own.next == 0 && own.flags == 0);
  CHECK(ranges[1].head.name == 9 && ranges[1].head.flags == 0);
  auto ended = records<EventRecord>(scratch.path, RecordType::start_end);
  auto origins = records<OriginRecord>(scratch.path, RecordType::origin);
  CHECK(ended.size() == 1 && origins.size() == 1);
  CHECK(file.text(ended[0].payload) == "of a start" && file.blob(ended[0].payload).next == 0);
  CHECK(origins[0].task == 3 && origins[0].parent == 4 && origins[0].id == id);
  CHECK(file.header().dropped[kLostPayloads].load() == 1);
}

Change ending(uint64_t number, uint8_t type) {
  Change change;
  change.label.payload = number;
  change.label.flags = type;
  return change;
}

void test_numbers_at_the_end() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, "{" + schema_json() + "}", kClock) == 0);
  ThreadLog *log = process.enter_thread();
  log->push(0, named(1));
  CHECK(log->pop(0, 1, ending(5, 2)) == 0);
  Label number = named(2);
  number.payload = 7;
  number.flags = 5;
  log->push(0, number);
  CHECK(log->pop(0, 2, ending(8, 1)) == 0);
  CHECK(log->pop(0, 3, ending(9, 1)) == -1);  // nothing is open
  auto ranges = records<EventRecord>(scratch.path, RecordType::range);
  CHECK(ranges.size() == 2);
  CHECK(ranges[0].head.flags == 2 && ranges[0].payload == 5);  // alone: no blob
  Read file(scratch.path);
  CHECK(ranges[1].head.flags == kPayloadMask);
  const BlobHead &last = file.blob(ranges[1].payload);
  CHECK(last.schema == 18 && last.flags == kBlobAtEnd && last.size_plus_1 == 9);
  CHECK(file.text(ranges[1].payload)[0] == 8);
  const BlobHead &own = file.blob(last.next);
  CHECK(own.schema == 15 && own.flags == 0 && own.size_plus_1 == 5 && own.next == 0);
  CHECK(file.text(last.next)[0] == 7);
  CHECK(file.header().dropped[kLostPayloads].load() == 1);
}

void test_origins_of_parents() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, "{" + schema_json() + "}", kClock) == 0);
  ThreadLog *log = process.enter_thread();
  uint64_t ids[4];
  for (uint64_t &id : ids) {
    id = process.start_range(*log, 0, named(1));
  }
  uint64_t child = process.start_range(*log, 0, named(2), 0, ids[1]);
  {
    Busy busy;
    process.name_as_parent(ids[2]);
    process.name_as_parent(ids[2] + 1000);  // of nothing
  }
  for (uint64_t id : ids) {
    CHECK(process.end_range(*log, id, 1));
  }
  CHECK(process.end_range(*log, child, 1));
  uint64_t again = process.start_range(*log, 0, named(3));  // in a slot of a parent
  CHECK(process.end_range(*log, again, 2));
  auto origins = records<OriginRecord>(scratch.path, RecordType::origin);
  CHECK(origins.size() == 3);
  CHECK(origins[0].id == ids[1] && origins[1].id == ids[2]);
  CHECK(origins[2].id == child && origins[2].parent == ids[1]);
}

void test_deep_changes() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, "{" + schema_json() + "}", kClock) == 0);
  ThreadLog *log = process.enter_thread();
  log->push(1, named(1));
  for (int i = 0; i < 5000; ++i) {  // several pieces of the stack
    log->push(0, named(2));
  }
  Change change;
  change.name = true;
  change.label.name = 3;
  CHECK(log->pop(1, 1, change) == 0);
  auto ranges = records<EventRecord>(scratch.path, RecordType::range);
  CHECK(ranges.size() == 1 && ranges[0].head.name == 3 && ranges[0].head.domain == 1);
}

void test_definitions() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, "{" + schema_json() + "}", kClock) == 0);
  ThreadLog *log = process.enter_thread();
  std::string large = "{\"a\": \"" + std::string(900'000, 'x') + "\"}";
  {
    Busy busy;
    CHECK(process.define(*log, 1, 1, 5, "{}"));
    CHECK(process.define(*log, 1, 1, 5, "{}"));          // nothing new
    CHECK(process.define(*log, 1, 2, 5, "{}"));          // of another kind
    CHECK(process.define(*log, 1, 1, 5, "{\"b\": 1}"));  // a later one
    CHECK(process.define(*log, 2, 1, 5, large));
    CHECK(process.define(*log, 0, 0, 6, "{\"once\": 1}"));
  }
  auto definitions = records<MetaRecord>(scratch.path, RecordType::define);
  CHECK(definitions.size() == 5);
  CHECK(definitions[3].id == 5 && definitions[3].head.domain == 2);
  CHECK(process.file().header()->dropped[kCutNames].load() == 0);
}

void test_operations_and_tasks() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, "{" + schema_json() + "}", kClock) == 0);
  ThreadLog *log = process.enter_thread();
  for (uint64_t i = 0; i < 5000; ++i) {
    CHECK(log->operate(2, OperationAction::sync_releasing, i, i * 2, i + 1));
  }
  for (uint32_t task : {1u, 1u, 2u, 0u, 0u, 1u}) {
    log->switch_task(task, 1);
  }
  process.leave_thread(log);
  ThreadLog *next = process.enter_thread();
  next->switch_task(0, 1);  // a thread begins without a task
  auto operations = records<OperationRecord>(scratch.path, RecordType::operation);
  CHECK(operations.size() == 5000);
  CHECK(operations[4999].object == 4999 && operations[4999].value == 9998 && operations[4999].start == 5000);
  CHECK(operations[0].action == 6 && operations[0].head.domain == 2);
  auto switches = records<MetaRecord>(scratch.path, RecordType::task_switch);
  CHECK(switches.size() == 4);
  CHECK(switches[0].id == 1 && switches[1].id == 2 && switches[2].id == 0 && switches[3].id == 1);
}

void test_no_space() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, "{}", kClock) == 0);
  ThreadLog *log = process.enter_thread();
  log->push(0, named(1));
  log->pop(0, 1);
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  rlimit small{512 << 10, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  size_t kept = 0;
  std::string text(10'000, 'x');
  for (int i = 0; i < 200; ++i) {
    kept += write(*log, text).offset != 0 ? 1 : 0;
  }
  CHECK(kept > 5 && kept < 100);
  CHECK(kept + process.file().header()->dropped[kLostPayloads].load() == 200);
  log->push(0, named(1));
  Change lost;
  lost.label.flags = kPayloadMask;
  CHECK(log->pop(0, 1, lost) == 0);  // the range itself still has room
  auto ranges = records<EventRecord>(scratch.path, RecordType::range);
  CHECK(ranges.size() == 2 && ranges[1].head.flags == kPayloadMask && ranges[1].payload == 0);
  setrlimit(RLIMIT_FSIZE, &old);
}

}  // namespace

int main() {
  test_blobs();
  test_changes();
  test_numbers_at_the_end();
  test_origins_of_parents();
  test_deep_changes();
  test_definitions();
  test_operations_and_tasks();
  test_no_space();
  std::printf("payload: %d checks, %d failed\n", g_checks, g_failures);
  return g_failures == 0 ? 0 : 1;
}
