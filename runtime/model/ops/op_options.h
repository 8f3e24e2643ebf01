// Options of an op, described once: each is a key of a config and the member of a struct that it
// fills. Type, default, check of the type and reading follow from the member.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/core/dtype.h"
#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"

namespace patchbay::plan {

/// One row of an op's table of options.
template <typename Options>
struct Option {
  config::Key key;
  std::function<void(const Json& value, Options& options)> read;
};

/// Describe sets the type of a key and, as its default, `value`; ReadValue reads a value that the
/// key accepted. Types for which an op declares both functions can be options too.
inline void Describe(bool value, config::Key& key) {
  key.type = key.choices.empty() ? config::KeyType::kBool : config::KeyType::kChoice;
  key.fallback = key.choices.empty() ? Json(value) : Json(key.choices[value ? 0 : 1]);
}
inline void ReadValue(const Json& json, const config::Key& key, bool& value) {
  value = key.choices.empty() ? json.get<bool>() : json == key.choices[0];
}

template <std::integral Whole>
requires(!std::same_as<Whole, bool>) void Describe(Whole value, config::Key& key) {
  key.type = config::KeyType::kInt;
  key.fallback = value;
}

inline void Describe(double value, config::Key& key) {
  key.type = config::KeyType::kFloat;
  key.fallback = value;
}

inline void Describe(const std::string& value, config::Key& key) {
  key.type = config::KeyType::kString;
  key.fallback = value;
}

inline void Describe(const std::vector<double>& value, config::Key& key) {
  key.type = config::KeyType::kFloatList;
  key.fallback = value;
}

inline void Describe(const std::vector<std::string>& value, config::Key& key) {
  key.type = config::KeyType::kStringList;
  key.fallback = value;
}

template <typename Number, std::size_t kCount>
requires std::is_arithmetic_v<Number>
void Describe(const std::array<Number, kCount>& value, config::Key& key) {
  key.type = std::integral<Number> ? config::KeyType::kIntList : config::KeyType::kFloatList;
  key.fallback = value;
  key.min_items = key.max_items = kCount;
}

/// Enumerators count from 0, as the choices do.
template <typename Enum>
requires std::is_enum_v<Enum>
void Describe(Enum value, config::Key& key) {
  key.type = config::KeyType::kChoice;
  key.fallback = key.choices[static_cast<std::size_t>(value)];
}
template <typename Enum>
requires std::is_enum_v<Enum>
void ReadValue(const Json& json, const config::Key& key, Enum& value) {
  std::size_t i = 0;
  while (i + 1 < key.choices.size() && json != key.choices[i]) ++i;
  value = static_cast<Enum>(i);
}

inline void Describe(DType value, config::Key& key) {
  key.type = config::KeyType::kChoice;
  key.fallback = NameOf(value);
}
inline void ReadValue(const Json& json, const config::Key&, DType& value) {
  value = *DTypeFromName(json.get_ref<const std::string&>());
}

/// An option that may be absent.
template <typename Value>
void Describe(const std::optional<Value>&, config::Key& key) {
  Describe(Value{}, key);
  key.fallback = nullptr;
}
template <typename Value>
void ReadValue(const Json& json, const config::Key&, std::optional<Value>& value) {
  value = json.get<Value>();
}

template <typename Value>
void ReadValue(const Json& json, const config::Key&, Value& value) {
  json.get_to(value);
}

/// The row of a member; `key` has name, unit, range, help. A required key has no default.
template <typename Options, typename Value>
Option<Options> OptionOf(Value Options::*member, config::Key key) {
  Describe(Options{}.*member, key);
  if (key.required) key.fallback = nullptr;
  return {key, [member, key](const Json& json, Options& options) {
            ReadValue(json, key, options.*member);
          }};
}

/// OptionOf for a key that may be absent: the member then keeps its value.
template <typename Options, typename Value>
Option<Options> AbsentOption(Value Options::*member, config::Key key) {
  Option<Options> option = OptionOf(member, std::move(key));
  option.key.fallback = nullptr;
  return option;
}

/// Reads a value that passed the keys of `Options::Table()`.
template <typename Options>
Options ReadOptions(const Json& values) {
  Options options;
  for (const Option<Options>& option : Options::Table()) {
    const auto value = values.find(option.key.name);
    if (value != values.end()) option.read(*value, options);
  }
  return options;
}

/// The key of an op: its name, and one member an option. `Options` may have `Status Check() const`,
/// for rules between its members.
template <typename Options>
config::Key KeysOf(std::string name, std::string help) {
  config::Key key{.name = std::move(name), .type = config::KeyType::kMap, .help = std::move(help)};
  for (Option<Options>& option : Options::Table()) key.members.push_back(std::move(option.key));
  if constexpr (requires(const Options& options) { options.Check(); }) {
    key.check = [](const Json& values) { return ReadOptions<Options>(values).Check(); };
  }
  return key;
}

}  // namespace patchbay::plan
