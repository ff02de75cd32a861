// Keeps the list of mapped files with code.
// It starts with /proc/self/maps, then follows the kernel's mapping records; a new file replaces an old.
#include "modules.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "spool/system/subject.h"
#include "warplens/cpu_records.h"

namespace warplens::agent {
namespace {

constexpr uint64_t kBetweenReads = 20'000'000;  // ns; longer and longer while they bring nothing
constexpr uint64_t kMostBetweenReads = 1'000'000'000;
constexpr std::string_view kAnonymous = "[anonymous]";  // made at run time
constexpr std::string_view kDeleted = " (deleted)";

alignas(Modules) char g_storage[sizeof(Modules)];
Modules *g_modules = new (g_storage) Modules;

bool before(uint64_t address, const Mapping &mapping) {
  return address < mapping.begin;
}

// The address that program headers give to the code mapped at `begin` from `offset` of the file.
bool find_bias(const ElfImage &image, uint64_t begin, uint64_t end, uint64_t offset, uint64_t *bias) {
  for (const ElfImage::Segment &segment : image.segments()) {
    uint64_t first = segment.offset & ~uint64_t{4095};
    if (segment.code && offset >= first && offset < segment.offset + segment.size) {
      *bias = begin - (segment.address - segment.offset + offset);
      return end > begin;
    }
  }
  return false;
}

std::string read_all(const char *path) {
  std::string text;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return text;
  }
  size_t used = 0;
  ssize_t n = 0;
  do {
    used += static_cast<size_t>(n);
    text.resize(used + 32768);
  } while ((n = read(fd, text.data() + used, text.size() - used)) > 0);
  close(fd);
  text.resize(used);
  return text;
}

}  // namespace

Modules &modules() {
  return *g_modules;
}

void renew_modules() {
  g_modules = new (g_storage) Modules;  // what was there is left to nobody
}

const ElfImage *Module::image() {
  std::call_once(once_, [this] {
    auto image = std::make_unique<ElfImage>();
    bool good = vdso_ != 0 ? image->copy(vdso_, vdso_size_)
                           : path.front() == '/' && image->open(path.c_str(), device, inode);
    if (good) {
      image_ = std::move(image);
    }
  });
  return image_.get();
}

const Mapping *MappingView::find(uint64_t address) const {
  auto after = std::upper_bound(mappings.begin(), mappings.end(), address, before);
  if (after == mappings.begin() || address >= (after - 1)->end) {
    return nullptr;
  }
  return &*(after - 1);
}

Module *Modules::module_of(std::string_view path, uint64_t device, uint64_t inode) {
  if (path.ends_with(kDeleted)) {
    path.remove_suffix(kDeleted.size());
  }
  for (Module &known : modules_) {
    if (known.inode == inode && known.device == device && known.path == path) {
      return &known;
    }
  }
  return &modules_.emplace_back(std::string(path), device, inode, static_cast<uint32_t>(modules_.size() + 1));
}

// What it covers of others is gone.
void Modules::put(const Mapping &mapping) {
  auto at = std::lower_bound(mappings_.begin(), mappings_.end(), mapping.begin,
                             [](const Mapping &one, uint64_t begin) { return one.end <= begin; });
  if (at != mappings_.end() && at->begin == mapping.begin && at->end == mapping.end &&
      at->module == mapping.module && at->bias == mapping.bias) {
    return;
  }
  std::vector<Mapping> rest;
  auto last = at;
  for (; last != mappings_.end() && last->begin < mapping.end; ++last) {
    if (last->begin < mapping.begin) {
      rest.push_back({last->begin, mapping.begin, last->bias, last->module});
    }
    if (last->end > mapping.end) {
      rest.push_back({mapping.end, last->end, last->bias, last->module});
    }
  }
  rest.push_back(mapping);
  std::sort(rest.begin(), rest.end(), [](const Mapping &a, const Mapping &b) { return a.begin < b.begin; });
  at = mappings_.erase(at, last);
  mappings_.insert(at, rest.begin(), rest.end());
  ++version_;
}

