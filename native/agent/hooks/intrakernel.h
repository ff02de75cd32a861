// The interface of the source that stores buffers of kernels.
#pragma once

namespace warplens::agent {

//! [MT] Stores what launches have written that nobody has stored yet: a recording ends, or a window has closed. Waits for the kernels,
//! but for no more than `patience_ms` for all of them; for those whose stream is not known only with `whole_context`. The caller must
//! not hold Busy: CUPTI may hand it a batch meanwhile.
void store_intrakernel_buffers(unsigned patience_ms, bool whole_context);

//! [FORK] In a child: what launches write, they write in the parent.
void abandon_intrakernel();

}  // namespace warplens::agent
