// Places ranges by their nesting.
// Each gets depth and parent. Ranges arrive in order of start (ties: the longer one first).
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "lanes.h"

namespace warplens::reader {

struct Place {
  uint32_t depth;
  int64_t parent;  // -1: none
};

struct OpenRange {
  int64_t end;
  int64_t id;
  uint32_t lane;
};

struct EndsLater {
  bool operator()(const OpenRange &a, const OpenRange &b) const { return a.end > b.end; }
};

using ByEnd = std::priority_queue<OpenRange, std::vector<OpenRange>, EndsLater>;

// Push/pop ranges of one thread, or start/end ranges of one task. The parent is the innermost open range that encloses the
// new one entirely; the lane is the smallest free one below the parent's. Ranges of several domains may cross, so lanes are
// not simply the stack's height.
class Nest {
 public:
  Place add(int64_t start, int64_t end, int64_t id);
  // The innermost open range that encloses one which is not of this nest; -1: none.
  int64_t enclosing(int64_t start, int64_t end) const;
  // The end of an open range is known now. False: it is not here.
  bool settle(int64_t id, int64_t end);
  // Whether of the enclosing ranges each ends no later than the one around it.
  bool in_order() const;
  // Whether nothing is open at `time`; whatever is open ends before the first of `enclosing_`.
  bool over(int64_t time) const { return enclosing_.empty() || enclosing_.front().end <= time; }

 private:
  std::vector<OpenRange> enclosing_;  // ends fall towards the back: only these can enclose what comes
  ByEnd crossed_;                     // open ranges that a later one outlives: they only hold a lane
  LaneSet lanes_;
};

// Start/end ranges of one process: the smallest free lane, no parent.
class ProcessLanes {
 public:
  uint32_t add(int64_t start, int64_t end, int64_t id = 0);
  void settle(int64_t id, int64_t end);

 private:
  ByEnd open_;
  LaneSet lanes_;
};

}  // namespace warplens::reader
