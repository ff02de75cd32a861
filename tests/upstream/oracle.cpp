// An NVTX tool for tests: keeps each call as a line of JSON until read_event() takes it. Texts and bytes are hexadecimal.
//
// With ORACLE_NEXT=<library> it lets that tool in first, and passes every call on to it: what a test expects is then
// checked call by call here, while the other tool records the same program. It knows nothing of the project's own code.
#define NVTX_NO_IMPL
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCounters.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <nvtx3/nvToolsExtSemanticsCounters.h>
#include <nvtx3/nvToolsExtSemanticsTime.h>
#include <time.h>

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>

namespace {

std::mutex g_lock;
std::deque<std::string> *g_events =
    new std::deque<std::string>;  // never destroyed: calls come until the very end
std::map<const void *, std::string> &g_domains = *new std::map<const void *, std::string>;
std::map<const void *, std::string> &g_strings = *new std::map<const void *, std::string>;
std::map<std::string, uintptr_t> &g_names = *new std::map<std::string, uintptr_t>;
std::map<std::string, unsigned long> &g_counts = *new std::map<std::string, unsigned long>;
uint64_t g_id = 1 << 24;
thread_local std::map<const void *, int> t_depth;

std::string hex(const void *data, size_t size) {
  static const char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (size_t i = 0; i < size; ++i) {
    const auto byte = static_cast<const unsigned char *>(data)[i];
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out + '"';
}
std::string text(const char *s) {
  return s == nullptr ? "null" : hex(s, strlen(s));
}

__attribute__((format(printf, 1, 2))) std::string format(const char *pattern, ...) {
  char buffer[512];
  va_list arguments;
  va_start(arguments, pattern);
  vsnprintf(buffer, sizeof buffer, pattern, arguments);
  va_end(arguments);
  return buffer;
}

// All of these are called with the lock held.
std::string domain_of(const void *domain) {
  if (domain == nullptr) return "null";
  const auto found = g_domains.find(domain);
  return found == g_domains.end() ? "\"unknown\"" : hex(found->second.data(), found->second.size());
}
void keep(const char *event, const void *domain, const std::string &more) {
  ++g_counts[event];
  g_events->push_back(format("{\"event\": \"%s\", \"domain\": ", event) + domain_of(domain) + more + "}");
}

std::string payloads_of(const nvtxPayloadData_t *data, size_t count) {
  std::string out = "[";
  for (size_t i = 0; i < count; ++i) {
    const size_t size = data[i].size == SIZE_MAX ? 0 : data[i].size;
    out += format("%s{\"schema\": %" PRIu64 ", \"size\": %zu, \"data\": ", i ? ", " : "", data[i].schemaId,
                  data[i].size);
    out += hex(data[i].payload, size) + "}";
  }
  return out + "]";
}

std::string attributes_of(const nvtxEventAttributes_t *a) {
  if (a == nullptr) return ", \"message\": null";
  std::string out = format(
      ", \"version\": %u, \"size\": %u, \"category\": %u, \"color_type\": %d, \"color\": %u, "
      "\"payload_type\": %d",
      a->version, a->size, a->category, a->colorType, a->color, a->payloadType);
  switch (a->payloadType) {
    case NVTX_PAYLOAD_UNKNOWN:
      break;
    case NVTX_PAYLOAD_TYPE_INT64:
      out += format(", \"payload\": %" PRId64, a->payload.llValue);
      break;
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64:
      out += format(", \"payload\": %" PRIu64, a->payload.ullValue);
      break;
    case NVTX_PAYLOAD_TYPE_DOUBLE:
      out += format(", \"payload\": %.17g", a->payload.dValue);
      break;
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT32:
      out += format(", \"payload\": %u", a->payload.uiValue);
      break;
    case NVTX_PAYLOAD_TYPE_INT32:
      out += format(", \"payload\": %d", a->payload.iValue);
      break;
    case NVTX_PAYLOAD_TYPE_FLOAT:
      out += format(", \"payload\": %.9g", static_cast<double>(a->payload.fValue));
      break;
    case NVTX_PAYLOAD_TYPE_EXT:
      out +=
          ", \"payloads\": " + payloads_of(reinterpret_cast<const nvtxPayloadData_t *>(a->payload.ullValue),
                                           static_cast<size_t>(a->reserved0));
      break;
    default:
      out += ", \"payload\": \"unknown type\"";
  }
  out += format(", \"message_type\": %d, \"message\": ", a->messageType);
  if (a->messageType == NVTX_MESSAGE_TYPE_ASCII) return out + text(a->message.ascii);
  if (a->messageType == NVTX_MESSAGE_TYPE_REGISTERED) {
    const auto found = g_strings.find(a->message.registered);
    return out + (found == g_strings.end() ? "\"unknown\"" : hex(found->second.data(), found->second.size()));
  }
  return out + "null";
}

std::string semantics_of(const nvtxSemanticsHeader_t *header) {
  std::string out = "[";
  for (const char *between = ""; header != nullptr; header = header->next, between = ", ") {
    out += between;
    if (header->semanticId == NVTX_SEMANTIC_ID_COUNTERS_V1) {
      const auto *s = reinterpret_cast<const nvtxSemanticsCounter_t *>(header);
      out += format("{\"flags\": %" PRIu64 ", \"unit\": ", s->flags) + text(s->unit);
      out += format(", \"numerator\": %" PRIu64 ", \"denominator\": %" PRIu64 ", \"limit_type\": %" PRId64,
                    s->unitScaleNumerator, s->unitScaleDenominator, s->limitType);
      // a limit that the flags do not name may hold anything
      const bool limits[] = {(s->flags & NVTX_COUNTER_FLAG_LIMIT_MIN) != 0,
                             (s->flags & NVTX_COUNTER_FLAG_LIMIT_MAX) != 0};
      const nvtxCounterLimit_t *values[] = {&s->min, &s->max};
      for (int i = 0; i < 2; ++i) {
        out += i == 0 ? ", \"min\": " : ", \"max\": ";
        if (!limits[i])
          out += "null";
        else if (s->limitType == NVTX_COUNTER_LIMIT_F64)
          out += format("%.17g", values[i]->f64);
        else if (s->limitType == NVTX_COUNTER_LIMIT_U64)
          out += format("%" PRIu64, values[i]->u64);
        else
          out += format("%" PRId64, values[i]->i64);
      }
      out += "}";
    } else if (header->semanticId == NVTX_SEMANTIC_ID_TIME_V1) {
      out += format("{\"time_domain\": %" PRIu64 "}",
                    reinterpret_cast<const nvtxSemanticsTime_t *>(header)->timeDomainId);
    } else {
      out += format("{\"semantic\": %u}", header->semanticId);
    }
  }
  return out + "]";
}

// What the next tool had put there, null where it had nothing.
NvtxFunctionPointer g_next[16];
intptr_t g_next_ext[5][64];

template <typename R, typename... A>
R pass(NvtxFunctionPointer next, R otherwise, A... arguments) {
  return next == nullptr ? otherwise : reinterpret_cast<R (*)(A...)>(next)(arguments...);
}
template <typename... A>
void tell(NvtxFunctionPointer next, A... arguments) {
  if (next != nullptr) reinterpret_cast<void (*)(A...)>(next)(arguments...);
}
NvtxFunctionPointer extension(int module, int slot) {
  return reinterpret_cast<NvtxFunctionPointer>(g_next_ext[module][slot]);
}

using Guard = std::lock_guard<std::mutex>;
using Domain = nvtxDomainHandle_t;
constexpr int kPayload = NVTX_EXT_PAYLOAD_MODULEID, kCounters = NVTX_EXT_COUNTERS_MODULEID;

void mark(Domain d, const nvtxEventAttributes_t *a) {
  tell(g_next[NVTX_CBID_CORE2_DomainMarkEx], d, a);
  Guard guard(g_lock);
  keep("mark", d, attributes_of(a));
}
nvtxRangeId_t start(Domain d, const nvtxEventAttributes_t *a) {
  nvtxRangeId_t id = pass<nvtxRangeId_t>(g_next[NVTX_CBID_CORE2_DomainRangeStartEx], 0, d, a);
  Guard guard(g_lock);
  if (id == 0) id = ++g_id;
  keep("start", d, attributes_of(a) + format(", \"id\": %" PRIu64, id));
  return id;
}
void finish(Domain d, nvtxRangeId_t id) {
  tell(g_next[NVTX_CBID_CORE2_DomainRangeEnd], d, id);
  Guard guard(g_lock);
  keep("end", d, format(", \"id\": %" PRIu64, id));
}
int push(Domain d, const nvtxEventAttributes_t *a) {
  const int depth = pass<int>(g_next[NVTX_CBID_CORE2_DomainRangePushEx], t_depth[d]++, d, a);
  Guard guard(g_lock);
  keep("push", d, attributes_of(a));
  return depth;
}
int pop(Domain d) {
  const int depth = pass<int>(g_next[NVTX_CBID_CORE2_DomainRangePop], t_depth[d] > 0 ? --t_depth[d] : -1, d);
  Guard guard(g_lock);
  keep("pop", d, "");
  return depth;
}
void name_category(Domain d, uint32_t id, const char *name) {
  tell(g_next[NVTX_CBID_CORE2_DomainNameCategoryA], d, id, name);
  Guard guard(g_lock);
  keep("category", d, format(", \"id\": %u, \"name\": ", id) + text(name));
}
nvtxStringHandle_t make_string(Domain d, const char *string) {
  auto handle = pass<nvtxStringHandle_t>(g_next[NVTX_CBID_CORE2_DomainRegisterStringA], nullptr, d, string);
  Guard guard(g_lock);
  if (handle == nullptr) handle = reinterpret_cast<nvtxStringHandle_t>(static_cast<uintptr_t>(++g_id));
  g_strings[handle] = string;
  keep("string", d, ", \"message\": " + text(string));
  return handle;
}
Domain make_domain(const char *name) {
  auto handle = pass<Domain>(g_next[NVTX_CBID_CORE2_DomainCreateA], nullptr, name);
  Guard guard(g_lock);
  if (handle == nullptr) {
    uintptr_t &known = g_names[name];
    if (known == 0) known = g_names.size();
    handle = reinterpret_cast<Domain>(known);
  }
  g_domains[handle] = name;
  keep("domain", handle, "");
  return handle;
}
void free_domain(Domain d) {
  tell(g_next[NVTX_CBID_CORE2_DomainDestroy], d);
}

uint64_t make_schema(Domain d, const nvtxPayloadSchemaAttr_t *a) {
  uint64_t id = pass<uint64_t>(extension(kPayload, NVTX3EXT_CBID_nvtxPayloadSchemaRegister), 0, d, a);
  Guard guard(g_lock);
  const auto has = [a](uint64_t bit) { return (a->fieldMask & bit) != 0; };
  if (id == 0) id = has(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID) && a->schemaId != 0 ? a->schemaId : ++g_id;
  std::string out = format(", \"id\": %" PRIu64 ", \"mask\": %" PRIu64 ", \"type\": %" PRIu64, id,
                           a->fieldMask, has(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE) ? a->type : 0);
  out += format(", \"flags\": %" PRIu64, has(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_FLAGS) ? a->flags : 0);
  out +=
      format(", \"size\": %zu", has(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE) ? a->payloadStaticSize : 0);
  out += ", \"name\": " + text(has(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME) ? a->name : nullptr) +
         ", \"entries\": [";
  const bool entries =
      has(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES) && has(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES);
  for (size_t i = 0; entries && i < a->numEntries; ++i) {
    const nvtxPayloadSchemaEntry_t &e = a->entries[i];
    out += format("%s{\"flags\": %" PRIu64 ", \"type\": %" PRIu64 ", \"detail\": %" PRIu64
                  ", \"offset\": %" PRIu64 ", \"name\": ",
                  i ? ", " : "", e.flags, e.type, e.arrayOrUnionDetail, e.offset);
    out += text(e.name) + ", \"semantics\": " + semantics_of(e.semantics) + "}";
  }
  keep("schema", d, out + "]");
  return id;
}
uint64_t make_enum(Domain d, const nvtxPayloadEnumAttr_t *a) {
  uint64_t id = pass<uint64_t>(extension(kPayload, NVTX3EXT_CBID_nvtxPayloadEnumRegister), 0, d, a);
  Guard guard(g_lock);
  if (id == 0) id = ++g_id;
  keep("enum", d, format(", \"id\": %" PRIu64 ", \"name\": ", id) + text(a->name));
  return id;
}
uint64_t make_scope(Domain d, const nvtxScopeAttr_t *a) {
  uint64_t id = pass<uint64_t>(extension(kPayload, NVTX3EXT_CBID_nvtxScopeRegister), 0, d, a);
  Guard guard(g_lock);
  if (id == 0) id = ++g_id;
  keep("scope", d,
       format(", \"id\": %" PRIu64 ", \"parent\": %" PRIu64 ", \"path\": ", id, a->parentScope) +
           text(a->path));
  return id;
}
uint8_t is_enabled(Domain d) {
  return pass<uint8_t>(extension(kPayload, NVTX3EXT_CBID_nvtxDomainIsEnabled), 1, d);
}
int64_t timestamp() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t own = static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
  const auto next = extension(kPayload, NVTX3EXT_CBID_nvtxTimestampGet);
  const int64_t value = next == nullptr ? own : reinterpret_cast<int64_t (*)()>(next)();
  Guard guard(g_lock);
  keep("timestamp", nullptr, format(", \"value\": %" PRId64, value));
  return value;
}

uint64_t make_counter(Domain d, const nvtxCounterAttr_t *a) {
  uint64_t id = pass<uint64_t>(extension(kCounters, NVTX3EXT_CBID_nvtxCounterRegister), 0, d, a);
  Guard guard(g_lock);
  if (id == 0) id = a->counterId != 0 ? a->counterId : ++g_id;
  keep("counter", d,
       format(", \"id\": %" PRIu64 ", \"schema\": %" PRIu64 ", \"scope\": %" PRIu64 ", \"name\": ", id,
              a->schemaId, a->scopeId) +
           text(a->name) + ", \"description\": " + text(a->description) +
           ", \"semantics\": " + semantics_of(a->semantics));
  return id;
}
void sample_int64(Domain d, uint64_t id, int64_t value) {
  tell(extension(kCounters, NVTX3EXT_CBID_nvtxCounterSampleInt64), d, id, value);
  Guard guard(g_lock);
  keep("sample_int64", d, format(", \"counter\": %" PRIu64 ", \"value\": %" PRId64, id, value));
}
void sample_float64(Domain d, uint64_t id, double value) {
  tell(extension(kCounters, NVTX3EXT_CBID_nvtxCounterSampleFloat64), d, id, value);
  Guard guard(g_lock);
  keep("sample_float64", d, format(", \"counter\": %" PRIu64 ", \"value\": %.17g", id, value));
}
void sample(Domain d, uint64_t id, const void *value, size_t size) {
  tell(extension(kCounters, NVTX3EXT_CBID_nvtxCounterSample), d, id, value, size);
  Guard guard(g_lock);
  keep("sample", d, format(", \"counter\": %" PRIu64 ", \"data\": ", id) + hex(value, size));
}
void sample_no_value(Domain d, uint64_t id, uint8_t reason) {
  tell(extension(kCounters, NVTX3EXT_CBID_nvtxCounterSampleNoValue), d, id, reason);
  Guard guard(g_lock);
  keep("no_value", d, format(", \"counter\": %" PRIu64 ", \"reason\": %u", id, reason));
}
void batch(Domain d, const nvtxCounterBatch_t *b) {
  tell(extension(kCounters, NVTX3EXT_CBID_nvtxCounterBatchSubmit), d, b);
  Guard guard(g_lock);
  std::string out =
      format(", \"counter\": %" PRIu64 ", \"flags\": %" PRIu64 ", \"data\": ", b->counterId, b->flags);
  out += hex(b->counters, b->countersSize) + ", \"timestamps\": [";
  for (size_t i = 0; i < b->timestampsSize / sizeof(int64_t); ++i)
    out += format("%s%" PRId64, i ? ", " : "", b->timestamps[i]);
  keep("batch", d, out + "]");
}

void *next_symbol(const char *name) {
  const char *path = getenv("ORACLE_NEXT");
  if (path == nullptr) return nullptr;
  void *library = dlopen(path, RTLD_LAZY);
  void *symbol = library == nullptr ? nullptr : dlsym(library, name);
  if (symbol == nullptr) fprintf(stderr, "oracle: %s of ORACLE_NEXT cannot be used: %s\n", name, dlerror());
  return symbol;
}

template <typename F>
void take(NvtxFunctionTable table, int id, F function) {
  g_next[id] = *table[id];
  *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
}
template <typename F>
void take_slot(intptr_t *slots, int module, int id, F function) {
  g_next_ext[module][id] = slots[id] > 1 ? slots[id] : 0;  // 0 and 1 are states of an empty slot
  slots[id] = reinterpret_cast<intptr_t>(function);
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const auto *callbacks = static_cast<const NvtxExportTableCallbacks *>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) ||
      size < 15)
    return 0;
  // Without a next tool the pointers are the loader's own, which must not be called from in here.
  for (unsigned id = 1; id < size; ++id) *table[id] = nullptr;
  const auto next =
      reinterpret_cast<NvtxInitializeInjectionNvtxFunc_t>(next_symbol("InitializeInjectionNvtx2"));
  if (next != nullptr && !next(get_table)) fprintf(stderr, "oracle: the tool of ORACLE_NEXT refused\n");
  take(table, NVTX_CBID_CORE2_DomainMarkEx, mark);
  take(table, NVTX_CBID_CORE2_DomainRangeStartEx, start);
  take(table, NVTX_CBID_CORE2_DomainRangeEnd, finish);
  take(table, NVTX_CBID_CORE2_DomainRangePushEx, push);
  take(table, NVTX_CBID_CORE2_DomainRangePop, pop);
  take(table, NVTX_CBID_CORE2_DomainNameCategoryA, name_category);
  take(table, NVTX_CBID_CORE2_DomainRegisterStringA, make_string);
  take(table, NVTX_CBID_CORE2_DomainCreateA, make_domain);
  take(table, NVTX_CBID_CORE2_DomainDestroy, free_domain);
  return 1;
}

