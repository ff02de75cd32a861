// Which file systems promise space: by what statfs says of them, and what overlays pass on. Those are not here, so the calls are ours.
#include "spool/system/space.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstdlib>

#include "tests/check.h"

using namespace warplens;

namespace {

uint32_t g_magic = 0;
bool g_collapses = false;  // ext4, XFS
bool g_zeroes = false;     // those, Btrfs, ZFS

}  // namespace

extern "C" int fstatfs(int, struct statfs *status) noexcept {
  *status = {};
  status->f_type = g_magic;
  return 0;
}

extern "C" int fallocate(int, int mode, off_t, off_t) {
  if ((mode & FALLOC_FL_COLLAPSE_RANGE) != 0) {
    errno = g_collapses ? EINVAL : EOPNOTSUPP;  // an empty file has nothing to take away
    return -1;
  }
  if ((mode & FALLOC_FL_ZERO_RANGE) != 0 && !g_zeroes) {
    errno = EOPNOTSUPP;
    return -1;
  }
  return 0;
}

namespace {

bool promises(uint32_t magic) {
  g_magic = magic;
  errno = 7;
  bool result = can_reserve(0);
  CHECK(errno == 7);
  return result;
}

void test_file_systems() {
  CHECK(promises(0xef53));       // ext2 to 4
  CHECK(promises(0x58465342));   // XFS
  CHECK(promises(0x01021994));   // tmpfs
  CHECK(promises(0x858458f6));   // ramfs
  CHECK(!promises(0x2fc12fc1));  // ZFS
  CHECK(!promises(0x9123683e));  // Btrfs
  CHECK(!promises(0x6969));      // NFS
  CHECK(!promises(0x65735546));  // FUSE
  CHECK(!promises(1));
}

void test_overlays() {
  constexpr uint32_t kOverlay = 0x794c7630;
  g_collapses = g_zeroes = true;  // over ext4 and XFS
  CHECK(promises(kOverlay));
  g_collapses = false;  // over Btrfs and ZFS
  CHECK(!promises(kOverlay));
  g_zeroes = false;  // over tmpfs
  CHECK(promises(kOverlay));
}

}  // namespace

int main() {
  unsetenv("WARPLENS_SPOOL_SPACE");
  test_file_systems();
  test_overlays();
  std::printf("space: %d checks, %d failed\n", g_checks, g_failures);
  return g_failures == 0 ? 0 : 1;
}
