// NVTX ranges, marks and names, from any language and library: the core and core2 callback tables.
// Handles are our numbers (string id, domain number) cast to pointers: no look-up on the recording path.
#include "nvtx.h"

#include "agent/session.h"
#include "agent/watch.h"
#include "event.h"
#include "table.h"

namespace warplens::agent {
namespace {

constexpr int kNotRecorded = NVTX_NO_PUSH_POP_TRACKING;

// Each of these comes in two kinds: `watchful` ones look at what watch.h says.
template <bool watchful>
inline ThreadLog *log_for(uint16_t domain) {
  if constexpr (watchful) {
    if (is_left_out(domain)) {
      return nullptr;
    }
  }
  return thread_log();
}

template <bool watchful>
[[gnu::always_inline]] inline int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event) {
  ThreadLog *log = log_for<watchful>(domain_of(domain));
  return log == nullptr
             ? kNotRecorded
             : push_range<watchful>(*log, domain_of(domain), label_of(*log, domain_of(domain), event));
}

template <bool watchful, typename Char>
[[gnu::always_inline]] inline int push_name(const Char *name) {
  ThreadLog *log = log_for<watchful>(0);
  if (log == nullptr) {
    return kNotRecorded;
  }
  Label label;
  label.name = name_of(*log, name);
  return push_range<watchful>(*log, 0, label);
}

template <bool watchful>
[[gnu::always_inline]] inline int pop(nvtxDomainHandle_t domain) {
  ThreadLog *log = log_for<watchful>(domain_of(domain));
  return log == nullptr ? kNotRecorded : pop_range<watchful>(*log, domain_of(domain), now_ns(log->clock()));
}

void mark(ThreadLog &log, uint16_t domain, const Label &label, uint64_t now) {
  log.append({RecordType::mark, label.flags, domain, label.name}, now, now, label);
}

template <bool watchful>
void mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event) {
  if (ThreadLog *log = log_for<watchful>(domain_of(domain))) {
    uint64_t now = now_ns(log->clock());
    if (log->records(now)) [[likely]] {
      mark(*log, domain_of(domain), label_of(*log, domain_of(domain), event), now);
    }
  }
}

template <bool watchful, typename Char>
void mark_name(const Char *name) {
  if (ThreadLog *log = log_for<watchful>(0)) {
    uint64_t now = now_ns(log->clock());
    if (log->records(now)) [[likely]] {
      Label label;
      label.name = name_of(*log, name);
      mark(*log, 0, label, now);
    }
  }
}

template <bool watchful>
nvtxRangeId_t start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event) {
  ThreadLog *log = log_for<watchful>(domain_of(domain));
  return log == nullptr
             ? 0
             : start_range<watchful>(*log, domain_of(domain), label_of(*log, domain_of(domain), event));
}

template <bool watchful, typename Char>
nvtxRangeId_t start_name(const Char *name) {
  ThreadLog *log = log_for<watchful>(0);
  if (log == nullptr) {
    return 0;
  }
  Label label;
  label.name = name_of(*log, name);
  return start_range<watchful>(*log, 0, label);
}

template <bool watchful>
void end(nvtxRangeId_t id) {
  if (ThreadLog *log = thread_log(); log != nullptr && id != 0) {
    end_range<watchful>(*log, id, now_ns(log->clock()));
  }
}

// What handles and numbers stand for is kept while nothing is recorded, too: a recording may begin later.
uint32_t name_at_any_time(const char *text) {
  return text != nullptr ? text_number(text) : 0;
}

uint32_t name_at_any_time(const wchar_t *text) {
  return text == nullptr ? 0 : guarded(uint32_t{0}, [&] { return name_at_any_time(utf8(text).c_str()); });
}

template <typename Char>
void name_category(nvtxDomainHandle_t domain, uint32_t category, const Char *name) {
  MetaRecord record{};
  record.category = category;
  describe({RecordType::category, 0, domain_of(domain), name_at_any_time(name)}, record);
}

template <typename Char>
void name_thread(uint32_t tid, const Char *name) {
  RecordHead head{RecordType::thread_name, 0, 0, name_at_any_time(name)};
  MetaRecord record{};
  record.tid = tid;
  record.start = now_ns(process_clock());
  describe(head, record);
}

template <typename Char>
nvtxStringHandle_t register_string(nvtxDomainHandle_t, const Char *text) {
  return to_handle<nvtxStringHandle_t>(name_at_any_time(text));
}

nvtxDomainHandle_t create_domain(const char *name) {
  thread_log();  // the process is to be seen in the recording, though it may do no more than this
  if (name == nullptr) {
    return nullptr;
  }
  uint16_t number = domain_number(name);
  if (is_watchful()) {
    meet_domain(number, name);
  }
  return to_handle<nvtxDomainHandle_t>(number);
}

nvtxDomainHandle_t create_domain(const wchar_t *name) {
  try {
    return name == nullptr ? nullptr : create_domain(utf8(name).c_str());
  } catch (...) {
    return nullptr;
  }
}