EXPORT int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *info) {
  const auto next =
      reinterpret_cast<NvtxExtInitializeInjectionFunc_t>(next_symbol("InitializeInjectionNvtxExtension"));
  if (next != nullptr) next(info);
  if (info->segmentsCount == 0 || info->segments[0].slotCount < 18) return 0;
  intptr_t *slots = info->segments[0].functionSlots;
  if (info->moduleId == kPayload) {
    take_slot(slots, kPayload, NVTX3EXT_CBID_nvtxPayloadSchemaRegister, make_schema);
    take_slot(slots, kPayload, NVTX3EXT_CBID_nvtxPayloadEnumRegister, make_enum);
    take_slot(slots, kPayload, NVTX3EXT_CBID_nvtxDomainIsEnabled, is_enabled);
    take_slot(slots, kPayload, NVTX3EXT_CBID_nvtxTimestampGet, timestamp);
    take_slot(slots, kPayload, NVTX3EXT_CBID_nvtxScopeRegister, make_scope);
  } else if (info->moduleId == kCounters) {
    take_slot(slots, kCounters, NVTX3EXT_CBID_nvtxCounterRegister, make_counter);
    take_slot(slots, kCounters, NVTX3EXT_CBID_nvtxCounterSampleInt64, sample_int64);
    take_slot(slots, kCounters, NVTX3EXT_CBID_nvtxCounterSampleFloat64, sample_float64);
    take_slot(slots, kCounters, NVTX3EXT_CBID_nvtxCounterSample, sample);
    take_slot(slots, kCounters, NVTX3EXT_CBID_nvtxCounterSampleNoValue, sample_no_value);
    take_slot(slots, kCounters, NVTX3EXT_CBID_nvtxCounterBatchSubmit, batch);
  }
  return 1;
}

// Copies the oldest event, with a final NUL, and forgets it. Returns its length, 0 if there is none; where `size` is too
// small, returns the length and keeps the event.
EXPORT size_t read_event(char *out, size_t size) {
  Guard guard(g_lock);
  if (g_events->empty()) return 0;
  const std::string &event = g_events->front();
  const size_t length = event.size();
  if (length < size) {
    memcpy(out, event.c_str(), length + 1);
    g_events->pop_front();
  }
  return length;
}

// How many events of a kind there have been in this process.
EXPORT unsigned long count_events(const char *event) {
  Guard guard(g_lock);
  const auto found = g_counts.find(event);
  return found == g_counts.end() ? 0 : found->second;
}
