// CUPTI's entry points: tracing only.
#include <unistd.h>

#include "session.h"

using namespace fake;  // NOLINT: this file is nothing but its exports

namespace fake {

Session *session_of(void *handle) {
  for (uint32_t index = 0; index < kSessions; ++index) {
    if (handle == &session(index) && session(index).subscribed.load()) {
      return &session(index);
    }
  }
  return nullptr;
}

bool out_of_bounds(const char *function) {
  if (g_forked.load()) {
    note("violation %s in a fork child", function);
    return true;
  }
  if (!g_initialized.load()) {
    note("violation %s before cuInit", function);
    return true;
  }
  return false;
}

namespace {

bool more_than_clock(const Session &owner) {
  for (const auto &kind : owner.kinds) {
    if (kind.load() != 0) {
      return true;
    }
  }
  return owner.subscribed.load();
}

int set_attribute(uint32_t attribute, const size_t *size, const void *value) {
  if (size == nullptr || value == nullptr) {
    return 1;
  }
  // Up to 11.8 there were nine, to 12.2 ten; later ones have an 8-bit value.
  uint32_t known = kVersion.toolkit >= 1304   ? 24
                   : kVersion.toolkit >= 1300 ? 12
                   : kVersion.toolkit >= 1204 ? 11
                                              : 9;
  if (attribute >= known) {
    return 1;
  }
  bool byte = attribute == 5 || attribute >= 8;
  if (*size < (byte ? 1u : sizeof(size_t))) {
    return 10;
  }
  if (attribute == 5) {
    g_zeroed = *static_cast<const uint8_t *>(value);
  } else if (attribute == 9) {
    for (uint32_t index = 0; index < kSessions; ++index) {
      if (session(index).wants(kKernel) || session(index).wants(kDriver) || session(index).wants(kRuntime)) {
        note("violation per-thread buffers changed while tracing");
      }
    }
    g_per_thread = *static_cast<const uint8_t *>(value);
  } else if (attribute == 17) {
    g_event_times = *static_cast<const uint8_t *>(value);
  } else if (attribute == 21) {
    g_system_tids = *static_cast<const uint32_t *>(value) == 1 ? 1 : 0;
  }
  note("attribute %u", attribute);
  return 0;
}

int subscribe(Session &owner, void **handle, Callback callback, void *user) {
  owner.callback = callback;
  owner.user = user;
  owner.subscribed.store(true);
  *handle = &owner;
  note("subscribed %u", owner.index);
  return 0;
}

int busy(char *name, size_t size) {
  const char *other = setting("FAKE_CUPTI_OTHER");
  other = *other == 0 ? "CUPTI for another tool" : other;
  if (name != nullptr && size != 0) {
    std::strncpy(name, other, size - 1);
    name[size - 1] = 0;
  }
  return 39;
}

int register_clock(Session &owner, Clock clock) {
  note("clock registered");
  if (owner.clocks.fetch_add(1) != 0) {
    note("violation timestamp callback registered again");
  }
  if (more_than_clock(owner) && kVersion.cupti < 130303) {
    note("violation timestamp callback registered after subscribing or enabling");
  }
  owner.clock.store(clock);
  return 0;
}

}  // namespace
}  // namespace fake

FAKE_EXPORT int cuptiGetVersion(uint32_t *version) {
  if (out_of_bounds("cuptiGetVersion")) {
    return 999;
  }
  *version = trap("version") != 0 ? static_cast<uint32_t>(trap("version")) : kVersion.cupti;
  return 0;
}

FAKE_EXPORT int cuptiGetTimestamp(uint64_t *now) {
  *now = trap("late-clock") != 0 && contexts().empty() ? realtime_ns() : session_now(session(0));
  return 0;
}

FAKE_EXPORT int cuptiGetTimestamp_v2(void *subscriber, uint64_t *now) {
  Session *owner = session_of(subscriber);
  if (owner == nullptr) {
    return 1;
  }
  *now = session_now(*owner);
  return 0;
}

