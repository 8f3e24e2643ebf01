// Draws one of many by weight in constant time (Walker's alias method), over integers: exact, and
// the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/status.h"

namespace patchbay::plan {

class AliasTable {
 public:
  static constexpr std::uint64_t kMaxTotal = std::uint64_t{1} << 44;

  AliasTable() = default;
  /// InvalidArgument when there is no weight, all are 0, or they sum up to more than kMaxTotal.
  static StatusOr<AliasTable> Of(std::span<const std::uint64_t> weights);

  /// Index i with probability weights[i] / total, from 64 random bits.
  std::size_t Draw(std::uint64_t bits) const;
  std::size_t size() const { return columns_.size(); }

 private:
  /// The first `own` of `total_` units are this index, the rest its alias.
  struct Column {
    std::uint64_t own = 0;
    std::size_t alias = 0;
  };
  std::uint64_t total_ = 0;
  std::vector<Column> columns_;
};

}  // namespace patchbay::plan
