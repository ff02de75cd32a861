// Computes which regions are active at the same time in a block of warps.
// A warp has the key of its innermost region, a block those of its warps.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "reader/door.h"

namespace warplens::reader {
namespace {

constexpr int kKeys = 64;
constexpr int kKeyBits = std::bit_width(unsigned{2 * kKeys - 1});  // a key, and whether it ends

struct Regions {
  const int64_t *unit;
  const int64_t *start;
  const int64_t *end;
  const int32_t *key;    // below kKeys; -1: it counts for nothing, but hides what it is in
  const uint8_t *whole;  // it hides nothing and is hidden by nothing
};

// Columns of what is found: states (which keys were active, for how long), and the stretches of each.
struct States {
  int64_t *group;
  uint64_t *active;
  int64_t *length;
};
struct Stretches {
  int64_t *unit;
  int64_t *start;
  int64_t *length;
  int64_t *state;
};

// Rows of one unit: they lie side by side.
struct Run {
  int64_t unit;
  size_t first;
  size_t last;
};

class Together {
 public:
  Together(const Regions &regions, const States &states, const Stretches &stretches)
      : regions_(regions), states_(states), stretches_(stretches) {}

  // The runs of one block.
  void block(const Run *first, const Run *last, int64_t group) {
    least_ = INT64_MAX;
    for (const Run *run = first; run != last; ++run) {
      for (size_t row = run->first; row != run->last; ++row) {
        least_ = std::min(least_, regions_.start[row]);
      }
    }
    edges_.clear();
    for (const Run *run = first; run != last; ++run) {
      unit(*run);
    }
    std::sort(edges_.begin(), edges_.end());
    sweep(first->unit, group);
  }

  uint64_t states() const { return state_; }
  uint64_t stretches() const { return stretch_; }

 private:
  void edge(int64_t time, int32_t key, bool ends) {
    edges_.push_back(static_cast<uint64_t>(time - least_) << kKeyBits | static_cast<uint64_t>(key) << 1 |
                     (ends ? 1 : 0));
  }
  void active(int64_t from, int64_t to, int32_t key) {
    if (from < to && key >= 0) {
      edge(from, key, false);
      edge(to, key, true);
    }
  }

  // What began last is the innermost, for as long as it lasts.
  void unit(const Run &run) {
    order_.resize(run.last - run.first);
    std::iota(order_.begin(), order_.end(), run.first);
    auto less = [this](size_t a, size_t b) {
      return regions_.start[a] != regions_.start[b] ? regions_.start[a] < regions_.start[b]
                                                    : regions_.end[a] > regions_.end[b];
    };
    if (!std::is_sorted(order_.begin(), order_.end(), less)) {
      std::stable_sort(order_.begin(), order_.end(), less);
    }
    open_.clear();
    int64_t now = INT64_MIN;
    for (size_t row : order_) {
      int64_t begin = regions_.start[row];
      if (regions_.whole[row] != 0) {
        active(begin, regions_.end[row], regions_.key[row]);
        continue;
      }
      now = close_until(begin, now);
      if (!open_.empty()) {
        active(now, begin, regions_.key[open_.back()]);
      }
      now = begin;
      open_.push_back(row);
    }
    close_until(INT64_MAX, now);
  }

  int64_t close_until(int64_t until, int64_t now) {
    while (!open_.empty() && regions_.end[open_.back()] <= until) {
      int64_t end = regions_.end[open_.back()];
      active(now, end, regions_.key[open_.back()]);
      now = std::max(now, end);
      open_.pop_back();
    }
    return now;
  }

  void sweep(int64_t unit, int64_t group) {
    uint64_t now_active = 0;
    int64_t since = 0;
    for (size_t at = 0; at != edges_.size();) {
      uint64_t time = edges_[at] >> kKeyBits;
      uint64_t then_active = now_active;
      for (; at != edges_.size() && edges_[at] >> kKeyBits == time; ++at) {
        auto key = static_cast<unsigned>(edges_[at] >> 1 & (kKeys - 1));
        counts_[key] += (edges_[at] & 1) != 0 ? -1 : 1;
        uint64_t bit = uint64_t{1} << key;
        then_active = counts_[key] > 0 ? then_active | bit : then_active & ~bit;
      }
      if (then_active != now_active) {
        if (now_active != 0) {
          found(unit, group, least_ + since, static_cast<int64_t>(time) - since, now_active);
        }
        now_active = then_active;
        since = static_cast<int64_t>(time);
      }
    }
  }