FAKE_EXPORT int cuptiGetResultString(int result, const char **text) {
  *text = result == 0    ? "CUPTI_SUCCESS"
          : result == 35 ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
          : result == 39 ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
          : result == 15 ? "CUPTI_ERROR_NOT_INITIALIZED"
                         : "CUPTI_ERROR_UNKNOWN";
  return 0;
}

FAKE_EXPORT int cuptiActivityRegisterTimestampCallback(Clock clock) {
  if (out_of_bounds("cuptiActivityRegisterTimestampCallback")) {
    return 999;
  }
  if (trap("no-clock") != 0) {
    return 14;
  }
  return register_clock(session(0), clock);
}

FAKE_EXPORT int cuptiSubscribe(void **handle, Callback callback, void *user) {
  if (out_of_bounds("cuptiSubscribe")) {
    return 999;
  }
  if (trap("broken") != 0) {
    return trap("broken") > 1 ? static_cast<int>(trap("broken")) : kVersion.toolkit >= 1300 ? 999 : 15;
  }
  if (trap("busy") != 0) {
    return busy(nullptr, 0);
  }
  for (uint32_t index = 0; index < kSessions; ++index) {
    if (session(index).subscribed.load()) {
      return 39;
    }
  }
  return subscribe(session(0), handle, callback, user);
}

int fake::subscribe_as_kineto() {
  void *handle = nullptr;
  return cuptiSubscribe(&handle, [](void *, uint32_t, uint32_t, const void *) {}, nullptr);
}

struct SubscriberParams {
  size_t size;
  const char *name;
  char *old_name;
  size_t old_size;
  uint8_t allow;
  uint8_t padding[7];
};
static_assert(sizeof(SubscriberParams) == 40);

FAKE_EXPORT int cuptiSubscribe_v2(void **handle, Callback callback, void *user, SubscriberParams *params) {
  if (out_of_bounds("cuptiSubscribe_v2")) {
    return 999;
  }
  if (trap("broken") != 0) {
    return trap("broken") > 1 ? static_cast<int>(trap("broken")) : 999;
  }
  // 13.0's structure ends before `allow`.
  bool short_one = kVersion.toolkit < 1304;
  if (params != nullptr && params->size != (short_one ? 32u : 40u)) {
    return 1;
  }
  // Several at once: with CUPTI 13.3 and a driver of that age.
  bool wants_many = params != nullptr && !short_one && params->allow != 0;
  bool many = wants_many && kVersion.cupti >= 130300 && trap("old-driver") == 0;
  char *old_name = params == nullptr ? nullptr : params->old_name;
  size_t old_size = params == nullptr ? 0 : params->old_size;
  if (trap("busy") != 0 || (wants_many && !many)) {
    return busy(trap("busy") != 0 ? old_name : nullptr, old_size);
  }
  uint32_t free = many ? 1 : 0;
  for (uint32_t index = 0; index < kSessions; ++index) {
    if (session(index).subscribed.load()) {
      if (!many || !session(index).shares) {
        if (old_name != nullptr && old_size != 0) {
          std::strncpy(old_name, session(index).name.c_str(), old_size - 1);
          old_name[old_size - 1] = 0;
        }
        return 39;
      }
      free = index == free ? free + 1 : free;
    }
  }
  if (free >= kSessions) {
    return 39;
  }
  Session &owner = session(free);
  owner.second = true;
  owner.shares = many;
  owner.name = std::string("CUPTI for ") + (params != nullptr && params->name != nullptr ? params->name : "");
  return subscribe(owner, handle, callback, user);
}

FAKE_EXPORT int cuptiUnsubscribe(void *handle) {
  if (out_of_bounds("cuptiUnsubscribe")) {
    return 999;
  }
  Session *owner = session_of(handle);
  if (owner == nullptr) {
    return 1;
  }
  owner->subscribed.store(false);
  for (auto &domain : owner->domains) {
    domain.store(0);
  }
  for (auto &domain : owner->callbacks) {
    for (auto &callback : domain) {
      callback.store(0);
    }
  }
  note("unsubscribed %u", owner->index);
  return 0;
}

