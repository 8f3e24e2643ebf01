// Which planted bug is switched on: only in builds that tests/mutants/run makes.
#pragma once

// What a bug looks like to the compiler is not the point.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Weverything"
#endif

#include <cstdlib>

namespace patchbay::test {

/// Whether PATCHBAY_MUTANT names this one. Read once; 0 and nothing are the code as it is.
inline bool IsMutant(int number) {
  static const int chosen = [] {
    const char* text = std::getenv("PATCHBAY_MUTANT");
    return text == nullptr ? 0 : std::atoi(text);
  }();
  return chosen == number;
}

}  // namespace patchbay::test
