// C face of the lane placement.
#include "placing.h"

#if defined(_WIN32)
#define WARPLENS_EXPORT extern "C" __declspec(dllexport)
#else
#define WARPLENS_EXPORT extern "C" __attribute__((visibility("default")))
#endif

using Families = std::vector<warplens::Lanes>;

WARPLENS_EXPORT void *warplens_lanes_new(int32_t families) {
  return new Families(static_cast<size_t>(families));
}

WARPLENS_EXPORT void warplens_lanes_free(void *handle) {
  delete static_cast<Families *>(handle);
}

// Writes each row's lane within its family; rows sorted by start, over all calls. `parent` is -1 for none.
WARPLENS_EXPORT void warplens_lanes_add(void *handle, int64_t rows, const int32_t *family, const int64_t *id,
                                        const int64_t *parent, const int64_t *start, const int64_t *end,
                                        int32_t *lane) {
  auto &families = *static_cast<Families *>(handle);
  for (int64_t i = 0; i < rows; ++i) {
    lane[i] = families[static_cast<size_t>(family[i])].place(id[i], parent[i], start[i], end[i],
                                                             [](int32_t, int64_t) {});
  }
}
