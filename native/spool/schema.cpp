// One line per field: what a reader gets to know about a record.
#include "schema.h"

#include <cstdio>
#include <span>

#include "warpline/format.h"

namespace warpline {
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
constexpr Field kSlot[] = {
    {"id", "u8", offsetof(OpenSlot, id)},
    {"thread", "u4", offsetof(OpenSlot, thread)},
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
    {"origin", RecordType::origin, kMeta},
    {"thread", RecordType::thread, kMeta},
    {"domain", RecordType::domain, kMeta},
    {"category", RecordType::category, kMeta},
    {"thread_name", RecordType::thread_name, kMeta},
};

void append_fields(std::string &out, std::span<const Field> fields) {
  out += "\"fields\": [";
  const char *comma = "";
  for (const Field &field : fields) {
    char text[96];
    std::snprintf(text, sizeof(text), "%s[\"%s\", \"%s\", %zu]", comma, field.name, field.type, field.offset);
    out += text;
    comma = ", ";
  }
  out += "]}";
}

}  // namespace

std::string schema_json() {
  std::string out = "\"records\": {";
  const char *comma = "";
  char text[96];
  for (const Record &record : kRecords) {
    std::snprintf(text, sizeof(text), "%s\"%s\": {\"id\": %d, \"size\": %zu, ", comma, record.name,
                  static_cast<int>(record.type), sizeof(EventRecord));
    out += text;
    append_fields(out, record.fields);
    comma = ", ";
  }
  std::snprintf(text, sizeof(text), "}, \"slot\": {\"size\": %zu, ", sizeof(OpenSlot));
  out += text;
  append_fields(out, kSlot);
  return out;
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

}  // namespace warpline
