// Decodes marks that programs wrote through ftrace.
// Android's atrace: `print` events with a text such as `B|42|draw`. Other events of the kernel are
// counted by kind. Field numbers: perfetto/trace/ftrace/ftrace_event_bundle.proto,
// ftrace_event.proto, ftrace.proto.
#include <algorithm>
#include <charconv>
#include <functional>
#include <string_view>

#include "decoder.h"

namespace warplens::perfetto {

using wire::Field;
using wire::Message;

namespace {

constexpr uint32_t kPrint = 3;
constexpr uint32_t kCompactSched = 4;  // of a bundle: switches of threads in columns
constexpr uint64_t kBootTime = 6, kMonotonicRaw = 5;
enum FtraceClock : uint64_t { kUnspecified = 0, kGlobal = 2, kLocal = 3, kRaw = 4 };

// Cuts the text up to the next bar off `rest`.
std::string_view cut(std::string_view &rest) {
  const size_t bar = rest.find('|');
  const std::string_view part = rest.substr(0, bar);
  rest.remove_prefix(bar == std::string_view::npos ? rest.size() : bar + 1);
  return part;
}

// The text behind the last bar, which leaves `rest`: names may have bars in them.
std::string_view cut_last(std::string_view &rest) {
  const size_t bar = rest.rfind('|');
  if (bar == std::string_view::npos) return {};
  const std::string_view part = rest.substr(bar + 1);
  rest.remove_suffix(rest.size() - bar);
  return part;
}

bool whole(std::string_view text, int64_t &value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

void Decoder::ftrace(std::string_view bytes) {
  uint64_t kind = kUnspecified, there = 0, here = 0;
  Field field;
  Message first(bytes);
  while (first.next(field)) {
    if (field.id == 5) kind = field.number;
    if (field.id == 6) there = field.number;
    if (field.id == 7) here = field.number;
    if (field.id == 3) lost.dropped += field.number != 0 ? 1 : 0;
    if (field.id == kCompactSched) ++ftrace_left_out[0];
  }
  if (first.broken()) {
    ++lost.broken;
    return;
  }
  // A clock of the kernel that nothing else uses comes with a reading of both.
  const bool paired = kind != kUnspecified && there != 0 && here != 0;
  const uint64_t shift = paired ? here - there : 0;
  const uint8_t number = clock(!paired && kind == kRaw ? kMonotonicRaw : kBootTime);
  Message second(bytes);
  while (second.next(field)) {
    if (field.id != 2 || field.type != 2) continue;
    uint64_t time = 0, tid = 0;
    std::string_view text;
    Message event(field.bytes);
    Field part;
    while (event.next(part)) {
      if (part.id == 1) time = part.number;
      if (part.id == 2) tid = part.number;
      if (part.id == kPrint && part.type == 2) {
        Message print(part.bytes);
        Field inner;
        while (print.next(inner)) {
          if (inner.id == 2) text = inner.bytes;
        }
      } else if (part.type == 2) {
        ++ftrace_left_out[std::min<uint32_t>(part.id, ftrace_left_out.size() - 1)];
      }
    }
    if (!text.empty() && !printed(static_cast<int64_t>(time + shift), number, tid, text)) {
      ++ftrace_left_out[kPrint];
    }
  }
}

// Adds the event that a text stands for; false where it is none of atrace's.
bool Decoder::printed(int64_t time, uint8_t clock, uint64_t tid, std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.remove_suffix(1);
  const char phase = text.empty() ? '\0' : text[0];
  if (text.size() > 1 && text[1] != '|') return false;
  std::string_view rest = text.substr(std::min<size_t>(text.size(), 2));
  int64_t pid = 0;
  const bool known = whole(cut(rest), pid);
  int64_t &owner = ftrace_pids_[tid];
  if (known) owner = pid;
  if (phase == 'E') {  // old programs do not say whose it is
    add(time, clock, track(kThread, static_cast<uint64_t>(owner), tid), kNoText, kNoText, kEnd);
    return true;
  }
  if (!known || rest.empty()) return false;
  const auto process = static_cast<uint64_t>(pid);
  // Spans that need not nest: those of a name, or track, and cookie go together.
  const auto beside = [&](std::string_view name, int64_t cookie) {
    return track(kAsync, process, static_cast<uint64_t>(cookie), std::hash<std::string_view>{}(name),
                 texts.number(name));
  };
  int64_t value = 0;
  switch (phase) {
    case 'B':
    case 'I':
      add(time, clock, track(kThread, process, tid), texts.number(rest), kNoText,
          phase == 'B' ? kBegin : kInstant);
      return true;
    case 'C': {
      if (!whole(cut_last(rest), value)) return false;
      const int32_t name = texts.number(rest);
      sample(time, clock, track(kNamed, process, static_cast<uint64_t>(name), 0, name), value, 0, false);
      return true;
    }
    case 'S':
    case 'F':
      if (!whole(cut_last(rest), value)) return false;
      add(time, clock, beside(rest, value), texts.number(rest), kNoText, phase == 'S' ? kBegin : kEnd);
      return true;
    case 'G': {
      if (!whole(cut_last(rest), value)) return false;
      const std::string_view on = cut(rest);
      add(time, clock, beside(on, value), texts.number(rest), kNoText, kBegin);
      return true;
    }
    case 'H': {  // with or without the name
      if (!whole(cut_last(rest), value)) return false;
      add(time, clock, beside(cut(rest), value), kNoText, kNoText, kEnd);
      return true;
    }
    case 'N': {
      const std::string_view on = cut(rest);
      add(time, clock, beside(on, 0), texts.number(rest), kNoText, kInstant);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace warplens::perfetto
