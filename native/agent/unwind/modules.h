// Keeps the list of mapped files with code.
// It also has the unwind tables of each.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "elf_image.h"
#include "spool/process_log.h"

namespace warplens::agent {

class Module {
 public:
  Module(std::string path, uint64_t device, uint64_t inode, uint32_t number)
      : number(number), path(std::move(path)), device(device), inode(inode) {}

  //! [MT] The file; null where it is not there any more, or no ELF file. Opened at the first call.
  const ElfImage *image();

  const uint32_t number;  // from 1
  const std::string path;
  const uint64_t device, inode;

 private:
  friend class Modules;
  std::once_flag once_;
  std::unique_ptr<ElfImage> image_;
  uint64_t vdso_ = 0;  // where it lies in memory, if it is that
  uint64_t vdso_size_ = 0;
  uint32_t written_ = 0;  // the recording that knows of it
};

// Addresses from `begin` to `end` hold code of a file.
struct Mapping {
  uint64_t begin;
  uint64_t end;
  uint64_t bias;  // address - bias = what its program headers call it
  Module *module;
};

// A copy of the mappings that one thread works with: no lock per frame.
struct MappingView {
  uint64_t version = 0;
  std::vector<Mapping> mappings;  // by address

  //! What lies at `address`; null = nothing that is known.
  const Mapping *find(uint64_t address) const;
};

class Modules {
 public:
  //! [MT] Reads /proc/self/maps anew, unless that was done a moment ago. False then, or when nothing new was found.
  bool refresh(uint64_t now);

  //! [MT] Code of a file was mapped: what was in its place is gone.
  void add(uint64_t begin, uint64_t end, uint64_t offset, uint64_t device, uint64_t inode,
           std::string_view path);

  //! [MT] Changes with them, and is never 0.
  uint64_t version();

  //! [MT] Brings `view` up to date.
  void view(MappingView *view);

  //! [MT] What lies at `address`; its module is null where that is nothing.
  Mapping find(uint64_t address);

  //! [MT] Writes a CpuModuleRecord, where this recording has none yet. The caller holds Busy.
  void write(ProcessLog &log, const Mapping &mapping);

 private:
  Module *module_of(std::string_view path, uint64_t device, uint64_t inode);
  void put(const Mapping &mapping);
  bool read_maps();
  void write_dumps(ProcessLog &log);

  std::mutex mutex_;
  std::deque<Module> modules_;
  std::vector<Mapping> mappings_;
  uint64_t version_ = 1;
  uint64_t read_ = 0;     // when maps were read last
  uint64_t between_ = 0;  // ns until they may be read again
};

//! The process's.
Modules &modules();

//! [FORK] In a child: another thread may have been changing them.
void renew_modules();

}  // namespace warplens::agent
