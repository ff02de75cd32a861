// Windows of the capture, in a control file that processes share: any of them may open and close one, and die while at it.
//
// The protocol. `gate` counts moves: 0 before the first window, odd while a window is open, even while
// none is. Window n (from 1) is open while gate == 2 * n - 1 and closed from 2 * n on. So one
// compare-exchange opens or closes, exactly one process wins it, and a thread that remembers the
// gate's value sees any change by one comparison.
// The winner may die before it writes a time. So each time is set once, by a compare-exchange from 0,
// by whichever process needs it first (settle_windows); only keep_window moves a begin.
// Threads that wait for a move sleep on `gate` as a futex.
#pragma once

#include "warplens/format.h"

namespace warplens {

inline CaptureWindow *windows_of(ControlPage *control) {
  return reinterpret_cast<CaptureWindow *>(reinterpret_cast<char *>(control) + kControlWindows);
}
inline const CaptureWindow *windows_of(const ControlPage *control) {
  return windows_of(const_cast<ControlPage *>(control));
}

//! [MT] Whether the page of the control file that holds `at` can be written now. Where its file system promises no space, a write to a
//! page that has gone to the disk asks for some, and raises SIGBUS if there is none: look before writing.
bool can_write(const ControlPage *control, const void *at);
inline bool can_write(const ControlPage *control) {
  return can_write(control, control);
}

// The gate moves first, and its time is taken after: a thread that finds a time missing takes it (settle_windows). So whatever ended
// before somebody saw the gate move lies on the near side of the edge, and what begins after on the far side.

//! [MT] Opens a window; its number from 1, 0 when one is open or `cause` has opened `limit` of them (0 = any number), -ENOSPC
//! when there is no room for another, or the disk is full. `pid` is the opener, 0 for the launcher. It begins now, or at `open_ns` where that is not 0.
int64_t open_window(ControlPage *control, Cause cause, uint32_t pid, uint64_t open_ns = 0,
                    uint32_t limit = 0);

//! [MT] Closes the open one, or only window `number` where that is not 0; its number, or 0 when it is not open.
int64_t close_window(ControlPage *control, Cause cause, int64_t number = 0);

//! [MT] The gate, after the times of its last move were taken if they were missing.
uint32_t settle_windows(ControlPage *control);

//! [MT] Closes the open window if the process that opened it is gone: nobody else will. Its number, or 0. For the launcher, whose
//! pids are those of the windows.
int64_t close_abandoned_window(ControlPage *control);

//! [MT] Closes the open one at `now`, and lets it begin no earlier than `span` ns before: what was recorded until then is not
//! wanted. With `go_on` the next one begins at `now`, opened by Cause::start, and the gate is never seen closed in between.
//! The number of the window that was closed; 0 when none is open; -ENOSPC when there is no room for the next one (none is closed).
int64_t keep_window(ControlPage *control, Cause cause, uint64_t span, bool go_on, uint64_t now);

//! [MT] The last window that begins before `end` and ends after `start`, from 1, else 0: what says whether a range from `start`
//! to `end` is recorded. `clipped` is set where the range crosses an edge of it.
uint32_t window_around(const ControlPage *control, uint64_t start, uint64_t end, bool *clipped);

//! [MT] Whether something from `start` to `end` overlaps a window that is closed.
bool in_closed_window(const ControlPage *control, uint64_t start, uint64_t end);

}  // namespace warplens
