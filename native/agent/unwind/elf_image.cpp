// Reads ELF files without trust: whatever they say is checked against their size, and all bytes come through read_own().
#include "elf_image.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "own_memory.h"
#include "spool/system/memory.h"

namespace warplens::agent {
namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#else
constexpr uint16_t kMachine = EM_NONE;
#endif
constexpr size_t kMostHeaders = 512;
constexpr size_t kMostNotes = 4096;

}  // namespace

ElfImage::~ElfImage() {
  if (bytes_ != nullptr) {
    unmap_memory(bytes_, size_);
  }
}

bool ElfImage::open(const char *path, uint64_t device, uint64_t inode) {
  int fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    return false;
  }
  struct stat facts{};
  void *at = MAP_FAILED;
  // Overlay file systems show one device in maps and another here: the inode alone has to do where they differ.
  bool same = fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) && (inode == 0 || facts.st_ino == inode);
  static_cast<void>(device);
  if (same && facts.st_size > 0) {
    at = mmap(nullptr, static_cast<size_t>(facts.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
  }
  close(fd);
  if (at == MAP_FAILED) {
    return false;
  }
  bytes_ = static_cast<char *>(at);
  size_ = static_cast<size_t>(facts.st_size);
  madvise(bytes_, size_, MADV_DONTDUMP);
  return parse();
}

bool ElfImage::copy(uint64_t address, size_t size) {
  bytes_ = static_cast<char *>(map_memory(size));
  size_ = bytes_ != nullptr ? size : 0;
  return bytes_ != nullptr && read_subject(address, bytes_, size) == size && parse();
}

bool ElfImage::read_file(uint64_t offset, void *to, size_t size) const {
  return offset <= size_ && size <= size_ - offset &&
         read_own(reinterpret_cast<uint64_t>(bytes_) + offset, to, size) == size;
}

bool ElfImage::read(uint64_t address, void *to, size_t size) const {
  for (const Segment &segment : segments_) {
    if (address - segment.address < segment.size && size <= segment.size - (address - segment.address)) {
      return read_file(segment.offset + (address - segment.address), to, size);
    }
  }
  return false;
}

bool ElfImage::parse() {
  Elf64_Ehdr header;
  if (!read_file(0, &header, sizeof(header)) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_machine != kMachine || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return false;
  }
  std::vector<Elf64_Phdr> headers(std::min<size_t>(header.e_phnum, kMostHeaders));
  if (headers.empty() || !read_file(header.e_phoff, headers.data(), headers.size() * sizeof(Elf64_Phdr))) {
    return false;
  }
  for (const Elf64_Phdr &one : headers) {
    bool inside = one.p_offset <= size_ && one.p_filesz <= size_ - one.p_offset;
    if (!inside) {
      continue;
    }
    if (one.p_type == PT_LOAD) {
      segments_.push_back({one.p_vaddr, one.p_offset, one.p_filesz, (one.p_flags & PF_X) != 0});
    } else if (one.p_type == PT_GNU_EH_FRAME) {
      tables_ = one.p_vaddr;
      tables_size_ = one.p_filesz;
    } else if (one.p_type == PT_NOTE && build_id_.empty()) {
      parse_notes(one.p_offset, one.p_filesz, one.p_align);
    }
  }
  return !segments_.empty();
}

void ElfImage::parse_notes(uint64_t offset, uint64_t size, uint64_t alignment) {
  std::vector<char> notes(std::min<uint64_t>(size, kMostNotes));
  if (!read_file(offset, notes.data(), notes.size())) {
    return;
  }
  const size_t round = alignment == 8 ? 8 : 4;
  auto up = [&](size_t n) { return (n + round - 1) / round * round; };
  for (size_t at = 0; notes.size() - at >= sizeof(Elf64_Nhdr);) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof(note));
    size_t left = notes.size() - at - sizeof(note);
    size_t name = up(note.n_namesz);
    if (note.n_namesz > left || name > left || note.n_descsz > left - name) {
      return;
    }
    const char *text = notes.data() + at + sizeof(note);
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(text, "GNU", 4) == 0 &&
        note.n_descsz <= 64) {
      for (size_t i = 0; i < note.n_descsz; ++i) {
        auto byte = static_cast<unsigned char>(text[name + i]);
        build_id_ += "0123456789abcdef"[byte >> 4];
        build_id_ += "0123456789abcdef"[byte & 15];
      }
      return;
    }
    at += sizeof(note) + name + std::min(up(note.n_descsz), left - name);
  }
}

ElfImage::Symbol ElfImage::find(const char *name) const {
  Elf64_Ehdr header;
  if (!read_file(0, &header, sizeof(header)) || header.e_shentsize != sizeof(Elf64_Shdr)) {
    return {};
  }
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  if (!read_file(header.e_shoff, sections.data(), sections.size() * sizeof(Elf64_Shdr))) {
    return {};
  }
  for (uint32_t type : {SHT_DYNSYM, SHT_SYMTAB}) {
    for (const Elf64_Shdr &one : sections) {
      if (one.sh_type != type || one.sh_link >= sections.size() || one.sh_entsize != sizeof(Elf64_Sym)) {
        continue;
      }
      const Elf64_Shdr &strings = sections[one.sh_link];
      Symbol found =
          find_in(one.sh_offset, one.sh_size / sizeof(Elf64_Sym), strings.sh_offset, strings.sh_size, name);
      if (found.size != 0) {
        return found;
      }
    }
  }
  return {};
}

ElfImage::Symbol ElfImage::find_in(uint64_t symbols, uint64_t count, uint64_t strings, uint64_t strings_size,
                                   const char *name) const {
  const size_t length = std::strlen(name) + 1;
  std::vector<Elf64_Sym> some(1024);
  std::vector<char> texts(std::min<uint64_t>(strings_size, size_));
  if (!read_file(strings, texts.data(), texts.size())) {
    return {};
  }
  for (uint64_t i = 0; i < count;) {
    size_t n = std::min<uint64_t>(some.size(), count - i);
    if (!read_file(symbols + i * sizeof(Elf64_Sym), some.data(), n * sizeof(Elf64_Sym))) {
      return {};
    }
    for (size_t k = 0; k < n; ++k) {
      const Elf64_Sym &one = some[k];
      if (ELF64_ST_TYPE(one.st_info) == STT_FUNC && one.st_size != 0 && one.st_name < texts.size() &&
          length <= texts.size() - one.st_name && std::memcmp(&texts[one.st_name], name, length) == 0) {
        return {one.st_value, one.st_size};
      }
    }
    i += n;
  }
  return {};
}

}  // namespace warplens::agent
