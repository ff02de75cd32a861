// Passes NVTX calls on to a second tool.
// That tool gets every call first, as if it were alone. The program holds its handles and numbers,
// and ours where it gives none, so a handle is translated before it reaches the agent. Handles
// inside payloads and inside structures of the memory extension are not translated.
#include "chain.h"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "agent/session.h"
#include "handles.h"
#include "warplens/warplens.h"

namespace warplens::agent {
namespace {

using namespace chained;
using Function = void *;

constexpr unsigned kModules = 16;
constexpr unsigned kSlots = 64;
constexpr unsigned kExtension = 8;  // added to the numbers of the extensions' modules
constexpr unsigned kMemory = kExtension + 1;
constexpr unsigned kPayload = kExtension + 2;
constexpr unsigned kCounters = kExtension + 4;

// The same for every client: a tool has one function for each call.
Function g_theirs[kModules][kSlots];
Function g_ours[kModules][kSlots];

inline uint16_t first_domain() {
  return 0;
}
template <typename First, typename... Rest>
uint16_t first_domain(First first, Rest...) {
  if constexpr (std::is_same_v<First, Domain>) {
    return our_domain(first);
  } else {
    return 0;
  }
}

template <typename Result, typename... Values>
Result call(Function function, Values... values) {
  return reinterpret_cast<Result (*)(Values...)>(function)(values...);
}

// A range of both: what the program gets for it.
uint64_t started(uint64_t theirs, uint64_t ours) {
  uint64_t given = theirs != 0 ? theirs : ours;
  if (ours != 0 && !g_ranges.put(given, ours, theirs != 0)) {
    if (ThreadLog *log = thread_log()) {
      log->process()->file().drop(RecordType::start_end);  // it stays open
    }
  }
  return given;
}

template <unsigned module, unsigned slot, typename Signature>
struct Chained;

template <unsigned module, unsigned slot, typename Result, typename... Values>
struct Chained<module, slot, Result(Values...)> {
  static bool they() { return g_theirs[module][slot] != nullptr; }
  static bool we() { return g_ours[module][slot] != nullptr; }

  // Both, each in its own terms; `done` makes of the two results what the program gets.
  template <typename Done>
  static Result with(const Done &done, Values... values) {
    return apply(done, first_domain(values...), Argument<Values>(values, first_domain(values...))...);
  }

  static Result both(Values... values) {
    if constexpr (std::is_void_v<Result>) {
      return with_void(Argument<Values>(values, first_domain(values...))...);
    } else {
      return with([](Result theirs, Result ours, uint16_t) { return they() ? theirs : ours; }, values...);
    }
  }

  // A range's end is ours first, so that the other tool's work lies outside.
  static Result ours_first(Values... values) {
    return ours_before(Argument<Values>(values, first_domain(values...))...);
  }

  static Result start(Values... values) {
    return with([](Result theirs, Result ours, uint16_t) { return started(theirs, ours); }, values...);
  }

  // With a function of ours in place of the table's.
  template <typename Ours>
  static Result start_as(const Ours &ours_start, Values... values) {
    return start_each(ours_start, Argument<Values>(values, first_domain(values...))...);
  }

  static Result make_domain(Values... values) {
    return with(
        [](Result theirs, Result ours, uint16_t) {
          if (theirs != nullptr) {
            keep(g_domains, 0, number(theirs), number(ours));
          }
          return theirs != nullptr ? theirs : ours;
        },
        values...);
  }

  static Result make_string(Values... values) {
    return with(
        [](Result theirs, Result ours, uint16_t domain) {
          if (theirs != nullptr) {
            keep(g_strings, domain, number(theirs), number(ours));
          }
          return theirs != nullptr ? theirs : ours;
        },
        values...);
  }

  static Result make_object(Values... values) {
    return with(
        [](Result theirs, Result ours, uint16_t) {
          if (theirs != nullptr) {
            keep(g_resources, 0, number(theirs), number(ours));
          }
          return theirs != nullptr ? theirs : ours;
        },
        values...);
  }

 private:
  template <typename Ours, typename... Arguments>
  static Result start_each(const Ours &ours_start, const Arguments &...arguments) {
    Result theirs = they() ? call<Result, Values...>(g_theirs[module][slot], arguments.theirs...) : 0;
    return started(theirs, ours_start(arguments.ours...));
  }