  void found(int64_t unit, int64_t group, int64_t start, int64_t length, uint64_t active) {
    if (group != group_) {
      group_ = group;
      known_.clear();  // groups come in runs, of which readers add up what is the same
    }
    auto [place, is_new] = known_.try_emplace(active, state_);
    if (is_new) {
      states_.group[state_] = group;
      states_.active[state_] = active;
      states_.length[state_] = 0;
      ++state_;
    }
    states_.length[place->second] += length;
    if (stretches_.unit != nullptr) {
      stretches_.unit[stretch_] = unit;
      stretches_.start[stretch_] = start;
      stretches_.length[stretch_] = length;
      stretches_.state[stretch_] = static_cast<int64_t>(place->second);
    }
    ++stretch_;
  }

  Regions regions_;
  States states_;
  Stretches stretches_;
  uint64_t state_ = 0;
  uint64_t stretch_ = 0;
  int64_t least_ = 0;
  int64_t group_ = INT64_MIN;
  int32_t counts_[kKeys] = {};
  std::vector<uint64_t> edges_;
  std::vector<size_t> order_;
  std::vector<size_t> open_;
  std::unordered_map<uint64_t, uint64_t> known_;
};

// Blocks in order of their first row.
std::vector<Run> runs_of(const int64_t *unit, uint64_t count, const int64_t *block) {
  std::vector<Run> runs;
  for (size_t row = 0; row != count; ++row) {
    if (runs.empty() || runs.back().unit != unit[row]) {
      runs.push_back({unit[row], row, row});
    }
    ++runs.back().last;
  }
  auto less = [block](const Run &a, const Run &b) { return block[a.unit] < block[b.unit]; };
  if (!std::is_sorted(runs.begin(), runs.end(), less)) {
    std::stable_sort(runs.begin(), runs.end(), less);
  }
  return runs;
}

// `block` and `group` are of each unit. Room for states and stretches: four times as many as regions, and without `stretch_unit` there
// are none of these. Returns how many states; `stretches` becomes how many stretches.
int64_t together(Array<const int64_t> unit, Array<const int64_t> start, Array<const int64_t> end,
                 Array<const int32_t> key, Array<const uint8_t> whole, Array<const int64_t> block,
                 Array<const int64_t> group, Array<int64_t> state_group, Array<uint64_t> state_active,
                 Array<int64_t> state_length, Array<int64_t> stretch_unit, Array<int64_t> stretch_start,
                 Array<int64_t> stretch_length, Array<int64_t> stretch_state, Array<uint64_t> stretches) {
  require_size(unit.size, start, end, key, whole);
  require_size(block.size, group);
  require_size(4 * unit.size, state_group, state_active, state_length, stretch_unit, stretch_start,
               stretch_length, stretch_state);
  require_size(1, stretches);
  for (uint64_t row = 0; row < unit.size; ++row) {
    if (unit[row] < 0 || static_cast<uint64_t>(unit[row]) >= block.size || key[row] >= kKeys) {
      throw std::invalid_argument("there is no such unit or key");
    }
  }
  Together all({unit.data, start.data, end.data, key.data, whole.data},
               {state_group.data, state_active.data, state_length.data},
               {stretch_unit.data, stretch_start.data, stretch_length.data, stretch_state.data});
  std::vector<Run> runs = runs_of(unit.data, unit.size, block.data);
  for (size_t first = 0; first != runs.size();) {
    const int64_t of = runs[first].unit;
    size_t last = first + 1;
    while (last != runs.size() && block.data[runs[last].unit] == block.data[of]) {
      ++last;
    }
    all.block(runs.data() + first, runs.data() + last, group.data[of]);
    first = last;
  }
  stretches[0] = all.stretches();
  return static_cast<int64_t>(all.states());
}
WARPLENS_FUNCTION(together);

}  // namespace
}  // namespace warplens::reader
