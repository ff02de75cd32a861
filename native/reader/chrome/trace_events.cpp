// Converts the events of a Chrome trace to columns.
#include "trace_events.h"

#include <algorithm>
#include <bit>

#include "json_text.h"

namespace warplens::reader {
namespace {

constexpr int64_t kLatest = int64_t{1} << 61;
constexpr int kMicroseconds = 3;  // decimal digits between them and ns
constexpr size_t kLongestPayload = 4096;
constexpr uint64_t kMostPayloads = uint64_t{128} << 20;
constexpr uint8_t kUnknownKind = 255;

// Flows whose ends the correlation joins already, and those that only lead from calls to the ops around them.
bool is_known_flow(std::string_view category) {
  return category == "ac2g" || category == "async_cpu_to_gpu" || category == "async_gpu";
}

}  // namespace

TraceEvents::TraceEvents() {
  for (uint8_t kind = 0; kind < kKinds; ++kind) {
    rows_.emplace_back(static_cast<Kind>(kind));
  }
  unnamed_ = texts_.code("");
  memory_name_ = texts_.code("[memory]");
  forward_backward_ = texts_.code("fwdbwd");
}

const char *TraceEvents::read(const char *at, const char *end, const char *&bad) {
  values_.fill(kNull);
  key_ = {};
  phase_ = 0;
  context_ = 0;
  arguments_ = scope_ = {};
  duration_ = kNull;
  id_is_text_ = false;
  bad = nullptr;
  const char *const behind =
      object(at, end, bad, member_keys_, find_member,
             [&](Member known, const char *value) { return member(known, value, end, bad); });
  if (behind != nullptr) {
    take();
  }
  return behind;
}

// Goes over the members of the object at `at`; `take` reads the value of each and returns where it ends.
template <typename Keys, typename Find, typename Take>
const char *TraceEvents::object(const char *at, const char *end, const char *&bad, Keys &keys,
                                const Find &find, const Take &take) {
  ++at;
  uint8_t before = Keys::kFirst;
  bool first = true;
  for (;; first = false) {
    size_t size = 0;
    if (const auto *const known = keys.guessed(at, context_, before, size)) {
      at = take(*known, json::space(at + size));
      if (at == nullptr) {
        return nullptr;
      }
      continue;
    }
    const char *const begin = at;
    at = json::space(at);
    if (*at == '}') {
      return at >= end ? nullptr : at + 1;
    }
    if (!first && *at == ',') {
      at = json::space(at + 1);
    } else if (!first) {
      bad = at < end ? at : nullptr;
      return nullptr;
    }
    if (*at != '"') {
      bad = at < end ? at : nullptr;
      return nullptr;
    }
    const char *const key = at + 1;
    const char *const closing = json::string_end(key, end);
    if (closing == nullptr) {
      return nullptr;
    }
    at = json::space(closing + 1);
    if (*at != ':') {
      bad = at < end ? at : nullptr;
      return nullptr;
    }
    at = json::space(at + 1);
    if (at >= end) {
      return nullptr;
    }
    const auto known = find({key, static_cast<size_t>(closing - key)});
    keys.learn(begin, static_cast<size_t>(at - begin), known, context_, before);
    at = take(known, at);
    if (at == nullptr) {
      return nullptr;
    }
  }
}

const char *TraceEvents::member(Member known, const char *at, const char *end, const char *&bad) {
  const char *behind = nullptr;
  if (known == Member::arguments && *at == '{') {
    behind = arguments(at, end, bad);
    arguments_ = {at, behind};
    return behind;
  }
  // Nearly all numbers are plain: those are read while their end is looked for.
  switch (known) {
    case Member::start:
      behind = json::plain_decimal(at, kMicroseconds, values_[kStart]);
      break;
    case Member::duration:
      behind = json::plain_decimal(at, kMicroseconds, duration_);
      break;
    case Member::process:
      behind = json::plain_decimal(at, 0, key_.pid);
      break;
    case Member::thread:
      behind = json::plain_decimal(at, 0, key_.tid);
      break;
    case Member::id:
      behind = json::plain_decimal(at, 0, values_[kId]);
      break;
    default:
      break;
  }
  if (behind != nullptr) {
    // A key that stands there twice: the last counts.
    key_.texts &= known == Member::process ? ~1 : known == Member::thread ? ~2 : ~0;
    id_is_text_ = id_is_text_ && known != Member::id;
    return behind;
  }
  behind = json::scalar_end(at, end, bad);
  if (behind == nullptr) {
    return nullptr;
  }
  const Span value{at, behind};
  switch (known) {
    case Member::phase: {
      const std::string_view text = inner(value);
      phase_ = text.empty() ? '\0' : text[0];
      context_ += static_cast<uint32_t>(phase_) * 5;
      break;
    }
    case Member::name:
      values_[kName] = text_code(value);
      break;
    case Member::category:
      values_[kCategory] = text_code(value);
      context_ += static_cast<uint32_t>(values_[kCategory]);
      break;
    case Member::start:
      if (!json::decimal(inner(value), kMicroseconds, values_[kStart])) {
        values_[kStart] = kNull;
      }
      break;
    case Member::duration:
      if (!json::decimal(inner(value), kMicroseconds, duration_)) {
        duration_ = kNull;
      }
      break;
    case Member::process:
    case Member::thread: {
      const bool thread = known == Member::thread;
      bool is_text = false;
      identify(value, thread ? key_.tid : key_.pid, is_text);
      const int64_t bit = thread ? 2 : 1;
      key_.texts = is_text ? key_.texts | bit : key_.texts & ~bit;
      break;
    }
    case Member::id:
      identify(value, values_[kId], id_is_text_);
      break;
    case Member::scope:
      scope_ = value;
      break;
    default:
      break;
  }
  return behind;
}

const char *TraceEvents::arguments(const char *at, const char *end, const char *&bad) {
  return object(at, end, bad, argument_keys_, find_argument,
                [&](const Argument *known, const char *value) { return argument(known, value, end, bad); });
}

const char *TraceEvents::argument(const Argument *known, const char *at, const char *end, const char *&bad) {
  if (known == nullptr) {
    return json::scalar_end(at, end, bad);
  }
  if (known->reading == Reading::number) {
    if (const char *const behind = json::plain_decimal(at, 0, values_[known->field])) {
      return behind;
    }
  } else if (known->reading == Reading::json) {
    return compact(at, end, known->field, bad);
  }
  const char *const behind = json::scalar_end(at, end, bad);
  if (behind == nullptr) {
    return nullptr;
  }
  const Span value{at, behind};
  if (known->reading == Reading::number) {
    number(value, known->field);
  } else if (known->reading == Reading::text) {
    if (*at != '"' || at[1] != '"') {  // an empty text says nothing
      values_[known->field] = text_code(value);
    }
  } else if (*at == '[') {
    const char *item = at + 1;
    for (int axis = 0; axis < 3; ++axis) {
      item = json::space(item);
      const char *const over = json::bare_end(item);
      number({item, over}, static_cast<Field>(known->field + axis));
      item = json::space(over);
      if (*item != ',') {
        break;
      }
      ++item;
    }
  }
  return behind;
}

// Keeps a JSON value as text, without the spaces in it.
const char *TraceEvents::compact(const char *at, const char *end, Field field, const char *&bad) {
  const char *const behind = json::scalar_end(at, end, bad);
  if (behind == nullptr) {
    return nullptr;
  }
  scratch_.clear();
  while (at < behind) {
    if (*at == '"') {
      const char *const closing = json::string_end(at + 1, end);
      scratch_.append(at, closing + 1);
      at = closing + 1;
    } else {
      if (!json::is_space(*at)) {
        scratch_.push_back(*at);
      }
      ++at;
    }
  }
  values_[field] = raws_.code(scratch_);
  return behind;
}

std::string_view TraceEvents::inner(Span value) {
  const bool quoted = *value.begin == '"';
  return {value.begin + quoted, static_cast<size_t>(value.end - value.begin) - (quoted ? 2 : 0)};
}

int64_t TraceEvents::text_code(Span value) {
  const std::string_view text = inner(value);
  return text == "null" && *value.begin == 'n' ? kNull : int64_t{texts_.code(text)};
}

void TraceEvents::number(Span value, Field field) {
  if (!json::decimal(inner(value), 0, values_[field])) {
    values_[field] = kNull;
  }
}

void TraceEvents::identify(Span value, int64_t &out, bool &is_text) {
  is_text = false;
  if (*value.begin != '"' && json::decimal(inner(value), 0, out)) {
    return;
  }
  is_text = true;
  out = text_code(value);
}

template <typename Each>
void TraceEvents::each_argument(const Each &each) const {
  if (arguments_.begin == nullptr) {
    return;
  }
  const char *bad = nullptr;
  const char *at = json::space(arguments_.begin + 1);
  while (*at == '"' || *at == ',') {  // it was read before: it is whole
    at = *at == ',' ? json::space(at + 1) : at;
    const char *const closing = json::string_end(at + 1, arguments_.end);
    const std::string_view key(at + 1, static_cast<size_t>(closing - at - 1));
    at = json::space(json::space(closing + 1) + 1);
    const char *const behind = json::scalar_end(at, arguments_.end, bad);
    each(key, Span{at, behind});
    at = json::space(behind);
  }
}

bool TraceEvents::timed() {
  if (values_[kStart] >= -kLatest && values_[kStart] <= kLatest) {
    last_ = std::max(last_, values_[kStart]);
    return true;
  }
  ++counts_[kNoTime];
  return false;
}

int64_t TraceEvents::lane() {
  if (last_lane_ != UINT32_MAX && key_ == last_key_) {
    return last_lane_;
  }
  const auto [found, made] = lane_codes_.try_emplace(key_, static_cast<uint32_t>(lanes_.size()));
  if (made) {
    lanes_.push_back(key_);
  }
  last_key_ = key_;
  return last_lane_ = found->second;
}

int64_t TraceEvents::payload() {
  if (arguments_.begin == nullptr) {
    return kNull;
  }
  const std::string_view text(arguments_.begin, static_cast<size_t>(arguments_.end - arguments_.begin));
  if (text.size() <= 2) {
    return kNull;
  }
  if (text.size() > kLongestPayload || payload_bytes_ + text.size() > kMostPayloads) {
    ++counts_[kPayloadsLost];
    return kNull;
  }
  const size_t before = raws_.size();
  const int64_t code = raws_.code(text);
  payload_bytes_ += raws_.size() > before ? text.size() : 0;
  return code;
}

void TraceEvents::take() {
  ++counts_[kEvents];
  switch (phase_) {
    case 'X':
      return complete();
    case 'i':
    case 'I':
    case 'R':
    case 'n':
      return instant();
    case 'C':
      return counter();
    case 'M':
      return metadata();
    case 's':
    case 't':
    case 'f':
      return flow();
    case 'B':
      if (timed()) {
        const Begun made = begun();
        threads_.begin({made.lane, 0}, made);
      }
      return;
    case 'E':
      if (timed()) {
        Begun found{};
        if (threads_.end({lane(), 0}, kNull, kNull, found)) {
          put_range(kRange, found, values_[kStart], false);
        } else {
          ++counts_[kNoBegin];
        }
      }
      return;
    case 'b':
    case 'S':
      if (timed()) {
        ids_.begin(async_key(), begun());
      }
      return;
    case 'e':
    case 'F':
      if (timed()) {
        Begun found{};
        if (ids_.end(async_key(), values_[kName], kNull, found)) {
          put_range(kAsync, found, values_[kStart], false);
        } else {
          ++counts_[kNoBegin];
        }
      }
      return;
    default:
      leave();
  }
}

void TraceEvents::complete() {
  const int64_t category = values_[kCategory];
  Kind kind = kRange;
  if (category != kNull) {
    const auto code = static_cast<size_t>(category);
    if (code >= kinds_.size()) {
      kinds_.resize(std::max(code + 1, texts_.size()), kUnknownKind);
    }
    if (kinds_[code] == kUnknownKind) {
      kinds_[code] = kind_of_category(texts_[static_cast<uint32_t>(category)]);
    }
    kind = static_cast<Kind>(kinds_[code]);
  }
  if (kind == kGpuAnnotation || kind == kSpan) {
    ++counts_[kind == kSpan ? kSpans : kGpuAnnotations];
    return;
  }
  if (!timed()) {
    return;
  }
  if (duration_ == kNull || duration_ < 0 || duration_ > kLatest) {
    ++counts_[duration_ == kNull ? kNoEnd : kNegative];
    duration_ = 0;
  }
  values_[kEnd] = values_[kStart] + duration_;
  last_ = std::max(last_, values_[kEnd]);
  values_[kLane] = lane();
  if (kind != kRange && values_[kName] == kNull) {
    values_[kName] = unnamed_;
  }
  if (kind == kRange) {
    values_[kPayload] = payload();
    values_[kFlags] = 0;
  } else if (kind == kOp && values_[kName] != kNull &&
             texts_[static_cast<uint32_t>(values_[kName])].starts_with("ProfilerStep#")) {
    kind = kAnnotation;  // older versions call it an operator
  }
  if (values_[kCollective] != kNull && (kind == kOp || kind == kKernel)) {
    values_[kOwner] = kind;
    values_[kRow] = static_cast<int64_t>(rows_[kind].size());
    put(kCollectiveCall);
  }
  put(kind);
}

void TraceEvents::instant() {
  if (key_.texts != 0 && arguments_.begin == nullptr && values_[kCategory] == kNull) {
    const auto process = key_.texts & 1 ? texts_[static_cast<uint32_t>(key_.pid)] : std::string_view{};
    // Where the profiler itself began and ended.
    if ((key_.texts & 1) != 0 && (process == "Traces" || process == "Spans" || process.empty())) {
      ++counts_[kSpans];
      return;
    }
  }
  if (!timed()) {
    return;
  }
  values_[kLane] = lane();
  if (values_[kName] == memory_name_ && values_[kBytes] != kNull && values_[kAddress] != kNull) {
    put(kMemory);
    return;
  }
  values_[kPayload] = payload();
  put(kMark);
}

void TraceEvents::counter() {
  if (!timed()) {
    return;
  }
  values_[kLane] = lane();
  each_argument([this](std::string_view key, Span value) {
    int64_t whole = 0;
    double real = 0;
    const std::string_view text = inner(value);
    if (text.find_first_of(".eE") == std::string_view::npos && json::decimal(text, 0, whole)) {
      values_[kValue] = whole;
      values_[kIsReal] = 0;
    } else if (json::real(text, real)) {
      values_[kValue] = std::bit_cast<int64_t>(real);
      values_[kIsReal] = 1;
    } else {
      values_[kValue] = kNull;
      values_[kIsReal] = 2;
    }
    values_[kArgument] = texts_.code(key);
    if (id_is_text_ && values_[kId] != kNull) {
      values_[kId] = -1 - values_[kId];  // apart from numbers
    }
    id_is_text_ = false;
    put(kCounter);
  });
}

void TraceEvents::metadata() {
  values_[kLane] = lane();
  each_argument([this](std::string_view key, Span value) {
    values_[kArgumentText] = values_[kSortIndex] = kNull;
    if (key == "name" || key == "labels") {
      values_[kArgumentText] = text_code(value);
      put(kMetadata);
    } else if (key == "sort_index") {
      number(value, kSortIndex);
      put(kMetadata);
    }
  });
}

void TraceEvents::flow() {
  if (values_[kCategory] == forward_backward_ || values_[kName] == forward_backward_) {
    if (phase_ != 't' && values_[kId] != kNull && timed()) {
      values_[kLane] = lane();
      values_[kPhase] = phase_;
      put(kFlow);
    }
    return;
  }
  if (values_[kCategory] != kNull && is_known_flow(texts_[static_cast<uint32_t>(values_[kCategory])])) {
    ++counts_[kKnownFlows];
    return;
  }
  leave();
}

Begun TraceEvents::begun() {
  return {values_[kStart], values_[kName], values_[kCategory], payload(), lane()};
}

// Ids are of the whole file, unless `id2` says that they are of the process; each category numbers its own ids.
PairKey TraceEvents::async_key() const {
  auto id = static_cast<uint64_t>(values_[kId]);
  uint64_t more = id_is_text_ ? 1 : 0;
  if (scope_.begin != nullptr) {
    const std::string_view text(scope_.begin, static_cast<size_t>(scope_.end - scope_.begin));
    for (const char letter : text) {
      id = id * 31 + static_cast<unsigned char>(letter);
    }
    more += text.find("\"local\"") == std::string_view::npos ? 2 : 4 + static_cast<uint64_t>(key_.pid) * 8;
  }
  more += static_cast<uint64_t>(values_[kCategory]) * 0x9E3779B97F4A7C15;
  return {static_cast<int64_t>(id), static_cast<int64_t>(more)};
}

void TraceEvents::put_range(Kind kind, const Begun &begun, int64_t end, bool unfinished) {
  const int64_t ended = unfinished ? begun.lane : lane();
  values_.fill(kNull);
  if (end < begun.start) {
    ++counts_[kNegative];
    end = begun.start;
  }
  values_[kStart] = begun.start;
  values_[kEnd] = end;
  values_[kLane] = begun.lane;
  values_[kName] = begun.name;
  values_[kCategory] = begun.category;
  values_[kPayload] = begun.payload;
  values_[kFlags] = unfinished ? 1 : 0;
  values_[kOwner] = ended;
  put(kind);
}

void TraceEvents::finish() {
  threads_.drain(
      [this](const Begun &begun) { put_range(kRange, begun, std::max(last_, begun.start), true); });
  ids_.drain([this](const Begun &begun) { put_range(kAsync, begun, std::max(last_, begun.start), true); });
}

}  // namespace warplens::reader
