#include "runtime/model/draw/permutation.h"

#include <algorithm>
#include <bit>

#include "runtime/core/random.h"

namespace patchbay::plan {
namespace {

/// Four rounds make a Feistel network a strong pseudorandom permutation for large halves (Luby and
/// Rackoff); small ranges have halves of a few bits and need more to mix.
constexpr std::uint32_t kRounds = 8;

/// A bijection of [0, 2^(left_bits + right_bits)). Each round adds a keyed function of one half to
/// the other and swaps them; two rounds bring unequal halves back to their places.
std::uint64_t Feistel(const PermutationKey& key, int left_bits, int right_bits, std::uint64_t i) {
  std::uint64_t right = i & ((std::uint64_t{1} << right_bits) - 1);
  std::uint64_t left = i >> right_bits;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const DrawKey draw{key.seed, key.epoch, right, round, DrawStream::kPermutation};
    const PhiloxBlock block = Draw(draw, 0);
    const std::uint64_t mask = (std::uint64_t{1} << left_bits) - 1;
    const std::uint64_t next = (left ^ block.word[0]) & mask;
    left = right;
    right = next;
    std::swap(left_bits, right_bits);
  }
  return (left << right_bits) | right;
}

}  // namespace

std::uint64_t Permute(const PermutationKey& key, std::uint64_t n, std::uint64_t i) {
  if (n <= 1) return 0;
  const int bits = std::max(2, static_cast<int>(std::bit_width(n - 1)));
  const int right_bits = bits / 2;
  // Less than half of the network's range is out of bounds, so this takes two steps on average.
  do {
    i = Feistel(key, bits - right_bits, right_bits, i);
  } while (i >= n);
  return i;
}

}  // namespace patchbay::plan
