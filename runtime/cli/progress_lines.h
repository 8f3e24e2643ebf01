// Decides when the progress of a long operation is printed again.
#pragma once

#include <cstdint>

namespace patchbay::cli {

inline constexpr std::int64_t kRedrawEveryNs = 200'000'000;

/// Redrawn on a terminal; elsewhere, such as in a log, a line for each tenth of the work, and after
/// `every_ns` at the latest.
class ProgressLines {
 public:
  ProgressLines(bool live, std::int64_t every_ns) : live_(live), every_ns_(every_ns) {}

  /// Whether to show it now: true for the first look, for a new tenth and when it is time. `share`
  /// of the work, in [0, 1].
  bool Due(double share, std::int64_t now_ns) {
    const int tenth = static_cast<int>(share * 10);
    const bool is_new = shown_tenth_ < 0 || (!live_ && tenth != shown_tenth_);
    if (!is_new && now_ns - shown_ns_ < (live_ ? kRedrawEveryNs : every_ns_)) return false;
    shown_tenth_ = tenth;
    shown_ns_ = now_ns;
    return true;
  }

 private:
  const bool live_;
  const std::int64_t every_ns_;
  std::int64_t shown_ns_ = 0;
  int shown_tenth_ = -1;
};

}  // namespace patchbay::cli
