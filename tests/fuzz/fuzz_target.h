// Fuzz targets: one function per parser, shared by libFuzzer (tests/fuzz/run) and by the test that
// reads every seed and every input that once was a finding.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace patchbay::fuzz {

struct FuzzTarget {
  std::string_view name;
  /// Whether the parser accepted the bytes. Aborts when its result breaks an invariant.
  bool (*read)(std::span<const std::byte> bytes);
  /// Inputs that the parser takes, to start from.
  std::vector<std::string> (*seeds)();
};

/// Each defined in the file of its folder's name.
std::vector<FuzzTarget> SlideTargets();
std::vector<FuzzTarget> ZarrTargets();
std::vector<FuzzTarget> TextTargets();
std::vector<FuzzTarget> WireTargets();

inline std::vector<FuzzTarget> AllTargets() {
  std::vector<FuzzTarget> all;
  for (const auto& some : {SlideTargets(), ZarrTargets(), TextTargets(), WireTargets()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

/// A byte in front of an input says which of `count` variants reads the rest.
struct Variant {
  std::size_t index = 0;
  std::span<const std::byte> bytes;

  Variant(std::span<const std::byte> input, std::size_t count) {
    if (input.empty()) return;
    index = std::to_integer<std::size_t>(input[0]) % count;
    bytes = input.subspan(1);
  }
};

inline std::string Prefixed(std::size_t variant, std::string_view bytes) {
  return std::string(1, static_cast<char>(variant)).append(bytes);
}

}  // namespace patchbay::fuzz