template <bool watchful>
void fill_core(Table table) {
  table.set(NVTX_CBID_CORE_MarkEx, +[](const nvtxEventAttributes_t *e) { mark<watchful>(nullptr, e); });
  table.set(NVTX_CBID_CORE_MarkA, +[](const char *name) { mark_name<watchful>(name); });
  table.set(NVTX_CBID_CORE_MarkW, +[](const wchar_t *name) { mark_name<watchful>(name); });
  table.set(
      NVTX_CBID_CORE_RangeStartEx,
      +[](const nvtxEventAttributes_t *e) { return start<watchful>(nullptr, e); });
  table.set(NVTX_CBID_CORE_RangeStartA, +[](const char *name) { return start_name<watchful>(name); });
  table.set(NVTX_CBID_CORE_RangeStartW, +[](const wchar_t *name) { return start_name<watchful>(name); });
  table.set(NVTX_CBID_CORE_RangeEnd, +[](nvtxRangeId_t id) { end<watchful>(id); });
  table.set(
      NVTX_CBID_CORE_RangePushEx, +[](const nvtxEventAttributes_t *e) { return push<watchful>(nullptr, e); });
  table.set(NVTX_CBID_CORE_RangePushA, +[](const char *name) { return push_name<watchful>(name); });
  table.set(NVTX_CBID_CORE_RangePushW, +[](const wchar_t *name) { return push_name<watchful>(name); });
  table.set(NVTX_CBID_CORE_RangePop, +[]() { return pop<watchful>(nullptr); });
  table.set(
      NVTX_CBID_CORE_NameCategoryA, +[](uint32_t id, const char *name) { name_category(nullptr, id, name); });
  table.set(
      NVTX_CBID_CORE_NameCategoryW,
      +[](uint32_t id, const wchar_t *name) { name_category(nullptr, id, name); });
  table.set(NVTX_CBID_CORE_NameOsThreadA, +[](uint32_t tid, const char *name) { name_thread(tid, name); });
  table.set(NVTX_CBID_CORE_NameOsThreadW, +[](uint32_t tid, const wchar_t *name) { name_thread(tid, name); });
}

template <bool watchful>
void fill_core2(Table table) {
  using Domain = nvtxDomainHandle_t;
  table.set(
      NVTX_CBID_CORE2_DomainMarkEx, +[](Domain d, const nvtxEventAttributes_t *e) { mark<watchful>(d, e); });
  table.set(
      NVTX_CBID_CORE2_DomainRangeStartEx,
      +[](Domain d, const nvtxEventAttributes_t *e) { return start<watchful>(d, e); });
  table.set(NVTX_CBID_CORE2_DomainRangeEnd, +[](Domain, nvtxRangeId_t id) { end<watchful>(id); });
  table.set(
      NVTX_CBID_CORE2_DomainRangePushEx,
      +[](Domain d, const nvtxEventAttributes_t *e) { return push<watchful>(d, e); });
  table.set(NVTX_CBID_CORE2_DomainRangePop, +[](Domain d) { return pop<watchful>(d); });
  table.set(
      NVTX_CBID_CORE2_DomainNameCategoryA,
      +[](Domain d, uint32_t id, const char *name) { name_category(d, id, name); });
  table.set(
      NVTX_CBID_CORE2_DomainNameCategoryW,
      +[](Domain d, uint32_t id, const wchar_t *name) { name_category(d, id, name); });
  table.set(
      NVTX_CBID_CORE2_DomainRegisterStringA,
      +[](Domain d, const char *text) { return register_string(d, text); });
  table.set(
      NVTX_CBID_CORE2_DomainRegisterStringW,
      +[](Domain d, const wchar_t *text) { return register_string(d, text); });
  table.set(NVTX_CBID_CORE2_DomainCreateA, +[](const char *name) { return create_domain(name); });
  table.set(NVTX_CBID_CORE2_DomainCreateW, +[](const wchar_t *name) { return create_domain(name); });
  // Names stay: another holder of the same domain may go on, and the report needs them.
  table.set(NVTX_CBID_CORE2_DomainDestroy, +[](Domain) {});
  table.set(NVTX_CBID_CORE2_Initialize, +[](const void *) {});
}

}  // namespace

int install_nvtx(NvtxGetExportTableFunc_t get_export_table) {
  if (get_export_table == nullptr || !prepare()) {
    return 0;
  }
  const auto *callbacks =
      static_cast<const NvtxExportTableCallbacks *>(get_export_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(*callbacks)) {
    return 0;
  }
  const auto *version =
      static_cast<const NvtxExportTableVersionInfo *>(get_export_table(NVTX_ETID_VERSIONINFO));
  if (version != nullptr && version->struct_size >= sizeof(*version)) {  // absent before NVTX 3
    version->SetInjectionNvtxVersion(NVTX_VERSION);
  }
  (is_watchful() ? fill_core<true> : fill_core<false>)(Table(*callbacks, NVTX_CB_MODULE_CORE));
  (is_watchful() ? fill_core2<true> : fill_core2<false>)(Table(*callbacks, NVTX_CB_MODULE_CORE2));
  fill_resources(Table(*callbacks, NVTX_CB_MODULE_CORE2));
  fill_cuda_names(Table(*callbacks, NVTX_CB_MODULE_CUDA));
  fill_cudart_names(Table(*callbacks, NVTX_CB_MODULE_CUDART));
  fill_opencl_names(Table(*callbacks, NVTX_CB_MODULE_OPENCL));
  fill_sync(Table(*callbacks, NVTX_CB_MODULE_SYNC));
  return 1;
}

}  // namespace warplens::agent
