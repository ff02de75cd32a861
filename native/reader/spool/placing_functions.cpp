// The functions `lanes_…`: lanes within families, for exporters (warplens.exporters.tracks).
#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "placing.h"
#include "reader/door.h"

namespace warplens::reader {
namespace {

using Families = std::vector<warplens::Lanes>;

std::unique_ptr<Families> lanes_new(uint64_t families) {
  return std::make_unique<Families>(families);
}
WARPLENS_FUNCTION(lanes_new);

// Writes each row's lane within its family; rows sorted by start, over all calls. `parent` is -1 for none.
void lanes_add(Families &families, Array<const int32_t> family, Array<const int64_t> id,
               Array<const int64_t> parent, Array<const int64_t> start, Array<const int64_t> end,
               Array<int32_t> lane) {
  require_size(family.size, id, parent, start, end, lane);
  for (const int32_t of : family) {
    if (of < 0 || static_cast<size_t>(of) >= families.size()) {
      throw std::invalid_argument("there is no such family");
    }
  }
  for (uint64_t i = 0; i < family.size; ++i) {
    lane[i] = families[static_cast<size_t>(family[i])].place(id[i], parent[i], start[i], end[i],
                                                             [](int32_t, int64_t) {});
  }
}
WARPLENS_FUNCTION(lanes_add);

}  // namespace
}  // namespace warplens::reader
