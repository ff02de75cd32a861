// Finds libcupti and loads it.
// A libcupti newer than the driver is not loaded: it could not work with it.
#include "library.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace warplens::agent {
namespace {

constexpr const char *kNames[] = {"libcupti.so.14", "libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8",
                                  "libcupti.so"};

void *driver_symbol(const char *name) {
  void *handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle == nullptr) {
    return nullptr;
  }
  void *symbol = dlsym(handle, name);
  dlclose(handle);  // the program has it
  return symbol;
}

std::string folder_of(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == path.npos ? "" : path.substr(0, slash);
}

std::string_view name_of(std::string_view path) {
  size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

// What the process has loaded: copies of CUPTI, and folders of other CUDA libraries, which CUPTI lies in or beside.
struct Loaded {
  std::vector<std::string> cuptis;
  std::vector<std::string> folders;
};

int note_loaded(dl_phdr_info *info, size_t, void *into) {
  auto &loaded = *static_cast<Loaded *>(into);
  std::string_view path = info->dlpi_name != nullptr ? info->dlpi_name : "";
  std::string_view name = name_of(path);
  if (path.empty() || path[0] != '/' || path.find("/stubs/") != path.npos) {
    return 0;
  }
  if (name.starts_with("libcupti") && name.find(".so") != name.npos) {
    loaded.cuptis.emplace_back(path);
  } else if (name.starts_with("libcudart") || name.starts_with("libnvrtc") || name.starts_with("libcublas")) {
    loaded.folders.push_back(folder_of(std::string(path)));
  }
  return 0;
}

void add_matches(const std::string &pattern, std::vector<std::string> &paths) {
  glob_t found{};
  if (glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0) {
    std::vector<std::string> here(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    // Newest first; the name that says its version before the one that does not.
    std::sort(here.begin(), here.end(), [](const std::string &a, const std::string &b) {
      int first = cupti_major_of(a);
      int second = cupti_major_of(b);
      return first != second ? first > second : a > b;
    });
    paths.insert(paths.end(), here.begin(), here.end());
  }
  globfree(&found);
}

// The absolute paths in a variable that lists them.
std::vector<std::string> listed(const char *variable, const char *separators) {
  std::vector<std::string> paths;
  const char *value = secure_getenv(variable);
  for (std::string_view left = value != nullptr ? value : ""; !left.empty();) {
    size_t end = std::min(left.find_first_of(separators), left.size());
    if (end != 0 && left[0] == '/') {
      paths.emplace_back(left.substr(0, end));
    }
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return paths;
}

std::vector<std::string> candidates(const Loaded &loaded) {
  std::vector<std::string> paths;
  // As the loader does: it wins over every folder that is known here.
  for (const std::string &folder : listed("LD_LIBRARY_PATH", ":;")) {
    add_matches(folder + "/libcupti.so*", paths);
  }
  for (std::string &path : listed("WARPLENS_CUPTI_SEARCH", ":")) {
    paths.push_back(std::move(path));
  }
  for (const std::string &folder : loaded.folders) {
    add_matches(folder + "/libcupti.so*", paths);
    add_matches(folder + "/../../cuda_cupti/lib/libcupti.so*", paths);  // wheels of CUDA 11 and 12
    add_matches(folder + "/../extras/CUPTI/lib64/libcupti.so*", paths);
  }
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"}) {
    const char *home = secure_getenv(variable);
    if (home != nullptr && *home == '/') {
      for (const char *below : {"/extras/CUPTI/lib64", "/lib64", "/targets/*/lib"}) {
        add_matches(std::string(home) + below + "/libcupti.so*", paths);
      }
    }
  }
  paths.insert(paths.end(), std::begin(kNames), std::end(kNames));
  for (const char *below : {"/extras/CUPTI/lib64", "/lib64", "/targets/*/lib"}) {
    add_matches(std::string("/usr/local/cuda*") + below + "/libcupti.so*", paths);
  }
  return paths;
}

// Null: it has all we need; else the first function that it lacks.
const char *fill(void *handle, CuptiFunctions &call) {
#define WARPLENS_FIND(member, name, parameters) \
  call.member = reinterpret_cast<decltype(call.member)>(dlsym(handle, #name));
  WARPLENS_CUPTI_REQUIRED(WARPLENS_FIND)
  WARPLENS_CUPTI_OPTIONAL(WARPLENS_FIND)
  WARPLENS_CUPTI_SEVERAL(WARPLENS_FIND)
#undef WARPLENS_FIND
#define WARPLENS_CHECK(member, name, parameters) \
  if (call.member == nullptr) {                  \
    return #name;                                \
  }
  WARPLENS_CUPTI_REQUIRED(WARPLENS_CHECK)
#undef WARPLENS_CHECK
  return nullptr;
}

int major_of(uint32_t version) {
  return version >= kCupti130 ? static_cast<int>(version / 10000) : version > kCupti118 ? 12 : 11;
}

std::string path_of(const CuptiFunctions &call, const std::string &asked) {
  Dl_info info{};
  return dladdr(reinterpret_cast<void *>(call.get_version), &info) != 0 && info.dli_fname != nullptr
             ? info.dli_fname
             : asked;
}

class Search {
 public:
  Search(CuptiLibrary &library, const std::vector<std::string> &refused)
      : library_(library), refused_(refused) {}

  bool take(const std::string &path, int flags) {
    int newest = library_.driver / 1000;
    if (newest != 0 && cupti_major_of(path) > newest) {
      return refuse(path, "newer than the driver");
    }
    void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | flags);
    if (handle == nullptr) {
      return (flags & RTLD_NOLOAD) == 0 && path[0] == '/' && refuse(path, "cannot be loaded");
    }
    CuptiFunctions call = {};
    uint32_t version = 0;
    if (const char *missing = fill(handle, call)) {
      refuse(path, missing);
    } else if (call.get_version(&version) != kCuptiSuccess) {
      refuse(path, "does not say its version");
    } else if (version < kCupti118) {
      refuse(path, "older than CUDA 11.8");  // its records are shorter than what we read
    } else if (newest != 0 && major_of(version) > newest) {
      refuse(path, "newer than the driver");
    } else if (std::string taken = path_of(call, path);
               std::find(refused_.begin(), refused_.end(), taken) == refused_.end()) {
      library_.call = call;
      library_.version = version;
      library_.path = std::move(taken);
      return true;
    }
    return false;  // it stays loaded: it may have begun something
  }

 private:
  bool refuse(const std::string &path, const char *why) {
    if (library_.looked.size() < 1500) {
      library_.looked += (library_.looked.empty() ? "" : "; ") + path + ": " + why;
    }
    return false;
  }

  CuptiLibrary &library_;
  const std::vector<std::string> &refused_;
};

}  // namespace

int cupti_major_of(const std::string &path) {
  std::string_view name = name_of(path);
  size_t at = name.find(".so.");
  if (at == name.npos) {
    return 0;
  }
  int number = std::atoi(name.data() + at + 4);
  return number < 1000 ? number : 0;  // files are also called libcupti.so.2025.3.1
}

bool is_driver_loaded() {
  return driver_symbol("cuInit") != nullptr;
}

CudaResult (*find_device_count())(int *) {
  return reinterpret_cast<CudaResult (*)(int *)>(driver_symbol("cuDeviceGetCount"));
}

bool is_driver_started() {
  auto count = find_device_count();
  int devices = 0;
  return count != nullptr && count(&devices) != kCudaErrorNotInitialized;
}

bool load_cupti(CuptiLibrary &library, const std::vector<std::string> &refused) {
  if (auto version = reinterpret_cast<CudaResult (*)(int *)>(driver_symbol("cuDriverGetVersion"))) {
    if (version(&library.driver) != kCudaSuccess) {
      library.driver = 0;
    }
  }
  Search search(library, refused);
  const char *wanted = secure_getenv("WARPLENS_CUPTI");
  if (wanted != nullptr && *wanted != '\0') {
    return search.take(wanted, 0);
  }
  Loaded loaded;
  dl_iterate_phdr(note_loaded, &loaded);
  for (const std::string &path : loaded.cuptis) {
    if (search.take(path, RTLD_NOLOAD)) {
      return true;
    }
  }
  for (const char *name : kNames) {
    if (search.take(name, RTLD_NOLOAD)) {
      return true;
    }
  }
  for (const std::string &path : candidates(loaded)) {
    if (search.take(path, 0)) {
      return true;
    }
  }
  if (library.looked.empty()) {
    library.looked = "there is no libcupti on this machine, or not where libraries are looked for";
  }
  return false;
}

}  // namespace warplens::agent
