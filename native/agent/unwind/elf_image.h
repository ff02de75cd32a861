// An ELF file as unwinding needs it: its segments, where its unwind tables lie, its build-id, and a few of its symbols.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace warplens::agent {

class ElfImage {
 public:
  struct Segment {
    uint64_t address;  // p_vaddr
    uint64_t offset;   // in the file
    uint64_t size;     // in the file
    bool code;
  };
  struct Symbol {
    uint64_t address = 0;
    uint64_t size = 0;
  };

  ElfImage() = default;
  ElfImage(const ElfImage &) = delete;
  ElfImage &operator=(const ElfImage &) = delete;
  ~ElfImage();

  //! Maps the file, if it is the one with this device and inode (0: whichever it is), and an ELF file of this machine. Our mapping is
  //! our own: the program may unload its one at any time.
  bool open(const char *path, uint64_t device, uint64_t inode);
  //! The same of an image that lies in memory as it would in a file: the vDSO.
  bool copy(uint64_t address, size_t size);

  //! `size` bytes at a place as program headers name it; false where the file has no such bytes. It may have been cut short meanwhile.
  bool read(uint64_t address, void *to, size_t size) const;

  const std::vector<Segment> &segments() const { return segments_; }
  uint64_t tables() const { return tables_; }  // address of .eh_frame_hdr, 0 = none
  uint64_t tables_size() const { return tables_size_; }
  const std::string &build_id() const { return build_id_; }  // lower-case hexadecimal

  //! A function by its name; not found: its size is 0.
  Symbol find(const char *name) const;

 private:
  bool read_file(uint64_t offset, void *to, size_t size) const;
  bool parse();
  void parse_notes(uint64_t offset, uint64_t size, uint64_t alignment);
  Symbol find_in(uint64_t symbols, uint64_t count, uint64_t strings, uint64_t strings_size,
                 const char *name) const;

  char *bytes_ = nullptr;
  size_t size_ = 0;
  std::vector<Segment> segments_;
  uint64_t tables_ = 0;
  uint64_t tables_size_ = 0;
  std::string build_id_;
};

}  // namespace warplens::agent
