// Messages filled, compared and printed field by field, from the product's own lists.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "runtime/core/printable.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/json_forms.h"
#include "runtime/model/stream/stream_forms.h"
#include "runtime/wire/protocol/message_fields.h"

namespace patchbay::protocol::test {

/// Fills with values that differ from the defaults and from each other.
class Filler {
 public:
  explicit Filler(std::uint64_t seed) : random_(seed) {}

  void Fill(bool& value) { value = true; }
  void Fill(std::string& value) {
    value.resize(1 + random_() % 24);
    for (char& c : value) c = static_cast<char>(1 + random_() % 255);
  }
  void Fill(Digest& value) {
    for (auto& byte : value.bytes) byte = static_cast<std::uint8_t>(1 + random_() % 255);
  }
  void Fill(UnitRuns& value) {
    const std::vector<UnitRuns::Run> runs = {{1 + random_() % 9, 2}, {10 + random_() % 9, 3}};
    value = *UnitRuns::Of(runs, 4);
  }
  void Fill(HeldLease& value) {
    Fill(value.lease);
    value.is_shard = random_() % 2 == 0;
    if (value.is_shard) {
      Fill(value.stream);
      Fill(value.shard);
    } else {
      Fill(value.task);
    }
  }
  template <typename T>
  void Fill(std::vector<T>& values) {
    values.resize(1 + random_() % 3);
    for (T& each : values) Fill(each);
  }
  template <typename T>
  void Fill(T& value) {
    if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(1 + random_() % static_cast<unsigned>(kLastOf<T>));
    } else if constexpr (std::is_integral_v<T>) {
      while (value == T{}) value = static_cast<T>(random_());
    } else {
      EachField<T>([&](const auto& field) { Fill(value.*field.member); });
    }
  }

 private:
  std::mt19937_64 random_;
};

template <typename T>
bool Equal(const T& left, const T& right);

template <typename T>
bool Equal(const std::vector<T>& left, const std::vector<T>& right) {
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!Equal(left[i], right[i])) return false;
  }
  return true;
}

template <typename T>
bool Equal(const T& left, const T& right) {
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> ||
                std::is_same_v<T, Digest> || std::is_same_v<T, UnitRuns>) {
    return left == right;
  } else {
    bool is_equal = true;
    EachField<T>([&](const auto& field) {
      is_equal = is_equal && Equal(left.*field.member, right.*field.member);
    });
    return is_equal;
  }
}

inline bool Equal(const Body& left, const Body& right) {
  if (left.index() != right.index()) return false;
  return std::visit(
      [&](const auto& l) { return Equal(l, std::get<std::decay_t<decltype(l)>>(right)); }, left);
}

template <typename T>
std::string TextOf(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return StrCat(value);
  } else if constexpr (std::is_enum_v<T>) {
    return StrCat(static_cast<int>(value));
  } else if constexpr (std::is_same_v<T, std::string>) {
    return StrCat("\"", Printable(value), "\"");
  } else if constexpr (std::is_same_v<T, Digest>) {
    return value.Hex();
  } else if constexpr (std::is_same_v<T, UnitRuns>) {
    return TextOf(value.runs());
  } else if constexpr (requires { value.size(); }) {
    std::string text = "[";
    for (const auto& each : value) text += TextOf(each) + ", ";
    return text + "]";
  } else {
    std::string text = "{";
    EachField<T>([&](const auto& field) {
      text += StrCat(field.key, ": ", TextOf(value.*field.member), ", ");
    });
    return text + "}";
  }
}
inline std::string TextOf(const Body& body) {
  return std::visit([](const auto& message) { return TextOf(message); }, body);
}

/// An envelope of the body's index-th alternative, filled from the seed.
template <std::size_t... I>
Envelope FilledAt(std::size_t index, std::uint64_t seed, std::index_sequence<I...>) {
  Filler filler(seed);
  Envelope envelope;
  filler.Fill(envelope.sender_incarnation);
  filler.Fill(envelope.request_id);
  const bool found =
      ((I == index ? (filler.Fill(envelope.body.emplace<I>()), true) : false) || ...);
  PB_CHECK(found);
  return envelope;
}

inline constexpr std::size_t kBodies = std::variant_size_v<Body::variant>;

inline Envelope Filled(std::size_t index, std::uint64_t seed) {
  return FilledAt(index, seed, std::make_index_sequence<kBodies>());
}

}  // namespace patchbay::protocol::test
