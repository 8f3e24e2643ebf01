// A keyed permutation of [0, n) computed on the fly: the shuffle of an epoch without a table.
#pragma once

#include <cstdint>

namespace patchbay::plan {

/// Names one permutation.
struct PermutationKey {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
};

/// The ordinal at place `i` of the shuffled order; a bijection of [0, n) for every key. Feistel
/// network over the next power of two, cycle-walked back into the range. Requires i < n and n <=
/// 2^40.
std::uint64_t Permute(const PermutationKey& key, std::uint64_t n, std::uint64_t i);

}  // namespace patchbay::plan
