// A set of small numbers, in order.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace patchbay::scheduler {

/// A bit for each number, one for each word of these that has any, and so on. A change or a look-up
/// reads a word of each level and allocates nothing once the set has had a number as large. Takes
/// an eighth of a byte for each number up to the largest one.
class IdSet {
 public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  bool Has(std::uint32_t id) const {
    const std::size_t word = id / kBits;
    return word < levels_[0].size() && (levels_[0][word] >> (id % kBits) & 1) != 0;
  }
  /// False when it was there.
  bool Insert(std::uint32_t id) {
    if (Has(id)) return false;
    ++size_;
    std::size_t at = id;
    for (auto& level : levels_) {
      if (level.size() <= at / kBits) level.resize(at / kBits + 1);
      level[at / kBits] |= std::uint64_t{1} << (at % kBits);
      at /= kBits;
    }
    return true;
  }
  /// False when it was not there.
  bool Erase(std::uint32_t id) {
    if (!Has(id)) return false;
    --size_;
    std::size_t at = id;
    for (auto& level : levels_) {
      std::uint64_t& word = level[at / kBits];
      word &= ~(std::uint64_t{1} << (at % kBits));
      if (word != 0) break;
      at /= kBits;
    }
    return true;
  }
  /// The least one from `from` on; kNone when there is none.
  std::uint32_t Next(std::uint32_t from) const {
    std::size_t at = from;
    for (std::size_t level = 0; level < levels_.size(); ++level) {
      if (at / kBits >= levels_[level].size()) return kNone;
      const std::uint64_t rest = levels_[level][at / kBits] >> (at % kBits);
      if (rest != 0) {
        at += static_cast<std::size_t>(std::countr_zero(rest));
        for (std::size_t below = level; below-- != 0;) {
          at = at * kBits + static_cast<std::size_t>(std::countr_zero(levels_[below][at]));
        }
        return static_cast<std::uint32_t>(at);
      }
      at = at / kBits + 1;
    }
    return kNone;
  }

 private:
  static constexpr std::size_t kBits = 64;
  std::array<std::vector<std::uint64_t>, 6> levels_;  ///< six levels have room for any number
  std::size_t size_ = 0;
};

}  // namespace patchbay::scheduler