FAKE_EXPORT int cuptiEnableCallback(uint32_t enable, void *handle, uint32_t domain, uint32_t id) {
  if (out_of_bounds("cuptiEnableCallback")) {
    return 999;
  }
  Session *owner = session_of(handle);
  if (owner == nullptr || domain == 0 || domain > 6 || id >= 1024) {
    return 1;
  }
  owner->callbacks[domain][id].store(enable != 0 ? 1 : 0);
  return 0;
}

FAKE_EXPORT int cuptiEnableDomain(uint32_t enable, void *handle, uint32_t domain) {
  if (out_of_bounds("cuptiEnableDomain")) {
    return 999;
  }
  Session *owner = session_of(handle);
  if (owner == nullptr || domain == 0 || domain > 6) {
    return 1;
  }
  owner->domains[domain].store(enable != 0 ? 1 : 0);
  return 0;
}

FAKE_EXPORT int cuptiEnableAllDomains(uint32_t enable, void *handle) {
  for (uint32_t domain = 1; domain <= 6; ++domain) {
    if (int error = cuptiEnableDomain(enable, handle, domain); error != 0) {
      return error;
    }
  }
  return 0;
}

FAKE_EXPORT int cuptiGetCallbackName(uint32_t domain, uint32_t id, const char **name) {
  if (out_of_bounds("cuptiGetCallbackName")) {
    return 999;
  }
  const char *found = callback_name(domain, id);
  if (found == nullptr) {
    return 1;
  }
  *name = found;
  return 0;
}

FAKE_EXPORT int cuptiActivityRegisterCallbacks(Request request, Complete complete) {
  if (out_of_bounds("cuptiActivityRegisterCallbacks")) {
    return 999;
  }
  if (request == nullptr || complete == nullptr) {
    return 1;
  }
  session(0).request.store(request);
  session(0).complete.store(complete);
  return 0;
}

FAKE_EXPORT int cuptiActivityRegisterCallbacks_v2(void *handle, Request2 request, Complete2 complete) {
  Session *owner = session_of(handle);
  if (out_of_bounds("cuptiActivityRegisterCallbacks_v2") || owner == nullptr || request == nullptr ||
      complete == nullptr) {
    return 1;
  }
  owner->request2.store(request);
  owner->complete2.store(complete);
  return 0;
}

FAKE_EXPORT int cuptiActivityEnable(uint32_t kind) {
  if (out_of_bounds("cuptiActivityEnable")) {
    return 999;
  }
  if (trap("refuse-kind") == kind && kind != 0) {
    return trap("refuse-with") != 0 ? static_cast<int>(trap("refuse-with")) : 27;
  }
  return enable_kind(session(0), kind, true);
}

FAKE_EXPORT int cuptiActivityEnableAndDump(uint32_t kind) {
  int error = cuptiActivityEnable(kind);
  if (error == 0) {
    enable_and_dump(session(0), kind);
  }
  return error;
}

FAKE_EXPORT int cuptiActivityDisable(uint32_t kind) {
  if (out_of_bounds("cuptiActivityDisable")) {
    return 999;
  }
  return enable_kind(session(0), kind, false);
}

FAKE_EXPORT int cuptiActivityEnable_v2(void *handle, uint32_t kind, void *) {
  Session *owner = session_of(handle);
  return out_of_bounds("cuptiActivityEnable_v2") || owner == nullptr ? 1 : enable_kind(*owner, kind, true);
}

FAKE_EXPORT int cuptiActivityEnableAndDump_v2(void *handle, uint32_t kind, void *) {
  int error = cuptiActivityEnable_v2(handle, kind, nullptr);
  if (error == 0) {
    enable_and_dump(*session_of(handle), kind);
  }
  return error;
}

FAKE_EXPORT int cuptiActivityDisable_v2(void *handle, uint32_t kind, void *) {
  Session *owner = session_of(handle);
  return out_of_bounds("cuptiActivityDisable_v2") || owner == nullptr ? 1 : enable_kind(*owner, kind, false);
}

