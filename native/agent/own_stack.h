// The stack of the calling thread, taken by itself: native frames, and Python's among them.
#pragma once

namespace warplens::agent {

//! Lets g_unwinder walk stacks. Once, before main.
void offer_own_stacks();

//! [FORK] In a child: another thread may have been at it.
void renew_own_stacks();

}  // namespace warplens::agent
