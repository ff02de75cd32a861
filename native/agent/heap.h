// The agent's own memory for `new`.
#pragma once

namespace warplens::agent {

//! [FORK] In a child: another thread may have been in the middle of giving memory back.
void renew_heap();

}  // namespace warplens::agent