FAKE_EXPORT int cuptiActivityEnableContext(void *, uint32_t kind) {
  return cuptiActivityEnable(kind);
}

FAKE_EXPORT int cuptiActivityDisableContext(void *, uint32_t kind) {
  return cuptiActivityDisable(kind);
}

static int enable_api(Session *owner, uint32_t domain, uint32_t cbid, uint8_t enable) {
  if (owner == nullptr || cbid >= 1024) {
    return 1;
  }
  owner->apis[domain][cbid].store(enable != 0 ? 1 : 2);
  return 0;
}

FAKE_EXPORT int cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable) {
  return out_of_bounds("cuptiActivityEnableDriverApi") ? 999
                                                       : enable_api(&session(0), kDriverApi, cbid, enable);
}

FAKE_EXPORT int cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable) {
  return out_of_bounds("cuptiActivityEnableRuntimeApi") ? 999
                                                        : enable_api(&session(0), kRuntimeApi, cbid, enable);
}

FAKE_EXPORT int cuptiActivityEnableDriverApi_v2(void *handle, uint32_t cbid, uint8_t enable) {
  return enable_api(session_of(handle), kDriverApi, cbid, enable);
}

FAKE_EXPORT int cuptiActivityEnableRuntimeApi_v2(void *handle, uint32_t cbid, uint8_t enable) {
  return enable_api(session_of(handle), kRuntimeApi, cbid, enable);
}

FAKE_EXPORT int cuptiActivityFlushAll(uint32_t flag) {
  if (out_of_bounds("cuptiActivityFlushAll") && trap("fork-hang") == 0) {
    return 999;
  }
  for (uint32_t index = 1; index < kSessions; ++index) {
    if (session(index).subscribed.load()) {
      flush(session(index), flag);
    }
  }
  return flush(session(0), flag);
}

FAKE_EXPORT int cuptiActivityFlush(void *, uint32_t, uint32_t flag) {
  return cuptiActivityFlushAll(flag);
}

FAKE_EXPORT int cuptiActivityFlushPeriod(uint32_t) {
  return 0;
}

static int next_record(const uint8_t *buffer, size_t valid, uint8_t **record) {
  if (buffer == nullptr || record == nullptr) {
    return 1;
  }
  size_t at = 0;
  if (*record != nullptr) {
    uint32_t kind;
    std::memcpy(&kind, *record, sizeof(kind));
    at = static_cast<size_t>(*record - buffer) + record_size(kind);
  }
  if (at >= valid) {
    *record = nullptr;
    return 12;
  }
  uint32_t kind;
  std::memcpy(&kind, buffer + at, sizeof(kind));
  if (record_size(kind) == 0) {
    return 21;
  }
  *record = const_cast<uint8_t *>(buffer) + at;
  return 0;
}

FAKE_EXPORT int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record) {
  return next_record(buffer, valid, record);
}

FAKE_EXPORT int cuptiActivityGetNextRecord_v2(void *handle, uint8_t *buffer, size_t valid, uint8_t **record) {
  return session_of(handle) == nullptr ? 1 : next_record(buffer, valid, record);
}

FAKE_EXPORT int cuptiActivityGetNumDroppedRecords_v2(void *handle, void *, uint32_t, size_t *dropped) {
  Session *owner = session_of(handle);
  if (owner == nullptr || dropped == nullptr) {
    return 1;
  }
  *dropped = owner->dropped.exchange(0);
  return 0;
}

FAKE_EXPORT int cuptiSetThreadIdType(uint32_t type) {
  if (out_of_bounds("cuptiSetThreadIdType")) {
    return 999;
  }
  g_system_tids = type == 1 ? 1 : 0;
  return 0;
}

FAKE_EXPORT int cuptiGetThreadIdType(uint32_t *type) {
  *type = g_system_tids.load();
  return 0;
}

FAKE_EXPORT int cuptiActivitySetAttribute(uint32_t attribute, size_t *size, void *value) {
  return out_of_bounds("cuptiActivitySetAttribute") ? 999 : set_attribute(attribute, size, value);
}

