// Colour arguments as 0xAARRGGBB.
#pragma once

#include "compat.h"

namespace warplens::binding {

// What NVTX gets when no colour is given (PyPI nvtx's blue).
inline constexpr uint32_t kBlue = 0x0000FF;

uint32_t find_color(PyObject *color, bool *bad);

// `color`: null, None, int, or what warplens.nvtx.colors knows. Sets `*bad` with an exception when it knows nothing.
inline uint32_t color_argument(PyObject *color, bool *bad) {
  return given(color) == nullptr ? kBlue : find_color(color, bad);
}

}  // namespace warplens::binding
