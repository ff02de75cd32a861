// Describes the GPUs: from CUPTI, or from the driver if CUPTI does not.
#pragma once

#include <atomic>

#include "drivers/cupti.h"
#include "spool/process_log.h"
#include "warplens/cuda_records.h"

namespace warplens::agent {

class CudaDevices {
 public:
  //! A recording begins: it knows none of them.
  void begin();

  //! Looks the driver's functions up, with no lock of ours held. Not in a callback: a thread that has the loader's lock may wait for
  //! CUPTI.
  void find_driver();

  static constexpr uint32_t kDevices = 64;
  //! What the driver says: where each GPU is, and its memory's clock.
  struct Places {
    struct Place {
      bool known;
      uint32_t domain, bus, device, memory_clock;
    };
    uint32_t count;  // 0: it could not be asked
    Place places[kDevices];
  };

  //! Asks the driver, which can be once the program has made a context. Its functions are traced: CUPTI may be waiting for a buffer
  //! to be taken, so no lock of ours may be held.
  Places ask_driver() const;

  //! Whether it is worth asking.
  bool knows_places() const { return asked_.load(std::memory_order_relaxed); }

  //! Takes what the driver said. Those that were written before are written again, complete.
  void place(WideLog::Writer &writer, const Places &places);

  //! CUPTI describes one, perhaps again.
  void write(WideLog::Writer &writer, const CuptiDeviceActivity &device, uint32_t name);

 private:
  struct Known {
    CudaDeviceRecord record;
    bool described;  // by CUPTI
    bool placed;     // by the driver
    bool written;
    bool visible;  // to the program, as it was written
  };
  void write(WideLog::Writer &writer, Known &known);

  CudaFunctions driver_ = {};
  std::atomic<bool> asked_{false};
  Known known_[kDevices] = {};
};

}  // namespace warplens::agent