FAKE_EXPORT int cuptiActivitySetAttribute_v2(void *handle, uint32_t attribute, size_t *size, void *value) {
  Session *owner = session_of(handle);
  if (owner == nullptr || size == nullptr || value == nullptr) {
    return 1;
  }
  if (attribute == 22) {
    Clock clock;
    std::memcpy(&clock, value, sizeof(clock));
    owner->clock.store(clock);
    owner->clocks.store(1);
    return 0;
  }
  return set_attribute(attribute, size, value);
}

FAKE_EXPORT int cuptiActivityGetAttribute(uint32_t attribute, size_t *size, void *value) {
  if (size == nullptr || value == nullptr || *size == 0) {
    return 1;
  }
  if (attribute != 5 && attribute != 9) {
    return 1;
  }
  *static_cast<uint8_t *>(value) = attribute == 5 ? g_zeroed.load() : g_per_thread.load();
  return 0;
}

FAKE_EXPORT int cuptiActivityGetAttribute_v2(void *handle, uint32_t attribute, size_t *size, void *value) {
  return session_of(handle) == nullptr ? 1 : cuptiActivityGetAttribute(attribute, size, value);
}

FAKE_EXPORT int cuptiActivityPushExternalCorrelationId_v2(void *handle, uint32_t kind, uint64_t id) {
  return session_of(handle) == nullptr ? 1 : push_external(kind, id);
}

FAKE_EXPORT int cuptiActivityPopExternalCorrelationId_v2(void *handle, uint32_t kind, uint64_t *id) {
  return session_of(handle) == nullptr ? 1 : pop_external(kind, id);
}

FAKE_EXPORT int cuptiActivityPushExternalCorrelationId(uint32_t kind, uint64_t id) {
  return push_external(kind, id);
}

FAKE_EXPORT int cuptiActivityPopExternalCorrelationId(uint32_t kind, uint64_t *id) {
  return pop_external(kind, id);
}

FAKE_EXPORT int cuptiActivityEnableLatencyTimestamps(uint8_t) {
  return 0;
}

FAKE_EXPORT int cuptiActivityEnableAllocationSource(uint8_t) {
  return 0;
}

FAKE_EXPORT int cuptiActivityEnableAllSyncRecords(uint8_t) {
  return 0;
}

FAKE_EXPORT int cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t enable) {
  g_event_times = enable;
  return 0;
}

FAKE_EXPORT int cuptiIsTracingSessionRunning(uint8_t *running) {
  *running = 0;
  for (uint32_t index = 0; index < kSessions; ++index) {
    *running |= session(index).subscribed.load() ? 1 : 0;
  }
  return 0;
}

FAKE_EXPORT int cuptiActivityEnableHWTrace(uint8_t) {
  return 27;
}

FAKE_EXPORT int cuptiActivityEnableDeviceGraph(uint8_t) {
  return 0;
}

FAKE_EXPORT int cuptiFinalize() {
  note("violation cuptiFinalize");
  return 0;
}

FAKE_EXPORT int cuptiGetContextId(Context *context, uint32_t *id) {
  if (context == nullptr || id == nullptr) {
    return 3;
  }
  *id = context->id;
  return 0;
}

FAKE_EXPORT int cuptiGetDeviceId(Context *context, uint32_t *id) {
  if (context == nullptr || id == nullptr) {
    return 3;
  }
  *id = context->device;
  return 0;
}

FAKE_EXPORT int cuptiGetStreamIdEx(Context *context, void *stream, uint8_t, uint32_t *id) {
  if (context == nullptr || id == nullptr) {
    return 3;
  }
  *id =
      reinterpret_cast<uintptr_t>(stream) <= 2 ? context->null_stream.id : static_cast<Stream *>(stream)->id;
  return 0;
}

FAKE_EXPORT int cuptiGetStreamId(Context *context, void *stream, uint32_t *id) {
  return cuptiGetStreamIdEx(context, stream, 0, id);
}
