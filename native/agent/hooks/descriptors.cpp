// Finds the kind and name of a descriptor.
#include "descriptors.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "agent/source.h"
#include "known_texts.h"

namespace warplens::agent {
namespace {

constexpr int kMost = 4096;  // descriptors above are looked at each time
constexpr uint32_t kPath = 1u << 31;
std::atomic<uint32_t> g_texts[kMost];  // with kPath; 0 = not known

// A text that is put together; what does not fit is cut.
class Line {
 public:
  void add(std::string_view text) {
    size_t size = std::min(text.size(), sizeof(text_) - size_);
    std::memcpy(text_ + size_, text.data(), size);
    size_ += size;
  }
  void add(unsigned number) {
    char digits[10];
    size_t count = 0;
    do {
      digits[count++] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    while (count > 0) {
      add(std::string_view(&digits[--count], 1));
    }
  }
  std::string_view text() const { return {text_, size_}; }

 private:
  char text_[256];
  size_t size_ = 0;
};

void add_address(Line &line, const void *address, size_t size) {
  char text[INET6_ADDRSTRLEN] = "";
  auto family = static_cast<const sockaddr *>(address)->sa_family;
  if (family == AF_INET && size >= sizeof(sockaddr_in)) {
    auto *in = static_cast<const sockaddr_in *>(address);
    line.add(inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text)));
    line.add(":");
    line.add(ntohs(in->sin_port));
  } else if (family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
    auto *in = static_cast<const sockaddr_in6 *>(address);
    line.add("[");
    line.add(inet_ntop(AF_INET6, &in->sin6_addr, text, sizeof(text)));
    line.add("]:");
    line.add(ntohs(in->sin6_port));
  } else if (family == AF_UNIX && size > offsetof(sockaddr_un, sun_path)) {
    auto *in = static_cast<const sockaddr_un *>(address);
    size_t room = size - offsetof(sockaddr_un, sun_path);
    bool is_abstract = in->sun_path[0] == '\0';
    line.add(is_abstract ? "@" : "");
    const char *begin = in->sun_path + is_abstract;
    line.add({begin, strnlen(begin, std::min(room, sizeof(in->sun_path)) - is_abstract)});
  }
}

bool is_named(const sockaddr_storage &address, socklen_t size) {
  switch (address.ss_family) {
    case AF_UNIX:
      return size > offsetof(sockaddr_un, sun_path);
    case AF_INET:
      return reinterpret_cast<const sockaddr_in &>(address).sin_port != 0;
    case AF_INET6:
      return reinterpret_cast<const sockaddr_in6 &>(address).sin6_port != 0;
    default:
      return false;
  }
}

// Its peer; of one that listens or has none, its own address. `lasts` is false where it may get a peer yet.
bool describe_socket(Line &line, int fd, bool &lasts) {
  int kind = 0;
  socklen_t size = sizeof(kind);
  if (syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &kind, &size) != 0) {
    return false;
  }
  sockaddr_storage address{};
  size = sizeof(address);
  lasts = syscall(SYS_getpeername, fd, &address, &size) == 0;
  bool named = lasts && is_named(address, size);
  if (!named) {
    size = sizeof(address);
    named = syscall(SYS_getsockname, fd, &address, &size) == 0 && is_named(address, size);
  }
  size = std::min<socklen_t>(size, sizeof(address));
  bool is_unix = address.ss_family == AF_UNIX;
  line.add(is_unix ? "unix" : "socket");
  if (named) {
    line.add(" ");
    add_address(line, &address, size);
  }
  if (address.ss_family == AF_INET || address.ss_family == AF_INET6) {
    line.add(kind == SOCK_STREAM ? " (TCP)" : kind == SOCK_DGRAM ? " (UDP)" : " (raw)");
  }
  return true;
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

// Of what the kernel calls a descriptor: "/path", "pipe:[123]", "socket:[123]", "anon_inode:[eventpoll]".
uint32_t number_of(int fd, std::string_view link, bool &lasts) {
  constexpr std::string_view kNameless = "anon_inode:";
  if (starts_with(link, "socket:")) {
    Line line;
    return describe_socket(line, fd, lasts) ? any_text_number(line.text()) : text_number("socket");
  }
  if (starts_with(link, "pipe:")) {
    return text_number("pipe");
  }
  if (starts_with(link, kNameless)) {
    link.remove_prefix(kNameless.size());
    if (starts_with(link, "[") && link.back() == ']') {
      link = link.substr(1, link.size() - 2);
    }
    return text_number(link == "eventpoll" ? "epoll" : link);
  }
  uint32_t number = any_text_number(link);
  return number != 0 && starts_with(link, "/") ? number | kPath : number;
}

uint32_t look_at(int fd, bool &lasts) {
  Line path;
  path.add("/proc/self/fd/");
  path.add(static_cast<unsigned>(fd));
  path.add(std::string_view("", 1));
  char link[1024];
  ssize_t size = syscall(SYS_readlinkat, -100, path.text().data(), link, sizeof(link));
  return size > 0 ? number_of(fd, {link, static_cast<size_t>(size)}, lasts) : 0;
}

}  // namespace

DescriptorText descriptor_text(int fd, bool look) {
  bool is_kept = fd >= 0 && fd < kMost;
  uint32_t text = is_kept ? g_texts[fd].load(std::memory_order_relaxed) : 0;
  if (text == 0 && fd >= 0 && look && !t_busy) {
    int saved = errno;
    bool lasts = true;
    text = look_at(fd, lasts);
    errno = saved;
    if (is_kept && lasts) {
      g_texts[fd].store(text, std::memory_order_relaxed);
    }
  }
  return {text & ~kPath, (text & kPath) != 0};
}

void forget_descriptor(int fd) {
  // Mostly it is 0 already, on a page that nobody has touched.
  if (fd >= 0 && fd < kMost && g_texts[fd].load(std::memory_order_relaxed) != 0) {
    g_texts[fd].store(0, std::memory_order_relaxed);
  }
}

uint32_t address_text(const void *address, size_t size) {
  if (size < sizeof(sa_family_t)) {
    return 0;
  }
  Line line;
  line.add(static_cast<const sockaddr *>(address)->sa_family == AF_UNIX ? "unix " : "socket ");
  size_t before = line.text().size();
  add_address(line, address, size);
  return line.text().size() == before ? 0 : any_text_number(line.text());
}

}  // namespace warplens::agent