void Modules::add(uint64_t begin, uint64_t end, uint64_t offset, uint64_t device, uint64_t inode,
                  std::string_view path) {
  if (path.empty() || path.starts_with("//") || (path.front() != '/' && path != "[vdso]")) {
    path = kAnonymous;
  }
  std::lock_guard lock(mutex_);
  Module *module = module_of(path, device, inode);
  if (path == "[vdso]") {
    module->vdso_ = begin;
    module->vdso_size_ = end - begin;
  }
  uint64_t bias = 0;
  const ElfImage *image = module->image();
  if (image == nullptr || !find_bias(*image, begin, end, offset, &bias)) {
    bias = path == kAnonymous ? 0 : begin - offset;
  }
  put({begin, end, bias, module});
}

bool Modules::refresh(uint64_t now) {
  {
    std::lock_guard lock(mutex_);
    if (read_ != 0 && now - read_ < between_) {
      return false;
    }
    read_ = now;
  }
  bool news = read_maps();
  std::lock_guard lock(mutex_);
  between_ = news ? kBetweenReads : std::min(std::max(2 * between_, kBetweenReads), kMostBetweenReads);
  return news;
}

bool Modules::read_maps() {
  uint64_t before = 0;
  {
    std::lock_guard lock(mutex_);
    before = version_;
  }
  std::string maps = read_all(subject_path("maps").c_str());
  for (size_t at = 0; at < maps.size();) {
    size_t end = std::min(maps.find('\n', at), maps.size());
    maps[end < maps.size() ? end : maps.size() - 1] = '\0';
    unsigned long first = 0, last = 0, offset = 0, inode = 0;
    unsigned major = 0, minor = 0;
    char rights[8] = "";
    int path = 0;
    if (std::sscanf(&maps[at], "%lx-%lx %7s %lx %x:%x %lu %n", &first, &last, rights, &offset, &major, &minor,
                    &inode, &path) >= 7 &&
        rights[2] == 'x' && path > 0) {
      add(first, last, offset, makedev(major, minor), inode, &maps[at + static_cast<size_t>(path)]);
    }
    at = end + 1;
  }
  std::lock_guard lock(mutex_);
  return version_ != before;
}

uint64_t Modules::version() {
  std::lock_guard lock(mutex_);
  return version_;
}

void Modules::view(MappingView *view) {
  std::lock_guard lock(mutex_);
  if (view->version != version_) {
    view->mappings = mappings_;
    view->version = version_;
  }
}

Mapping Modules::find(uint64_t address) {
  std::lock_guard lock(mutex_);
  auto after = std::upper_bound(mappings_.begin(), mappings_.end(), address, before);
  return after == mappings_.begin() || address >= (after - 1)->end ? Mapping{} : *(after - 1);
}

void Modules::write(ProcessLog &log, const Mapping &mapping) {
  Module &module = *mapping.module;
  const ElfImage *image = module.image();
  std::lock_guard lock(mutex_);
  if (module.written_ == log.generation()) {
    return;
  }
  CpuModuleRecord record{};
  record.head = {RecordType::cpu_module, 0, 0, log.intern(module.path)};
  record.time = now_ns(log.clock());
  record.begin = mapping.begin;
  record.end = mapping.end;
  record.bias = mapping.bias;
  record.module = module.number;
  record.build_id = image != nullptr && !image->build_id().empty() ? log.intern(image->build_id()) : 0;
  if (WideLog::Writer(log.wide()).append(record, record.time)) {
    module.written_ = log.generation();
  }
  if (module.path == kAnonymous) {
    write_dumps(log);
  }
}

// Files that a compiler at run time maps to say that they describe its code. No code is in them, so no stack would name them.
void Modules::write_dumps(ProcessLog &log) {
  for (Module &module : modules_) {
    if (module.written_ != log.generation() && module.path.ends_with(".dump") &&
        module.path.find("/jit-") != std::string::npos) {
      CpuModuleRecord record{};
      record.head = {RecordType::cpu_module, 0, 0, log.intern(module.path)};
      record.time = now_ns(log.clock());
      record.module = module.number;
      if (WideLog::Writer(log.wide()).append(record, record.time)) {
        module.written_ = log.generation();
      }
    }
  }
}

}  // namespace warplens::agent
