// Reserves space on file systems.
#include "space.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace warplens {
namespace {

// What statfs calls them. Not Btrfs and the like: they write changed pages elsewhere, and need new space each time.
constexpr uint32_t kExt = 0xef53;
constexpr uint32_t kXfs = 0x58465342;
constexpr uint32_t kTmpfs = 0x01021994;
constexpr uint32_t kRamfs = 0x858458f6;
constexpr uint32_t kOverlay = 0x794c7630;

// An overlay passes on what its upper file system can do. Those that promise space take pieces out of files (ext4, XFS) or can do
// neither (tmpfs, ext4 with old files); those that write elsewhere (Btrfs, ZFS) can only zero.
bool overlay_can_reserve(int fd) {
  int saved = errno;
  const auto can = [fd](int mode) { return fallocate(fd, mode, 0, 4096) == 0 || errno != EOPNOTSUPP; };
  bool result = can(FALLOC_FL_COLLAPSE_RANGE) || !can(FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE);
  errno = saved;
  return result;
}

int write_zeros(int fd, uint64_t offset, size_t size) {
  static const char zeros[65536] = {};
  while (size > 0) {
    ssize_t n = pwrite(fd, zeros, std::min(size, sizeof(zeros)), static_cast<off_t>(offset));
    if (n < 0) {
      if (errno == EINTR) {
        continue;
      }
      return errno;
    }
    offset += static_cast<uint64_t>(n);
    size -= static_cast<size_t>(n);
  }
  return 0;
}

}  // namespace

bool over_file_limit(uint64_t size) {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur;
}

bool can_reserve(int fd) {
  const char *wanted = secure_getenv("WARPLENS_SPOOL_SPACE");
  if (wanted != nullptr &&
      (wanted == std::string_view("reserved") || wanted == std::string_view("buffered"))) {
    return *wanted == 'r';
  }
  struct statfs status{};
  if (fstatfs(fd, &status) != 0) {
    return false;
  }
  switch (static_cast<uint32_t>(status.f_type)) {
    case kExt:
    case kXfs:
    case kTmpfs:
    case kRamfs:
      return true;
    case kOverlay:
      return overlay_can_reserve(fd);
    default:
      return false;
  }
}

int reserve(int fd, uint64_t offset, size_t size) {
  if (over_file_limit(offset + size)) {
    return EFBIG;
  }
  int result;
  do {
    result = fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(size));
  } while (result != 0 && errno == EINTR);
  if (result == 0) {
    return 0;
  }
  return errno == EOPNOTSUPP || errno == ENOSYS ? write_zeros(fd, offset, size) : errno;
}

int extend(int fd, uint64_t size) {
  if (over_file_limit(size)) {
    return EFBIG;
  }
  int result;
  do {
    result = ftruncate(fd, static_cast<off_t>(size));
  } while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : errno;
}

}  // namespace warplens
