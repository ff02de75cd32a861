// What the functions of `warplens.spool.desk` share: the events of one process, and what makes rows of them.
#pragma once

#include <memory>

#include "reader/spool/blobs.h"
#include "reader/spool/events.h"
#include "reader/spool/slice.h"

namespace warplens::desk {

struct Timeline {
  explicit Timeline(const Layout &layout) : events(layout) {}
  Events events;
  std::unique_ptr<Slicer> slicer;
  BlobReader blobs;
};

}  // namespace warplens::desk
