// Names of enumerations that count from 0, listed once in the order of their values.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace patchbay {

/// Both ways between value and name; a constant beside the enumeration.
template <typename Enum, std::size_t n>
struct Names {
  std::array<std::string_view, n> list;

  /// "" for a number that is none of the enumeration's.
  constexpr std::string_view Of(Enum value) const {
    const auto i = static_cast<std::size_t>(value);
    return i < n ? list[i] : std::string_view();
  }
  constexpr std::optional<Enum> Find(std::string_view name) const {
    for (std::size_t i = 0; i < n; ++i) {
      if (list[i] == name) return static_cast<Enum>(i);
    }
    return std::nullopt;
  }
};

/// constexpr auto kColours = NamesInOrder<Colour>("red", "green");
template <typename Enum, typename... Text>
constexpr Names<Enum, sizeof...(Text)> NamesInOrder(Text... names) {
  return {{names...}};
}

}  // namespace patchbay
