// The planted bug that is switched on: only in builds that tests/mutants/run makes.
#pragma once

// Warnings of the compiler on a planted bug are not the point.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Weverything"
#endif

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace patchbay::test {

/// More than there are in the tables.
inline constexpr int kMostMutants = 4096;

/// Adds a mutant whose place the program came to, once, to the file that PATCHBAY_MUTANTS_REACHED
/// names.
inline void RecordReached(int number) {
  static const char* const path = std::getenv("PATCHBAY_MUTANTS_REACHED");
  static std::array<std::atomic<bool>, kMostMutants> reached{};
  if (path == nullptr || reached[static_cast<unsigned>(number)].exchange(true)) return;
  if (std::FILE* file = std::fopen(path, "a"); file != nullptr) {
    std::fprintf(file, "%d\n", number);
    std::fclose(file);
  }
}

/// Whether PATCHBAY_MUTANT names this one. Read once; 0 and nothing are the code as it is.
inline bool IsMutant(int number) {
  static const int chosen = [] {
    const char* text = std::getenv("PATCHBAY_MUTANT");
    return text == nullptr ? 0 : std::atoi(text);
  }();
  if (chosen == 0) RecordReached(number);
  return chosen == number;
}

}  // namespace patchbay::test
