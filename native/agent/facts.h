// Collects the facts about the process for its spool: never its environment.
#pragma once

#include <cstdint>
#include <string>

namespace warplens {

//! `"process": {…}` as JSON; `fork_ns` is 0 unless the process is a fork child.
std::string process_json(uint64_t start_ns, uint64_t fork_ns);

//! `<host>-<pid>-<start>`: the name of this process's spool, without the suffix.
std::string process_name();

}  // namespace warplens
