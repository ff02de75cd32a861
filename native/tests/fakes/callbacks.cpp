// Subscribers, and the API calls, resources and states that they receive.
#include <unistd.h>

#include "session.h"

namespace fake {
namespace {

struct CallbackData {
  uint32_t site;  // 0: entry, 1: exit
  const char *function;
  const void *params;
  void *result;
  const char *symbol;
  void *context;
  uint32_t context_uid;
  uint64_t *data;
  uint32_t correlation;
};
static_assert(offsetof(CallbackData, correlation) == 64 && sizeof(CallbackData) == 72);

struct StateData {
  int result;
  const char *message;
};

constexpr uint32_t kExternalKinds = 8, kExternalDepth = 64;
struct Stack {
  uint64_t ids[kExternalDepth];
  uint32_t depth = 0;
};
thread_local Stack t_external[kExternalKinds];
thread_local Call *t_outer = nullptr;
std::atomic<uint32_t> g_correlation{0};
std::atomic<uint64_t> g_launches{0};

bool listens(const Session &owner, uint32_t domain, uint32_t id) {
  return owner.subscribed.load() &&
         (owner.domains[domain].load() != 0 || (id < 1024 && owner.callbacks[domain][id].load() != 0));
}

bool launches(uint32_t domain, uint32_t cbid) {
  return domain == kDriverApi ? cbid == 307 || cbid == 652 || cbid == 514
                              : cbid == 211 || cbid == 430 || cbid == 311;
}

// Another profiler in the process: it takes the buffers for itself, and switches kinds off when it is done.
constexpr size_t kStolen = 1 << 16;
void steal_request(uint8_t **buffer, size_t *size, size_t *most) {
  *buffer = new uint8_t[kStolen]();
  *size = kStolen;
  *most = 0;
}
void steal_complete(void *, uint32_t, uint8_t *buffer, size_t, size_t) {
  delete[] buffer;
}

void spring_traps(uint64_t launched) {
  if (uint64_t at = trap("steal"); at != 0 && launched == at) {
    note("another tool took the buffers");
    session(0).request.store(steal_request);
    session(0).complete.store(steal_complete);
  }
  if (uint64_t at = trap("steal-kinds"); at != 0 && launched == at) {
    note("another tool switched kinds off");
    for (auto &kind : session(0).kinds) {
      kind.store(0);
    }
  }
  if (uint64_t at = trap("kineto"); at != 0 && launched == at) {
    note("torch's Kineto subscribes: %d", subscribe_as_kineto());
  }
  if (uint64_t at = trap("fatal"); at != 0 && launched == at) {
    fatal_error();
  }
}

}  // namespace

Call::Call(Domain domain, uint32_t cbid, const char *name, const void *params, const char *symbol)
    : domain_(domain), cbid_(cbid), name_(name), params_(params), symbol_(symbol), outer_(t_outer) {
  // A driver call that the runtime makes has the runtime call's number, unless the trap gives it a separate one.
  correlation_ =
      outer_ != nullptr && trap("own-ids") == 0 ? outer_->correlation_ : g_correlation.fetch_add(1) + 1;
  t_outer = this;
  start_ = cupti_now();
  fire(0);
}

Call::~Call() {
  if (launches(domain_, cbid_) && (outer_ == nullptr || outer_->domain_ == domain_)) {
    spring_traps(g_launches.fetch_add(1) + 1);
  }
  uint64_t end = cupti_now();
  fire(1);
  t_outer = outer_;
  uint32_t kind = domain_ == kDriverApi ? kDriver : kRuntime;
  if (g_forked.load()) {
    return;
  }
  if (anybody_wants(kExternal) && outer_ == nullptr) {
    for (uint32_t external = 0; external < kExternalKinds; ++external) {
      const Stack &stack = t_external[external];
      if (stack.depth != 0 && anybody_wants(kind)) {
        Record record(kExternal);
        record.put<uint32_t>(4, external);
        record.put<uint64_t>(8, stack.ids[stack.depth - 1]);
        record.put<uint32_t>(16, correlation_);
        deliver(record);
      }
    }
  }
  Record record(kind);
  record.put<uint32_t>(4, cbid_);
  record.put<uint64_t>(8, start_);
  record.put<uint64_t>(16, end);
  record.put<uint32_t>(24, static_cast<uint32_t>(getpid()));
  record.put<uint32_t>(28, g_system_tids.load() != 0 ? system_tid() : static_cast<uint32_t>(pthread_self()));
  record.put<uint32_t>(32, correlation_);
  record.put<int>(36, result_);
  deliver_api(record, domain_, cbid_);
}

void Call::fire(uint32_t site) {
  Context *context = nullptr;
  for (uint32_t index = 0; index < kSessions; ++index) {
    Session &owner = session(index);
    if (!listens(owner, domain_, cbid_)) {
      continue;
    }
    context = context != nullptr ? context : current_context();
    CallbackData data{
        site,          name_,       params_, &result_, symbol_, context, context == nullptr ? 0 : context->id,
        &data_[index], correlation_};
    owner.callback(owner.user, domain_, cbid_, &data);
  }
}

void resource_callback(uint32_t id, Context *context, void *handle, void *descriptor) {
  ResourceData data{context, handle, descriptor};
  for (uint32_t index = 0; index < kSessions; ++index) {
    Session &owner = session(index);
    if (listens(owner, kResource, id)) {
      owner.callback(owner.user, kResource, id, &data);
    }
  }
}

// CUPTI tells of a fatal error, then takes itself down.
void fatal_error() {
  note("fatal error: CUPTI finalizes itself");
  StateData data{999, "an unrecoverable error"};
  for (uint32_t index = 0; index < kSessions; ++index) {
    Session &owner = session(index);
    if (listens(owner, kState, 1)) {
      owner.callback(owner.user, kState, 1, &data);
    }
    for (auto &kind : owner.kinds) {
      kind.store(0);
    }
    owner.subscribed.store(false);
  }
}

int push_external(uint32_t kind, uint64_t id) {
  if (kind == 0 || kind >= kExternalKinds || t_external[kind].depth == kExternalDepth) {
    return 1;
  }
  t_external[kind].ids[t_external[kind].depth++] = id;
  return 0;
}

int pop_external(uint32_t kind, uint64_t *id) {
  if (kind == 0 || kind >= kExternalKinds) {
    return 1;
  }
  Stack &stack = t_external[kind];
  if (stack.depth == 0) {
    return 18;
  }
  --stack.depth;
  if (id != nullptr) {
    *id = stack.ids[stack.depth];
  }
  return 0;
}

}  // namespace fake
