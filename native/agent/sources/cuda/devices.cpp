// Writes a record for each GPU.
// One per recording; two if CUPTI described the GPU before the driver could be asked.
#include "devices.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

namespace warplens::agent {
namespace {

template <typename Function>
void find(void *library, const char *name, Function &function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

void CudaDevices::begin() {
  for (Known &known : known_) {
    known.described = known.written = known.visible = false;
  }
}

void CudaDevices::find_driver() {
  if (void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD)) {
    find(library, "cuDeviceGetCount", driver_.device_get_count);
    find(library, "cuDeviceGet", driver_.device_get);
    find(library, "cuDeviceGetAttribute", driver_.device_get_attribute);
    dlclose(library);  // the program has it, too
  }
}

CudaDevices::Places CudaDevices::ask_driver() const {
  Places found{};
  int count = 0;
  if (driver_.device_get_count == nullptr || driver_.device_get == nullptr ||
      driver_.device_get_attribute == nullptr || driver_.device_get_count(&count) != kCudaSuccess) {
    return found;
  }
  found.count = std::min(static_cast<uint32_t>(std::max(count, 0)), kDevices);
  for (uint32_t i = 0; i < found.count; ++i) {
    CudaDevice device = 0;
    Places::Place &place = found.places[i];
    int values[4] = {};
    const int which[4] = {kCudaDevicePciDomain, kCudaDevicePciBus, kCudaDevicePciDevice,
                          kCudaDeviceMemoryClock};
    place.known = driver_.device_get(&device, static_cast<int>(i)) == kCudaSuccess;
    for (int k = 0; k < 4 && place.known; ++k) {
      // The clock is not asked for in newer drivers; the place always is.
      place.known = driver_.device_get_attribute(&values[k], which[k], device) == kCudaSuccess || k == 3;
    }
    place.domain = static_cast<uint32_t>(values[0]);
    place.bus = static_cast<uint32_t>(values[1]);
    place.device = static_cast<uint32_t>(values[2]);
    place.memory_clock = static_cast<uint32_t>(values[3]);
  }
  return found;
}

void CudaDevices::place(WideLog::Writer &writer, const Places &places) {
  if (places.count == 0 || asked_.exchange(true, std::memory_order_relaxed)) {
    return;
  }
  for (uint32_t i = 0; i < places.count; ++i) {
    const Places::Place &place = places.places[i];
    Known &known = known_[i];
    known.placed = place.known;
    if (known.placed) {
      known.record.pci_domain = place.domain;
      known.record.pci_bus = place.bus;
      known.record.pci_device = place.device;
      known.record.memory_clock = place.memory_clock;
      if (known.described) {
        write(writer, known);
      }
    }
  }
}

void CudaDevices::write(WideLog::Writer &writer, const CuptiDeviceActivity &device, uint32_t name) {
  if (device.device >= kDevices) {
    return;
  }
  // GPUs that are hidden from the program are described too, perhaps by a number that one has which is not.
  Known &known = known_[device.device];
  if (known.written && (known.visible || device.visible == 0)) {
    return;
  }
  known.visible = device.visible != 0;
  CudaDeviceRecord &record = known.record;
  record.head = {RecordType::cuda_device, 0, 0, name};
  record.device = device.device;
  record.major = device.major;
  record.minor = device.minor;
  record.multiprocessors = device.multiprocessors;
  record.memory = device.memory;
  record.memory_bandwidth = device.memory_bandwidth;
  record.clock = device.clock;
  record.l2_size = device.l2_size;
  std::memcpy(&record.uuid_low, device.uuid.bytes, sizeof(uint64_t));
  std::memcpy(&record.uuid_high, device.uuid.bytes + sizeof(uint64_t), sizeof(uint64_t));
  known.described = true;
  write(writer, known);
}

void CudaDevices::write(WideLog::Writer &writer, Known &known) {
  known.written = writer.append(known.record, 0);
}

}  // namespace warplens::agent
