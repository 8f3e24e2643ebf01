// Seeded damage to good files. PATCHBAY_FUZZ_SEED and PATCHBAY_FUZZ_RUNS choose others and more.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "runtime/core/random.h"

namespace patchbay::workers {

inline std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// Numbers of one run.
class Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t run) {
    key_.seed = seed;
    key_.ordinal = run;
  }
  std::uint32_t Next() {
    if (used_ == 4) {
      block_ = Draw(key_, ++index_);
      used_ = 0;
    }
    return block_.word[used_++];
  }
  std::size_t Below(std::size_t n) { return n == 0 ? 0 : Next() % n; }

 private:
  DrawKey key_;
  PhiloxBlock block_{};
  std::uint32_t index_ = 0;
  int used_ = 4;
};

/// A few bytes become others, numbers become extreme, a part is cut, doubled or zeroed.
inline void Damage(std::string& bytes, Dice& dice, std::size_t begin, std::size_t end) {
  const std::size_t times = 1 + dice.Below(6);
  for (std::size_t i = 0; i < times && end > begin + 8; ++i) {
    const std::size_t at = begin + dice.Below(end - begin - 8);
    constexpr std::uint32_t kExtreme[] = {0,          1,      0x7FFFFFFF, 0x80000000,
                                          0xFFFFFFFF, 0xFFFF, 0x10000};
    switch (dice.Below(5)) {
      case 0:
        bytes[at] = static_cast<char>(dice.Next());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << dice.Below(8)));
        break;
      case 2: {
        const std::uint32_t value = kExtreme[dice.Below(std::size(kExtreme))];
        std::memcpy(bytes.data() + at, &value, 4);
        break;
      }
      case 3:
        std::memcpy(bytes.data() + at, bytes.data() + begin + dice.Below(end - begin - 8), 8);
        break;
      default:
        std::memset(bytes.data() + at, 0, 1 + dice.Below(8));
    }
  }
  if (dice.Below(16) == 0) bytes.resize(dice.Below(bytes.size()));
}

}  // namespace patchbay::workers
