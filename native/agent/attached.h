// Lists the libraries that handed their NVTX calls to the agent.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warplens::agent {

//! [MT] Remembers the library that holds `address`, once.
void note_attached(const void *address);

//! [MT] See warplens_attached.
uint64_t list_attached(char *paths, uint64_t size);

//! [FORK] In a child: another thread may have held the lock.
void renew_attached();

}  // namespace warplens::agent
