// Reads /proc and the job's rank variables, by system calls only.
#include "facts.h"

#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "spool/schemas/schema.h"
#include "spool/system/subject.h"

#ifndef WARPLENS_VERSION
#error "WARPLENS_VERSION comes from the build"
#endif

namespace warplens {
namespace {

constexpr size_t kLongestCommand = 16384;

std::string read_file(const char *path, size_t most) {
  std::string text;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return text;
  }
  char buffer[4096];
  ssize_t n = 0;
  while (text.size() < most && ((n = read(fd, buffer, sizeof(buffer))) > 0 || (n < 0 && errno == EINTR))) {
    text.append(buffer, n > 0 ? static_cast<size_t>(n) : 0);
  }
  close(fd);
  if (text.size() > most) {
    text.resize(most);
  }
  return text;
}

// A field of /proc/…/stat; the name in field 2 may hold spaces and brackets, so count from the last ')'.
std::string stat_field(int wanted) {
  std::string stat = read_file(subject_path("stat").c_str(), 4096);
  size_t at = stat.rfind(')');
  for (int field = 2; field < wanted && at != std::string::npos; ++field) {
    at = stat.find(' ', at + 1);
  }
  if (at == std::string::npos) {
    return "0";
  }
  size_t end = stat.find(' ', at + 1);
  return stat.substr(at + 1, end - at - 1);
}

std::string start_ticks() {
  return stat_field(22);
}

std::string host_name() {
  utsname names{};
  return uname(&names) == 0 && names.nodename[0] != '\0' ? names.nodename : "localhost";
}

const char *variable(const char *name) {
  const char *value = secure_getenv(name);
  return value != nullptr && *value != '\0' && std::strspn(value, "0123456789") == std::strlen(value)
             ? value
             : nullptr;
}

// torchelastic sets RANK under Slurm too, where SLURM_PROCID is only the node's: ask it first.
const char *rank(bool local) {
  if (variable("LOCAL_RANK") != nullptr && variable("RANK") != nullptr) {
    return variable(local ? "LOCAL_RANK" : "RANK");
  }
  static constexpr const char *kGlobal[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID",
                                            "RANK"};
  static constexpr const char *kLocal[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID",
                                           "LOCAL_RANK"};
  if (local) {
    for (const char *name : kLocal) {
      if (const char *value = variable(name)) {
        return value;
      }
    }
    return nullptr;
  }
  for (const char *name : kGlobal) {
    if (const char *value = variable(name)) {
      return value;
    }
  }
  return nullptr;
}

void append(std::string &out, const char *key, std::string_view text) {
  out += ", \"";
  out += key;
  out += "\": ";
  append_json_string(out, text);
}

void append(std::string &out, const char *key, uint64_t number) {
  out += ", \"";
  out += key;
  out += "\": ";
  out += std::to_string(number);
}

}  // namespace

std::string process_json(uint64_t start_ns, uint64_t fork_ns) {
  std::string out = "\"process\": {\"pid\": " + std::to_string(subject());
  out += ", \"ppid\": " + stat_field(4);
  append(out, "host", host_name());
  std::string boot = read_file("/proc/sys/kernel/random/boot_id", 64);
  append(out, "boot_id", std::string_view(boot).substr(0, boot.find('\n')));
  out += ", \"start_ticks\": " + start_ticks();
  append(out, "start_ns", start_ns);
  append(out, "fork_ns", fork_ns);
  char path[4096];
  ssize_t n = readlink(subject_path("exe").c_str(), path, sizeof(path));
  append(out, "executable", std::string_view(path, n > 0 ? static_cast<size_t>(n) : 0));
  std::string command = read_file(subject_path("cmdline").c_str(), kLongestCommand);
  out += ", \"command\": [";
  for (size_t at = 0; at < command.size();) {
    size_t end = std::min(command.find('\0', at), command.size());
    out += at == 0 ? "" : ", ";
    append_json_string(out, std::string_view(command).substr(at, end - at));
    at = end + 1;
  }
  out += "]";
  // Of another process the register knows the ranks.
  if (const char *value = is_outside() ? nullptr : rank(false)) {
    append(out, "rank", std::string_view(value));
  }
  if (is_outside()) {
    out += ", \"outside\": true";
  }
  if (const char *value = is_outside() ? nullptr : rank(true)) {
    append(out, "local_rank", std::string_view(value));
  }
  append(out, "agent_version", std::string_view(WARPLENS_VERSION));
  out += "}";
  return out;
}

std::string process_name() {
  std::string name = host_name();
  for (char &c : name) {
    if (c == '/') {
      c = '_';
    }
  }
  return name + "-" + std::to_string(subject()) + "-" + start_ticks();
}

}  // namespace warplens
