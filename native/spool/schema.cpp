// One line per field: what a reader gets to know about a record.
#include "schema.h"

#include <cstdio>

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

template <size_t N>
void append_fields(std::string &out, const Field (&fields)[N]) {
  out += "\"fields\": [";
  for (size_t i = 0; i < N; ++i) {
    char text[96];
    std::snprintf(text, sizeof(text), "%s[\"%s\", \"%s\", %zu]", i == 0 ? "" : ", ", fields[i].name,
                  fields[i].type, fields[i].offset);
    out += text;
  }
  out += "]}";
}

template <size_t N>
void append_record(std::string &out, const char *name, RecordType type, size_t size,
                   const Field (&fields)[N]) {
  char text[96];
  std::snprintf(text, sizeof(text), "\"%s\": {\"id\": %d, \"size\": %zu, ", name, static_cast<int>(type),
                size);
  out += text;
  append_fields(out, fields);
}

}  // namespace

std::string schema_json() {
  std::string out = "\"records\": {";
  append_record(out, "range", RecordType::range, sizeof(EventRecord), kEvent);
  out += ", ";
  append_record(out, "start_end", RecordType::start_end, sizeof(EventRecord), kEvent);
  out += ", ";
  append_record(out, "mark", RecordType::mark, sizeof(EventRecord), kEvent);
  out += ", ";
  append_record(out, "thread_switch", RecordType::thread_switch, sizeof(MetaRecord), kMeta);
  out += ", ";
  append_record(out, "origin", RecordType::origin, sizeof(MetaRecord), kMeta);
  out += ", ";
  append_record(out, "thread", RecordType::thread, sizeof(MetaRecord), kMeta);
  out += ", ";
  append_record(out, "domain", RecordType::domain, sizeof(MetaRecord), kMeta);
  out += ", ";
  append_record(out, "category", RecordType::category, sizeof(MetaRecord), kMeta);
  out += ", ";
  append_record(out, "thread_name", RecordType::thread_name, sizeof(MetaRecord), kMeta);
  char text[64];
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
