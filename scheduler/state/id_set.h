// A set of small numbers, in order.
#pragma once

#include <algorithm>
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
      const std::uint64_t before = level[at / kBits];
      level[at / kBits] |= std::uint64_t{1} << (at % kBits);
      if (before != 0) break;  // the levels above know of it
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
  /// The least one from `from` on that both sets have; kNone when there is none. Reads a word for
  /// every 64 numbers between, where both have some.
  std::uint32_t NextOfBoth(const IdSet& other, std::uint32_t from) const {
    const auto& mine = levels_[0];
    const auto& its = other.levels_[0];
    const std::size_t words = std::min(mine.size(), its.size());
    std::size_t at = from / kBits;
    std::uint64_t rest = ~std::uint64_t{0} << (from % kBits);
    while (at < words) {
      if (const std::uint64_t both = mine[at] & its[at] & rest; both != 0) {
        return static_cast<std::uint32_t>(at * kBits +
                                          static_cast<std::size_t>(std::countr_zero(both)));
      }
      rest = ~std::uint64_t{0};
      at = NextWord(other, at + 1);
    }
    return kNone;
  }

 private:
  static constexpr std::size_t kBits = 64;
  /// The first word from `at` on in which both have some.
  std::size_t NextWord(const IdSet& other, std::size_t at) const {
    const auto& mine = levels_[1];
    const auto& its = other.levels_[1];
    const std::size_t words = std::min(mine.size(), its.size());
    std::uint64_t rest = ~std::uint64_t{0} << (at % kBits);
    for (std::size_t word = at / kBits; word < words; ++word, rest = ~std::uint64_t{0}) {
      const std::uint64_t both = mine[word] & its[word] & rest;
      if (both != 0) return word * kBits + static_cast<std::size_t>(std::countr_zero(both));
    }
    return words * kBits;
  }

  std::array<std::vector<std::uint64_t>, 6> levels_;  ///< six levels have room for any number
  std::size_t size_ = 0;
};

}  // namespace patchbay::scheduler
