// JSON of structs that list their fields (runtime/core/fields.h), in and out.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/core/status.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/json.h"

namespace patchbay {

/// Keys that are in no list of fields.
enum class UnknownKeys : std::uint8_t { kRefused, kSkipped };

/// A place in a JSON value that is being read, for messages. Valid as long as the place around it.
class JsonPlace {
 public:
  /// The place of the whole value; messages call it `what`.
  explicit JsonPlace(std::string_view what, UnknownKeys unknown = UnknownKeys::kRefused)
      : what_(what), unknown_(unknown) {}
  JsonPlace(const JsonPlace& around, std::string_view key)
      : what_(around.what_), unknown_(around.unknown_), around_(&around), key_(key) {}
  JsonPlace(const JsonPlace& around, std::size_t index)
      : what_(around.what_), unknown_(around.unknown_), around_(&around), index_(index) {}

  /// "images[3].size.x"; "" for the whole value.
  std::string Path() const;
  /// InvalidArgument: "what: key 'images[3].size.x': cause".
  Status Wrong(std::string_view cause) const;
  Status Expected(std::string_view expected) const;
  UnknownKeys unknown() const { return unknown_; }

 private:
  std::string_view what_;
  UnknownKeys unknown_;
  const JsonPlace* around_ = nullptr;
  std::string_view key_ = {};
  std::size_t index_ = 0;
};

/// The form in JSON of a type that is no struct with a list, with
///   static Json To(const T&);
///   static StatusOr<T> From(const Json&);   // messages name neither key nor place
template <typename T>
struct JsonForm;

/// JsonForm of an enumeration with names: NameOf(value), and `find(name)`, an optional, or the
/// address of its Names.
template <typename Enum, auto find>
struct JsonNames {
  static Json To(Enum value) { return std::string(NameOf(value)); }
  static std::optional<Enum> Find(std::string_view name) {
    if constexpr (requires { find->Find(name); }) {
      return find->Find(name);
    } else {
      return find(name);
    }
  }
  static StatusOr<Enum> From(const Json& json) {
    if (json.is_string()) {
      if (const auto value = Find(json.get_ref<const std::string&>())) return *value;
    }
    return InvalidArgument("expected one of its names");
  }
};

template <typename T>
concept HasJsonForm = requires(const T& value) {
  JsonForm<T>::To(value);
};

/// Deterministic: equal values give equal JSON.
template <typename T>
Json JsonOf(const T& value);
/// InvalidArgument, with key and place, for anything but the output of JsonOf: an unknown key,
/// another type, a number out of range, a missing key.
template <typename T>
Status ReadJson(const Json& json, const JsonPlace& place, T& value);

template <typename T>
StatusOr<T> FromJson(const Json& json, std::string_view what,
                     UnknownKeys unknown = UnknownKeys::kRefused) {
  T value{};
  PB_RETURN_IF_ERROR(ReadJson(json, JsonPlace(what, unknown), value));
  return value;
}

namespace json_fields {

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <typename T>
inline constexpr bool kIsVector = false;
template <typename T>
inline constexpr bool kIsVector<std::vector<T>> = true;
template <typename T>
inline constexpr bool kIsArray = false;
template <typename T, std::size_t n>
inline constexpr bool kIsArray<std::array<T, n>> = true;
template <typename T>
inline constexpr bool kIsMap = false;
template <typename T>
inline constexpr bool kIsMap<std::map<std::string, T>> = true;

/// "expected a number in 0.1..999".
Status OutOfRange(const JsonPlace& place, double min, double max);
Status CheckRange(const Json& json, const JsonPlace& place, double min, double max);
Status CheckCount(const Json& json, const JsonPlace& place, std::size_t min, std::size_t max);
/// InvalidArgument unless `json` is an object whose keys are all among `known`, or skipped.
Status CheckKeys(const Json& json, const JsonPlace& place, const char* const* known,
                 std::size_t count);
Status CheckList(const Json& json, const JsonPlace& place, std::optional<std::size_t> size);
Status Missing(const JsonPlace& place);

template <typename T>
constexpr bool IsComparable() {
  if constexpr (kIsOptional<T> || kIsVector<T> || kIsArray<T>) {
    return IsComparable<typename T::value_type>();
  } else if constexpr (kIsMap<T>) {
    return IsComparable<typename T::mapped_type>();
  } else {
    return std::equality_comparable<T>;
  }
}

template <typename T>
bool Equal(const T& left, const T& right) {
  if constexpr (IsComparable<T>()) {
    return left == right;
  } else {
    return JsonOf(left) == JsonOf(right);
  }
}

template <HasFields T>
Json StructOf(const T& value) {
  static_assert(fields::AreAll<T>(), "a member is missing in Fields()");
  using List = decltype(FieldsOf<T>::List());
  static const T defaults{};
  Json json = List::kIsObject ? Json::object() : Json::array();
  EachField<T>([&](const auto& field) {
    if constexpr (!List::kIsObject) {
      json.push_back(JsonOf(value.*field.member));
    } else if (field.is_required || !Equal(value.*field.member, defaults.*field.member)) {
      json[field.key] = JsonOf(value.*field.member);
    }
  });
  return json;
}

template <typename Struct, typename T>
Status ReadMember(const Json& json, const JsonPlace& around, const Field<Struct, T>& field,
                  std::type_identity_t<Struct>& value) {
  const JsonPlace place(around, std::string_view(field.key));
  if (field.min > -kLargest || field.max < kLargest) {
    PB_RETURN_IF_ERROR(CheckRange(json, place, field.min, field.max));
  }
  PB_RETURN_IF_ERROR(CheckCount(json, place, field.min_count, field.max_count));
  return ReadJson(json, place, value.*field.member);
}

template <HasFields T>
Status ReadStruct(const Json& json, const JsonPlace& place, T& value) {
  using List = decltype(FieldsOf<T>::List());
  constexpr std::size_t kCount = std::tuple_size_v<decltype(FieldsOf<T>::List().fields)>;
  std::array<const char*, kCount> keys;
  std::size_t at = 0;
  EachField<T>([&](const auto& field) { keys[at++] = field.key; });
  PB_RETURN_IF_ERROR(List::kIsObject ? CheckKeys(json, place, keys.data(), kCount)
                                     : CheckList(json, place, kCount));
  at = 0;
  Status status;
  EachField<T>([&](const auto& field) {
    if (!status.ok()) return;
    if constexpr (!List::kIsObject) {
      status = ReadMember(json[at++], place, field, value);
    } else if (const auto member = json.find(field.key); member != json.end()) {
      status = ReadMember(*member, place, field, value);
    } else if (field.is_required) {
      status = Missing(JsonPlace(place, std::string_view(field.key)));
    }
  });
  if constexpr (requires { value.Check(); }) {
    if (!status.ok()) return status;
    const Status sound = value.Check();
    if (!sound.ok()) return place.Wrong(MessageOf(sound));
  }
  return status;
}

template <std::integral T>
Status ReadNumber(const Json& json, const JsonPlace& place, T& value) {
  using Limits = std::numeric_limits<T>;
  if (!json.is_number_integer()) return place.Expected("a whole number");
  const bool fits = json.is_number_unsigned() ? std::in_range<T>(json.get<std::uint64_t>())
                                              : std::in_range<T>(json.get<std::int64_t>());
  if (!fits) {
    return OutOfRange(place, static_cast<double>(Limits::min()),
                      static_cast<double>(Limits::max()));
  }
  value = json.get<T>();
  return absl::OkStatus();
}

template <std::floating_point T>
Status ReadNumber(const Json& json, const JsonPlace& place, T& value) {
  if (!json.is_number()) return place.Expected("a number");
  value = json.get<T>();
  return absl::OkStatus();
}

template <typename T>
Status ReadList(const Json& json, const JsonPlace& place, T& list) {
  if constexpr (kIsArray<T>) {
    PB_RETURN_IF_ERROR(CheckList(json, place, list.size()));
  } else {
    PB_RETURN_IF_ERROR(CheckList(json, place, std::nullopt));
    list.clear();
    list.resize(json.size());
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    typename T::value_type member{};
    PB_RETURN_IF_ERROR(ReadJson(json[i], JsonPlace(place, i), member));
    list[i] = std::move(member);
  }
  return absl::OkStatus();
}

template <typename T>
Status ReadMap(const Json& json, const JsonPlace& place, std::map<std::string, T>& map) {
  if (!json.is_object()) return place.Expected("an object");
  map.clear();
  for (const auto& [key, member] : json.items()) {
    PB_RETURN_IF_ERROR(ReadJson(member, JsonPlace(place, std::string_view(key)), map[key]));
  }
  return absl::OkStatus();
}

template <typename T>
Status ReadForm(const Json& json, const JsonPlace& place, T& value) {
  StatusOr<T> read = JsonForm<T>::From(json);
  if (!read.ok()) return place.Wrong(MessageOf(read.status()));
  value = *std::move(read);
  return absl::OkStatus();
}

}  // namespace json_fields

template <typename T>
Json JsonOf(const T& value) {
  if constexpr (HasJsonForm<T>) {
    return JsonForm<T>::To(value);
  } else if constexpr (HasFields<T>) {
    return json_fields::StructOf(value);
  } else if constexpr (json_fields::kIsOptional<T>) {
    return value ? JsonOf(*value) : Json();
  } else if constexpr (json_fields::kIsVector<T> || json_fields::kIsArray<T>) {
    Json list = Json::array();
    for (const auto& member : value) list.push_back(JsonOf(member));
    return list;
  } else if constexpr (json_fields::kIsMap<T>) {
    Json object = Json::object();
    for (const auto& [key, member] : value) object[key] = JsonOf(member);
    return object;
  } else {
    static_assert(
        std::is_arithmetic_v<T> || std::is_same_v<T, std::string> || std::is_same_v<T, Json>,
        "no list of fields and no JsonForm");
    return value;
  }
}

template <typename T>
Status ReadJson(const Json& json, const JsonPlace& place, T& value) {
  if constexpr (HasJsonForm<T>) {
    return json_fields::ReadForm(json, place, value);
  } else if constexpr (HasFields<T>) {
    return json_fields::ReadStruct(json, place, value);
  } else if constexpr (json_fields::kIsOptional<T>) {
    value.reset();
    return json.is_null() ? absl::OkStatus() : ReadJson(json, place, value.emplace());
  } else if constexpr (json_fields::kIsVector<T> || json_fields::kIsArray<T>) {
    return json_fields::ReadList(json, place, value);
  } else if constexpr (json_fields::kIsMap<T>) {
    return json_fields::ReadMap(json, place, value);
  } else if constexpr (std::is_same_v<T, Json>) {
    value = json;
    return absl::OkStatus();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!json.is_boolean()) return place.Expected("true or false");
    value = json.get<bool>();
    return absl::OkStatus();
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!json.is_string()) return place.Expected("text");
    value = json.get_ref<const std::string&>();
    return absl::OkStatus();
  } else {
    return json_fields::ReadNumber(json, place, value);
  }
}

}  // namespace patchbay