  template <typename Done, typename... Arguments>
  static Result apply(const Done &done, uint16_t domain, const Arguments &...arguments) {
    Result theirs{};
    Result ours{};
    if (they()) {
      theirs = call<Result, Values...>(g_theirs[module][slot], arguments.theirs...);
    }
    if (we()) {
      ours = call<Result, Values...>(g_ours[module][slot], arguments.ours...);
    }
    return done(theirs, ours, domain);
  }

  template <typename... Arguments>
  static void with_void(const Arguments &...arguments) {
    if (they()) {
      call<void, Values...>(g_theirs[module][slot], arguments.theirs...);
    }
    if (we()) {
      call<void, Values...>(g_ours[module][slot], arguments.ours...);
    }
  }

  template <typename... Arguments>
  static Result ours_before(const Arguments &...arguments) {
    Result ours{};
    if (we()) {
      ours = call<Result, Values...>(g_ours[module][slot], arguments.ours...);
    }
    return they() ? call<Result, Values...>(g_theirs[module][slot], arguments.theirs...) : ours;
  }
};

// Ends of start/end ranges: `values` is what follows the id.
template <unsigned module, unsigned slot, typename... Values>
void end_without_domain(nvtxRangeId_t id) {
  bool they_know = true;
  uint64_t ours = g_ranges.take(id, they_know);
  if (ours != 0 && g_ours[module][slot] != nullptr) {
    call<void, nvtxRangeId_t>(g_ours[module][slot], ours);
  }
  if (they_know && g_theirs[module][slot] != nullptr) {
    call<void, nvtxRangeId_t>(g_theirs[module][slot], id);
  }
}

template <unsigned module, unsigned slot, typename... Values>
void end_range(Domain domain, nvtxRangeId_t id, Values... values) {
  Argument<Domain> both(domain, 0);
  bool they_know = true;
  uint64_t ours = g_ranges.take(id, they_know);
  if (ours != 0 && g_ours[module][slot] != nullptr) {
    call<void, Domain, nvtxRangeId_t, Values...>(g_ours[module][slot], both.ours, ours, values...);
  }
  if (they_know && g_theirs[module][slot] != nullptr) {
    call<void, Domain, nvtxRangeId_t, Values...>(g_theirs[module][slot], both.theirs, id, values...);
  }
}

// What has a number that the program may choose: the one that they gave is chosen for us.
uint64_t *chosen_id(nvtxPayloadSchemaAttr_t &attributes) {
  attributes.fieldMask |= NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
  return &attributes.schemaId;
}
uint64_t *chosen_id(nvtxPayloadEnumAttr_t &attributes) {
  attributes.fieldMask |= NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID;
  return &attributes.schemaId;
}
uint64_t *chosen_id(nvtxCounterAttr_t &attributes) {
  return &attributes.counterId;
}
uint64_t *chosen_id(nvtxScopeAttr_t &attributes) {
  return &attributes.scopeId;
}
uint64_t *chosen_id(nvtxTimeDomainAttr_t &attributes) {
  return &attributes.timeDomainId;
}

template <typename Attributes>
void copy_attributes(Attributes &copy, const Attributes &given) {
  if constexpr (requires { given.structSize; }) {
    std::memcpy(static_cast<void *>(&copy), &given, std::min<size_t>(given.structSize, sizeof(copy)));
    copy.structSize = sizeof(copy);
  } else {
    copy = given;
  }
}

template <unsigned module, unsigned slot, typename Attributes>
uint64_t register_numbered(Domain domain, const Attributes *attributes) {
  Argument<Domain> both(domain, 0);
  Function they = g_theirs[module][slot];
  Function we = g_ours[module][slot];
  uint64_t theirs =
      they == nullptr ? 0 : call<uint64_t, Domain, const Attributes *>(they, both.theirs, attributes);
  Attributes copy{};
  if (attributes != nullptr && theirs != 0) {
    copy_attributes(copy, *attributes);
    *chosen_id(copy) = theirs;
    attributes = &copy;
  }
  uint64_t ours = we == nullptr ? 0 : call<uint64_t, Domain, const Attributes *>(we, both.ours, attributes);
  return theirs != 0 ? theirs : ours;
}

uint8_t is_enabled(Domain domain) {
  Argument<Domain> both(domain, 0);
  Function they = g_theirs[kPayload][NVTX3EXT_CBID_nvtxDomainIsEnabled];
  if (they != nullptr) {
    call<uint8_t, Domain>(they, both.theirs);
  }
  return 1;
}

// ---- Installing ----

// Puts a chained function over a client's pointer, where one of us has the call.
class Client {
 public:
  Client(unsigned module, Function *const *slots, unsigned size)
      : module_(module), slots_(slots), size_(size) {}

