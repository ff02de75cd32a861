// Which CUPTI this library looks like; compiled once for each, with FAKE_TOOLKIT set.
#include "fake.h"

#ifndef FAKE_TOOLKIT
#define FAKE_TOOLKIT 1300
#endif

namespace fake {
#if FAKE_TOOLKIT == 1108
const Version kVersion{18, 11080, 1108};
#elif FAKE_TOOLKIT == 1204
const Version kVersion{22, 12040, 1204};
#elif FAKE_TOOLKIT == 1300
const Version kVersion{130001, 13000, 1300};
#elif FAKE_TOOLKIT == 1304
const Version kVersion{130401, 13040, 1304};
#else
#error "FAKE_TOOLKIT must be 1108, 1204, 1300 or 1304"
#endif
}  // namespace fake
