// Cases that are measured in turns on one thread, by processor time.
#pragma once

#include <ctime>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/status.h"

namespace patchbay::bench {

/// One thread, warm: rounds of all cases are interleaved so that a disturbance hits them alike.
inline constexpr int kRounds = 8;

inline double CpuSeconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// A small sequence of places that every case walks alike.
class Places {
 public:
  std::int64_t Next(std::int64_t below) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::int64_t>((state_ >> 33) % static_cast<std::uint64_t>(below));
  }

 private:
  std::uint64_t state_ = 7678;
};

struct Case {
  const char* name;
  std::function<Status(Places&)> read;
  int batch = 16;  ///< calls between two looks at the clock
  double cpu_seconds = 0;
  std::int64_t reads = 0;
  Places places = {};
};

inline Status Measure(Case& c, double seconds) {
  const double start = CpuSeconds();
  double now = start;
  std::int64_t reads = 0;
  for (; now - start < seconds; now = CpuSeconds()) {
    for (int i = 0; i < c.batch; ++i, ++reads) PB_RETURN_IF_ERROR(c.read(c.places));
  }
  c.cpu_seconds += now - start;
  c.reads += reads;
  return absl::OkStatus();
}

/// `seconds` of each case in kRounds rounds; one before warms the page cache and the buffers.
inline Status MeasureAll(std::vector<Case>& cases, double seconds) {
  for (int round = 0; round <= kRounds; ++round) {
    for (Case& c : cases) PB_RETURN_IF_ERROR(Measure(c, seconds / kRounds));
    if (round > 0) continue;
    for (Case& c : cases) c.cpu_seconds = 0, c.reads = 0;
  }
  return absl::OkStatus();
}

/// One JSON object: calls per processor second of every case, and `more`.
inline void Print(const std::vector<Case>& cases,
                  const std::vector<std::pair<std::string, double>>& more = {}) {
  std::cout << "{";
  for (const Case& c : cases) {
    std::cout << (&c == &cases[0] ? "" : ", ") << '"' << c.name
              << "\": " << static_cast<double>(c.reads) / c.cpu_seconds;
  }
  for (const auto& [name, value] : more) std::cout << ", \"" << name << "\": " << value;
  std::cout << "}\n";
}

}  // namespace patchbay::bench
