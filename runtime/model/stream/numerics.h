// The implementation of the ops that makes a stream's bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace patchbay {

/// A worker has exactly one of the first two; a strict stream takes either, whose bits are equal.
enum class Numerics : std::uint8_t { kCpu, kCuda, kStrict };

inline constexpr std::array kAllNumerics = {Numerics::kCpu, Numerics::kCuda, Numerics::kStrict};

/// "cpu", "cuda" or "strict".
std::string_view NameOf(Numerics numerics);
std::optional<Numerics> NumericsFromName(std::string_view name);

}  // namespace patchbay
