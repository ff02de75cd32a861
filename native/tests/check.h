// The least that a native test needs: CHECK counts, main prints.
#pragma once

#include <cstdio>

inline int g_checks = 0;
inline int g_failures = 0;

#define CHECK(condition)                                                   \
  do {                                                                     \
    ++g_checks;                                                            \
    if (!(condition)) {                                                    \
      ++g_failures;                                                        \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                      \
  } while (false)
