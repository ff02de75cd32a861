// Lists the libraries that handed their NVTX calls to the agent.
// Each library built with NVTX's headers has its own function table and registers it once.
#include "attached.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <string_view>

#include "spool/system/busy.h"
#include "spool/system/memory.h"

namespace warplens::agent {
namespace {

struct Library {
  uintptr_t base;
  uint32_t size;
  char path[4096];
};

std::mutex g_mutex;
BlockArray<Library> g_libraries;
uint32_t g_count = 0;

}  // namespace

void note_attached(const void *address) {
  Dl_info info{};
  link_map *map = nullptr;
  if (dladdr1(address, &info, reinterpret_cast<void **>(&map), RTLD_DL_LINKMAP) == 0) {
    return;
  }
  auto base = reinterpret_cast<uintptr_t>(info.dli_fbase);
  Busy busy;
  if (!busy) {
    return;
  }
  std::lock_guard lock(g_mutex);
  for (uint32_t i = 0; i < g_count; ++i) {
    if (g_libraries.at(i)->base == base) {
      return;
    }
  }
  Library *library = g_libraries.make(g_count);
  if (library == nullptr) {
    return;
  }
  library->base = base;
  if (map != nullptr && map->l_name != nullptr && map->l_name[0] != '\0') {
    library->size = static_cast<uint32_t>(std::min(std::strlen(map->l_name), sizeof(library->path)));
    std::memcpy(library->path, map->l_name, library->size);
  } else {  // the program itself
    ssize_t n = readlink("/proc/self/exe", library->path, sizeof(library->path));
    library->size = static_cast<uint32_t>(std::max<ssize_t>(n, 0));
  }
  ++g_count;
}

void renew_attached() {
  new (&g_mutex) std::mutex;
}

uint64_t list_attached(char *paths, uint64_t size) {
  uint64_t need = 0;
  auto put = [&](std::string_view text) {
    if (need + 1 < size) {
      std::memcpy(paths + need, text.data(), std::min<uint64_t>(text.size(), size - 1 - need));
    }
    need += text.size();
  };
  Busy busy;
  if (busy) {
    std::lock_guard lock(g_mutex);
    for (uint32_t i = 0; i < g_count; ++i) {
      const Library &library = *g_libraries.at(i);
      put({library.path, library.size});
      put("\n");
    }
  }
  if (size != 0) {
    paths[std::min(need, size - 1)] = '\0';
  }
  return need;
}

}  // namespace warplens::agent
