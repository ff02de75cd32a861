// Adds PyTorch's callbacks when a window opens, and removes them when it closes.
#pragma once

namespace warplens::agent::torch {

//! Begins the thread that follows the windows, in this process or in the child of a fork.
void follow_windows();

//! [MT] A window has opened: waits until operators are observed, for a tenth of a second at most.
void wait_for_callbacks();

//! Ends the thread. Callbacks stay as they are.
void stop_following();

//! [MT] Removes the callbacks once the thread has ended. The caller holds no lock of PyTorch.
void remove_callbacks();

}  // namespace warplens::agent::torch