  void set(unsigned slot, Function chained) const {
    if (slot < size_ && slots_[slot] != nullptr &&
        (g_ours[module_][slot] != nullptr || g_theirs[module_][slot] != nullptr)) {
      *slots_[slot] = chained;
    }
  }

  template <unsigned module, unsigned slot, typename Signature>
  void both() const {
    set(slot, reinterpret_cast<Function>(Chained<module, slot, Signature>::both));
  }

 private:
  unsigned module_;
  Function *const *slots_;
  unsigned size_;
};

template <unsigned module, unsigned slot, typename Signature>
using C = Chained<module, slot, Signature>;

template <typename Pointer>
Function function(Pointer *pointer) {
  return reinterpret_cast<Function>(pointer);
}

void chain_core(const Client &client) {
  constexpr unsigned m = NVTX_CB_MODULE_CORE;
  using Event = const nvtxEventAttributes_t *;
  client.both<m, NVTX_CBID_CORE_MarkEx, void(Event)>();
  client.both<m, NVTX_CBID_CORE_MarkA, void(const char *)>();
  client.both<m, NVTX_CBID_CORE_MarkW, void(const wchar_t *)>();
  client.set(NVTX_CBID_CORE_RangeStartEx,
             function(C<m, NVTX_CBID_CORE_RangeStartEx, nvtxRangeId_t(Event)>::start));
  client.set(NVTX_CBID_CORE_RangeStartA,
             function(C<m, NVTX_CBID_CORE_RangeStartA, nvtxRangeId_t(const char *)>::start));
  client.set(NVTX_CBID_CORE_RangeStartW,
             function(C<m, NVTX_CBID_CORE_RangeStartW, nvtxRangeId_t(const wchar_t *)>::start));
  client.set(NVTX_CBID_CORE_RangeEnd, function(end_without_domain<m, NVTX_CBID_CORE_RangeEnd>));
  client.both<m, NVTX_CBID_CORE_RangePushEx, int(Event)>();
  client.both<m, NVTX_CBID_CORE_RangePushA, int(const char *)>();
  client.both<m, NVTX_CBID_CORE_RangePushW, int(const wchar_t *)>();
  client.set(NVTX_CBID_CORE_RangePop, function(C<m, NVTX_CBID_CORE_RangePop, int()>::ours_first));
  client.both<m, NVTX_CBID_CORE_NameCategoryA, void(uint32_t, const char *)>();
  client.both<m, NVTX_CBID_CORE_NameCategoryW, void(uint32_t, const wchar_t *)>();
  client.both<m, NVTX_CBID_CORE_NameOsThreadA, void(uint32_t, const char *)>();
  client.both<m, NVTX_CBID_CORE_NameOsThreadW, void(uint32_t, const wchar_t *)>();
}

void chain_core2(const Client &client) {
  constexpr unsigned m = NVTX_CB_MODULE_CORE2;
  using Event = const nvtxEventAttributes_t *;
  client.both<m, NVTX_CBID_CORE2_DomainMarkEx, void(Domain, Event)>();
  client.set(NVTX_CBID_CORE2_DomainRangeStartEx,
             function(C<m, NVTX_CBID_CORE2_DomainRangeStartEx, nvtxRangeId_t(Domain, Event)>::start));
  client.set(NVTX_CBID_CORE2_DomainRangeEnd, function(end_range<m, NVTX_CBID_CORE2_DomainRangeEnd>));
  client.both<m, NVTX_CBID_CORE2_DomainRangePushEx, int(Domain, Event)>();
  client.set(NVTX_CBID_CORE2_DomainRangePop,
             function(C<m, NVTX_CBID_CORE2_DomainRangePop, int(Domain)>::ours_first));
  client.set(NVTX_CBID_CORE2_DomainResourceCreate,
             function(C<m, NVTX_CBID_CORE2_DomainResourceCreate,
                        nvtxResourceHandle_t(Domain, nvtxResourceAttributes_t *)>::make_object));
  client.both<m, NVTX_CBID_CORE2_DomainResourceDestroy, void(nvtxResourceHandle_t)>();
  client.both<m, NVTX_CBID_CORE2_DomainNameCategoryA, void(Domain, uint32_t, const char *)>();
  client.both<m, NVTX_CBID_CORE2_DomainNameCategoryW, void(Domain, uint32_t, const wchar_t *)>();
  client.set(NVTX_CBID_CORE2_DomainRegisterStringA,
             function(C<m, NVTX_CBID_CORE2_DomainRegisterStringA,
                        nvtxStringHandle_t(Domain, const char *)>::make_string));
  client.set(NVTX_CBID_CORE2_DomainRegisterStringW,
             function(C<m, NVTX_CBID_CORE2_DomainRegisterStringW,
                        nvtxStringHandle_t(Domain, const wchar_t *)>::make_string));
  client.set(NVTX_CBID_CORE2_DomainCreateA,
             function(C<m, NVTX_CBID_CORE2_DomainCreateA, Domain(const char *)>::make_domain));
  client.set(NVTX_CBID_CORE2_DomainCreateW,
             function(C<m, NVTX_CBID_CORE2_DomainCreateW, Domain(const wchar_t *)>::make_domain));
  client.both<m, NVTX_CBID_CORE2_DomainDestroy, void(Domain)>();
  client.both<m, NVTX_CBID_CORE2_Initialize, void(const void *)>();
}

// Modules that name things by numbers and pointers of other libraries: nothing to translate.
template <unsigned module, unsigned slot>
void chain_names(const Client &client, unsigned count) {
  if constexpr (slot < 15) {
    if (slot <= count) {
      using Thing = const void *;  // a device number travels as well in the same register
      client.both<module, slot, void(Thing, const void *)>();
      chain_names<module, slot + 1>(client, count);
    }
  }
}

void chain_sync(const Client &client) {
  constexpr unsigned m = NVTX_CB_MODULE_SYNC;
  client.set(NVTX_CBID_SYNC_DomainSyncUserCreate,
             function(C<m, NVTX_CBID_SYNC_DomainSyncUserCreate,
                        nvtxSyncUser_t(Domain, const nvtxSyncUserAttributes_t *)>::make_object));
  client.both<m, NVTX_CBID_SYNC_DomainSyncUserDestroy, void(nvtxSyncUser_t)>();
  client.both<m, NVTX_CBID_SYNC_DomainSyncUserAcquireStart, void(nvtxSyncUser_t)>();
  client.both<m, NVTX_CBID_SYNC_DomainSyncUserAcquireFailed, void(nvtxSyncUser_t)>();
  client.both<m, NVTX_CBID_SYNC_DomainSyncUserAcquireSuccess, void(nvtxSyncUser_t)>();
  client.both<m, NVTX_CBID_SYNC_DomainSyncUserReleasing, void(nvtxSyncUser_t)>();
}

void chain_payload(const Client &client) {
  constexpr unsigned m = kPayload;
  using Payloads = const nvtxPayloadData_t *;
  client.set(
      NVTX3EXT_CBID_nvtxPayloadSchemaRegister,
      function(register_numbered<m, NVTX3EXT_CBID_nvtxPayloadSchemaRegister, nvtxPayloadSchemaAttr_t>));
  client.set(NVTX3EXT_CBID_nvtxPayloadEnumRegister,
             function(register_numbered<m, NVTX3EXT_CBID_nvtxPayloadEnumRegister, nvtxPayloadEnumAttr_t>));
  client.both<m, NVTX3EXT_CBID_nvtxMarkPayload, void(Domain, Payloads, size_t)>();
  client.both<m, NVTX3EXT_CBID_nvtxRangePushPayload, int(Domain, Payloads, size_t)>();
  client.set(NVTX3EXT_CBID_nvtxRangePopPayload,
             function(C<m, NVTX3EXT_CBID_nvtxRangePopPayload, int(Domain, Payloads, size_t)>::ours_first));
  client.set(
      NVTX3EXT_CBID_nvtxRangeStartPayload,
      function(C<m, NVTX3EXT_CBID_nvtxRangeStartPayload, nvtxRangeId_t(Domain, Payloads, size_t)>::start));
  client.set(NVTX3EXT_CBID_nvtxRangeEndPayload,
             function(end_range<m, NVTX3EXT_CBID_nvtxRangeEndPayload, Payloads, size_t>));
  client.set(NVTX3EXT_CBID_nvtxDomainIsEnabled, function(is_enabled));
  client.both<m, NVTX3EXT_CBID_nvtxTimestampGet, int64_t()>();
  client.set(NVTX3EXT_CBID_nvtxTimeDomainRegister,
             function(register_numbered<m, NVTX3EXT_CBID_nvtxTimeDomainRegister, nvtxTimeDomainAttr_t>));
  client.both<m, NVTX3EXT_CBID_nvtxTimerSource, void(Domain, uint64_t, uint64_t, int64_t (*)())>();
  client.both<m, NVTX3EXT_CBID_nvtxTimerSourceWithData,
              void(Domain, uint64_t, uint64_t, int64_t (*)(void *), void *)>();
  client.set(NVTX3EXT_CBID_nvtxScopeRegister,
             function(register_numbered<m, NVTX3EXT_CBID_nvtxScopeRegister, nvtxScopeAttr_t>));
  client.both<m, NVTX3EXT_CBID_nvtxTimeSyncPoint, void(Domain, uint64_t, uint64_t, int64_t, int64_t)>();
  client.both<m, NVTX3EXT_CBID_nvtxTimeSyncPointTable,
              void(Domain, uint64_t, uint64_t, const nvtxSyncPoint_t *, size_t)>();
  client.both<m, NVTX3EXT_CBID_nvtxTimestampConversionFactor,
              void(Domain, uint64_t, uint64_t, double, int64_t, int64_t)>();
  client.both<m, NVTX3EXT_CBID_nvtxEventSubmit, void(Domain, Payloads, size_t)>();
  client.both<m, NVTX3EXT_CBID_nvtxEventBatchSubmit, void(Domain, const nvtxEventBatch_t *)>();
}

void chain_counters(const Client &client) {
  constexpr unsigned m = kCounters;
  client.set(NVTX3EXT_CBID_nvtxCounterRegister,
             function(register_numbered<m, NVTX3EXT_CBID_nvtxCounterRegister, nvtxCounterAttr_t>));
  client.both<m, NVTX3EXT_CBID_nvtxCounterSampleInt64, void(Domain, uint64_t, int64_t)>();
  client.both<m, NVTX3EXT_CBID_nvtxCounterSampleFloat64, void(Domain, uint64_t, double)>();
  client.both<m, NVTX3EXT_CBID_nvtxCounterSample, void(Domain, uint64_t, const void *, size_t)>();
  client.both<m, NVTX3EXT_CBID_nvtxCounterSampleNoValue, void(Domain, uint64_t, uint8_t)>();
  client.both<m, NVTX3EXT_CBID_nvtxCounterBatchSubmit, void(Domain, const nvtxCounterBatch_t *)>();
}

// The other tool: loaded once, for all clients.
struct OtherTool {
  int (*init)(NvtxGetExportTableFunc_t) = nullptr;
  int (*init_extension)(nvtxExtModuleInfo_t *) = nullptr;
  bool named = false;
};

std::mutex g_install_mutex;

OtherTool load_other_tool() {
  OtherTool tool;
  const char *path = secure_getenv("WARPLENS_NVTX_CHAIN");
  if (path == nullptr || *path == '\0') {
    return tool;
  }
  tool.named = true;
  // In a fork child another thread may have held the lock.
  pthread_atfork(nullptr, nullptr, +[] { new (&g_install_mutex) std::mutex; });
  void *library = dlopen(path, RTLD_LAZY);
  if (library == nullptr) {
    return tool;
  }
  Dl_info theirs{};
  Dl_info ours{};
  void *init = dlsym(library, "InitializeInjectionNvtx2");
  if (init == nullptr ||
      (dladdr(init, &theirs) != 0 && dladdr(&g_ours, &ours) != 0 && theirs.dli_fbase == ours.dli_fbase)) {
    return tool;  // no tool, or ourselves
  }
  tool.init = reinterpret_cast<int (*)(NvtxGetExportTableFunc_t)>(init);
  tool.init_extension =
      reinterpret_cast<int (*)(nvtxExtModuleInfo_t *)>(dlsym(library, "InitializeInjectionNvtxExtension"));
  return tool;
}

const OtherTool &other_tool() {
  // Not a static with an initializer: a child that another thread forks meanwhile would wait for it for ever.
  static OtherTool tool;
  static std::once_flag once;
  std::call_once(once, [] { tool = load_other_tool(); });
  return tool;
}

// Tables that are nobody's: what our own sources put there is called from the chained functions.
Function g_captured[kExtension][kSlots];
Function *g_capture_slots[kExtension][kSlots];

int capture_table(NvtxCallbackModule module, NvtxFunctionTable *table, unsigned *size) {
  auto number = static_cast<unsigned>(module);
  if (number == 0 || number >= kExtension) {
    return 0;
  }
  for (unsigned i = 1; i < kSlots; ++i) {
    g_capture_slots[number][i] = &g_captured[number][i];
  }
  *table = reinterpret_cast<NvtxFunctionTable>(g_capture_slots[number]);
  *size = kSlots;
  return 1;
}

const void *capture_export_table(uint32_t id) {
  static const NvtxExportTableCallbacks callbacks = {sizeof(NvtxExportTableCallbacks), capture_table};
  return id == NVTX_ETID_CALLBACKS ? &callbacks : nullptr;
}

constexpr NvtxCallbackModule kCoreModules[] = {NVTX_CB_MODULE_CORE,   NVTX_CB_MODULE_CUDA,
                                               NVTX_CB_MODULE_OPENCL, NVTX_CB_MODULE_CUDART,
                                               NVTX_CB_MODULE_CORE2,  NVTX_CB_MODULE_SYNC};

struct ClientTable {
  Function *const *slots = nullptr;
  unsigned size = 0;
  Function before[kSlots] = {};
};

void chain_module(NvtxCallbackModule module, const Client &client) {
  switch (module) {
    case NVTX_CB_MODULE_CORE:
      return chain_core(client);
    case NVTX_CB_MODULE_CORE2:
      return chain_core2(client);
    case NVTX_CB_MODULE_CUDA:
      return chain_names<NVTX_CB_MODULE_CUDA, 1>(client, 8);
    case NVTX_CB_MODULE_CUDART:
      return chain_names<NVTX_CB_MODULE_CUDART, 1>(client, 6);
    case NVTX_CB_MODULE_OPENCL:
      return chain_names<NVTX_CB_MODULE_OPENCL, 1>(client, 14);
    case NVTX_CB_MODULE_SYNC:
      return chain_sync(client);
    default:
      return;
  }
}

}  // namespace

int install_nvtx_with_others(NvtxGetExportTableFunc_t get_export_table) {
  const OtherTool &tool = other_tool();
  if (!tool.named || get_export_table == nullptr) {
    return install_nvtx(get_export_table);
  }
  const auto *callbacks =
      static_cast<const NvtxExportTableCallbacks *>(get_export_table(NVTX_ETID_CALLBACKS));
  if (tool.init == nullptr || callbacks == nullptr || callbacks->struct_size < sizeof(*callbacks)) {
    count_chained(false);
    return install_nvtx(get_export_table);
  }
  std::lock_guard lock(g_install_mutex);
  ClientTable tables[std::size(kCoreModules)];
  for (size_t i = 0; i < std::size(kCoreModules); ++i) {
    ClientTable &table = tables[i];
    NvtxFunctionTable functions = nullptr;
    if (callbacks->GetModuleFunctionTable(kCoreModules[i], &functions, &table.size) == 0 ||
        functions == nullptr) {
      table.size = 0;
    }
    table.size = std::min(table.size, kSlots);
    table.slots = reinterpret_cast<Function *const *>(functions);
    for (unsigned k = 0; k < table.size; ++k) {
      table.before[k] = table.slots[k] == nullptr ? nullptr : *table.slots[k];
    }
  }
  if (tool.init(get_export_table) == 0) {
    count_chained(false);
    return install_nvtx(get_export_table);
  }
  if (install_nvtx(capture_export_table) == 0) {
    return 1;  // the other tool has the client for itself
  }
  for (size_t i = 0; i < std::size(kCoreModules); ++i) {
    const ClientTable &table = tables[i];
    auto module = static_cast<unsigned>(kCoreModules[i]);
    std::copy(std::begin(g_captured[module]), std::end(g_captured[module]), g_ours[module]);
    for (unsigned k = 0; k < table.size; ++k) {
      if (table.slots[k] != nullptr && *table.slots[k] != table.before[k]) {
        g_theirs[module][k] = *table.slots[k];
      }
    }
    chain_module(kCoreModules[i], Client(module, table.slots, table.size));
  }
  count_chained(true);
  return 1;
}

int install_nvtx_extension_with_others(nvtxExtModuleInfo_t *module) {
  const OtherTool &tool = other_tool();
  unsigned number = module == nullptr ? 0 : kExtension + module->moduleId;
  if (tool.init == nullptr || tool.init_extension == nullptr || number <= kExtension || number >= kModules ||
      module->segments == nullptr || module->segmentsCount == 0 ||
      module->segments[0].functionSlots == nullptr) {
    return install_nvtx_extension(module);
  }
  std::lock_guard lock(g_install_mutex);
  intptr_t *slots = module->segments[0].functionSlots;
  auto size = static_cast<unsigned>(std::min<size_t>(module->segments[0].slotCount, kSlots));
  intptr_t before[kSlots];
  std::copy(slots, slots + size, before);
  bool they = tool.init_extension(module) != 0;
  if (number == kMemory && they) {
    return 1;  // its handles lie in structures that we do not translate
  }
  intptr_t captured[kSlots] = {};
  nvtxExtModuleSegment_t segment = module->segments[0];
  segment.slotCount = size;
  segment.functionSlots = captured;
  nvtxExtModuleInfo_t ours = *module;
  ours.segmentsCount = 1;
  ours.segments = &segment;
  bool we = install_nvtx_extension(&ours) != 0;
  Function *pointers[kSlots] = {};
  for (unsigned k = 0; k < size; ++k) {
    g_ours[number][k] = we ? reinterpret_cast<Function>(captured[k]) : nullptr;
    if (they && slots[k] != before[k]) {
      g_theirs[number][k] = reinterpret_cast<Function>(slots[k]);
    }
    pointers[k] = reinterpret_cast<Function *>(&slots[k]);
  }
  Client client(number, pointers, size);
  switch (number) {
    case kPayload:
      chain_payload(client);
      break;
    case kCounters:
      chain_counters(client);
      break;
    default:
      return they || install_nvtx_extension(module) != 0 ? 1 : 0;
  }
  return they || we ? 1 : 0;
}

namespace {

const WarplensTasks *g_our_tasks = nullptr;

uint32_t create_task(const char *name, const char *library, uint64_t parent) {
  return g_our_tasks->create(name, library, g_ranges.find(parent));
}

uint64_t start_in_task(nvtxDomainRegistration_st *domain, const nvtxEventAttributes_v2 *event, uint32_t task,
                       uint64_t parent) {
  using Start = C<NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangeStartEx,
                  nvtxRangeId_t(Domain, const nvtxEventAttributes_t *)>;
  return Start::start_as(
      [&](Domain our_domain, const nvtxEventAttributes_t *our_event) {
        return g_our_tasks->start(our_domain, our_event, task, g_ranges.find(parent));
      },
      domain, event);
}

}  // namespace

const WarplensTasks *tasks_with_others(const WarplensTasks &ours) {
  if (other_tool().init == nullptr) {
    return &ours;
  }
  g_our_tasks = &ours;
  static const WarplensTasks chained = {sizeof(WarplensTasks), create_task, ours.enter, start_in_task,
                                        ours.recording};
  return &chained;
}

}  // namespace warplens::agent
