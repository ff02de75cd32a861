// Describes each record for readers: one line per field.
#include "schema.h"

#include <cstdio>
#include <span>

#include "warplens/format.h"

namespace warplens {
namespace {

struct Field {
  const char *name;
  const char *type;  // NumPy's letter and size, little-endian
  size_t offset;
};

constexpr Field kEvent[] = {
    {"type", "u1", 0},
    {"flags", "u1", 1},
    {"domain", "u2", 2},
    {"name", "u4", 4},
    {"start", "u8", offsetof(EventRecord, start)},
    {"end", "u8", offsetof(EventRecord, end)},
    {"payload", "u8", offsetof(EventRecord, payload)},
    {"color", "u4", offsetof(EventRecord, color)},
    {"category", "u4", offsetof(EventRecord, category)},
};
constexpr Field kMeta[] = {
    {"type", "u1", 0},
    {"flags", "u1", 1},
    {"domain", "u2", 2},
    {"name", "u4", 4},
    {"start", "u8", offsetof(MetaRecord, start)},
    {"id", "u8", offsetof(MetaRecord, id)},
    {"thread", "u4", offsetof(MetaRecord, thread)},
    {"tid", "u4", offsetof(MetaRecord, tid)},
    {"category", "u4", offsetof(MetaRecord, category)},
};
constexpr Field kOrigin[] = {
    {"type", "u1", 0},
    {"id", "u8", offsetof(OriginRecord, id)},
    {"parent", "u8", offsetof(OriginRecord, parent)},
    {"thread", "u4", offsetof(OriginRecord, thread)},
    {"task", "u4", offsetof(OriginRecord, task)},
};
constexpr Field kOperation[] = {
    {"type", "u1", 0},
    {"flags", "u1", 1},
    {"domain", "u2", 2},
    {"name", "u4", 4},
    {"start", "u8", offsetof(OperationRecord, start)},
    {"object", "u8", offsetof(OperationRecord, object)},
    {"value", "u8", offsetof(OperationRecord, value)},
    {"action", "u4", offsetof(OperationRecord, action)},
};
constexpr Field kOp[] = {
    {"type", "u1", 0},
    {"flags", "u1", 1},
    {"domain", "u2", 2},
    {"name", "u4", 4},
    {"start", "u8", offsetof(OpRecord, start)},
    {"end", "u8", offsetof(OpRecord, end)},
    {"sequence", "u8", offsetof(OpRecord, sequence)},
    {"shapes", "u4", offsetof(OpRecord, shapes)},
    {"types", "u4", offsetof(OpRecord, types)},
};
constexpr Field kSlot[] = {
    {"id", "u8", offsetof(OpenSlot, id)},
    {"parent", "u8", offsetof(OpenSlot, parent)},
    {"thread", "u4", offsetof(OpenSlot, thread)},
    {"task", "u4", offsetof(OpenSlot, task)},
};

struct Record {
  const char *name;
  RecordType type;
  std::span<const Field> fields;
};

static_assert(sizeof(EventRecord) == sizeof(MetaRecord));  // one size for all: they share chunks
constexpr Record kRecords[] = {
    {"range", RecordType::range, kEvent},
    {"start_end", RecordType::start_end, kEvent},
    {"mark", RecordType::mark, kEvent},
    {"thread_switch", RecordType::thread_switch, kMeta},
    {"origin", RecordType::origin, kOrigin},
    {"thread", RecordType::thread, kMeta},
    {"domain", RecordType::domain, kMeta},
    {"category", RecordType::category, kMeta},
    {"thread_name", RecordType::thread_name, kMeta},
    {"task_switch", RecordType::task_switch, kMeta},
    {"define", RecordType::define, kMeta},
    {"sample", RecordType::sample, kEvent},
    {"operation", RecordType::operation, kOperation},
    {"op", RecordType::op, kOp},
};

struct Action {
  const char *name;
  OperationAction number;
};
constexpr Action kActions[] = {
    {"resource_destroy", OperationAction::resource_destroy},
    {"sync_destroy", OperationAction::sync_destroy},
    {"sync_acquire_start", OperationAction::sync_acquire_start},
    {"sync_acquire_failed", OperationAction::sync_acquire_failed},
    {"sync_acquire_success", OperationAction::sync_acquire_success},
    {"sync_releasing", OperationAction::sync_releasing},
    {"heap_unregister", OperationAction::heap_unregister},
    {"heap_reset", OperationAction::heap_reset},
    {"region_register", OperationAction::region_register},
    {"region_resize", OperationAction::region_resize},
    {"region_unregister", OperationAction::region_unregister},
    {"permissions_assign", OperationAction::permissions_assign},
    {"permissions_destroy", OperationAction::permissions_destroy},
    {"permissions_reset", OperationAction::permissions_reset},
    {"permissions_bind", OperationAction::permissions_bind},
    {"permissions_unbind", OperationAction::permissions_unbind},
    {"memory_initialized", OperationAction::memory_initialized},
};

void append_fields(std::string &out, std::span<const Field> fields) {
  out += "\"fields\": [";
  const char *comma = "";
  for (const Field &field : fields) {
    append_pieces(
        out, {comma, "[\"", field.name, "\", \"", field.type, "\", ", std::to_string(field.offset), "]"});
    comma = ", ";
  }
  out += "]}";
}

}  // namespace

std::string schema_json() {
  std::string out = "\"records\": {";
  const char *comma = "";
  for (const Record &record : kRecords) {
    append_pieces(out,
                  {comma, "\"", record.name, "\": {\"id\": ", std::to_string(static_cast<int>(record.type)),
                   ", \"size\": ", std::to_string(sizeof(EventRecord)), ", "});
    append_fields(out, record.fields);
    comma = ", ";
  }
  append_pieces(out, {"}, \"slot\": {\"size\": ", std::to_string(sizeof(OpenSlot)), ", "});
  append_fields(out, kSlot);
  out += ", \"actions\": {";
  comma = "";
  for (const Action &action : kActions) {
    append_pieces(out,
                  {comma, "\"", action.name, "\": ", std::to_string(static_cast<unsigned>(action.number))});
    comma = ", ";
  }
  out += "}";
  return out;
}

void append_pieces(std::string &out, std::initializer_list<std::string_view> pieces) {
  for (std::string_view piece : pieces) {
    out += piece;
  }
}

void append_json_string(std::string &out, std::string_view text) {
  out += '"';
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", byte);
      out += escape;
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace warplens
