// The fields of a struct, listed once. From the list follow its JSON, in and out
// (runtime/format/json/described.h), and in tests printing and the round trip of every field.
//
//   struct PlaceCount {
//     std::uint64_t places = 0;
//     std::uint64_t pixels_each = 1;
//
//     static constexpr auto Fields() {
//       return AsObject(Field("places", &PlaceCount::places),
//                       Field("pixels_each", &PlaceCount::pixels_each).Within(1, 4096));
//     }
//   };
#pragma once

#include <cstddef>
#include <limits>
#include <tuple>
#include <type_traits>

namespace patchbay {

/// Bounds of a number that is above 0.
inline constexpr double kPositive = std::numeric_limits<double>::min();
inline constexpr double kLargest = std::numeric_limits<double>::max();

/// One member: its key, and the values that it may have. At its default a member is neither written
/// nor asked for, unless it is required.
template <typename Struct, typename T>
struct Field {
  constexpr Field(const char* its_key, T Struct::*its_member) : key(its_key), member(its_member) {}

  /// Always written, and an error where it is missing.
  constexpr Field Required() const {
    Field field = *this;
    field.is_required = true;
    return field;
  }
  /// The range of a number, both ends included.
  constexpr Field Within(double least, double most) const {
    Field field = *this;
    field.min = least;
    field.max = most;
    return field;
  }

  /// How many values a list may have.
  constexpr Field Counted(std::size_t least, std::size_t most) const {
    Field field = *this;
    field.min_count = least;
    field.max_count = most;
    return field;
  }

  const char* key;
  T Struct::*member;
  bool is_required = false;
  double min = std::numeric_limits<double>::lowest();
  double max = std::numeric_limits<double>::max();
  std::size_t min_count = 0;
  std::size_t max_count = std::numeric_limits<std::size_t>::max();
};

/// All fields of a struct, in the order in which they are read.
template <bool kIsObjectValue, typename Tuple, typename BaseClass = void>
struct FieldList {
  static constexpr bool kIsObject = kIsObjectValue;  ///< else an array of all values, without keys
  using Inherited = BaseClass;  ///< its fields come first; void: none of them is inherited
  Tuple fields;
};

/// {"key": value, ...}
template <typename... Struct, typename... T>
constexpr auto AsObject(Field<Struct, T>... fields) {
  return FieldList<true, std::tuple<Field<Struct, T>...>>{{fields...}};
}
/// The same, with every field required.
template <typename... Struct, typename... T>
constexpr auto AsFullObject(Field<Struct, T>... fields) {
  return AsObject(fields.Required()...);
}
/// [value, ...]; the keys stand in messages alone.
template <typename... Struct, typename... T>
constexpr auto AsArray(Field<Struct, T>... fields) {
  return FieldList<false, std::tuple<Field<Struct, T>...>>{{fields...}};
}

/// The list of a struct, its Fields() unless a specialisation stands for it. Rules that tie several
/// fields together are the struct's `Status Check() const`, which readers call.
template <typename T>
struct FieldsOf {
  static constexpr auto List() requires requires { T::Fields(); }
  { return T::Fields(); }
};

template <typename T>
concept HasFields = requires {
  FieldsOf<T>::List();
};

/// The fields of a base class, and those of the struct itself.
template <HasFields Base, bool kIsObject, typename... Own>
constexpr auto Extending(FieldList<kIsObject, std::tuple<Own...>> own) {
  const auto all = std::tuple_cat(FieldsOf<Base>::List().fields, own.fields);
  return FieldList<kIsObject, std::remove_const_t<decltype(all)>, Base>{all};
}

/// Calls `visit(field)` for every field of a struct.
template <HasFields T, typename Visit>
constexpr void EachField(const Visit& visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); }, FieldsOf<T>::List().fields);
}

namespace fields {

/// Converts to anything, for counting the members of an aggregate.
struct Anything {
  template <typename T>
  operator T() const;
};

template <typename T, typename... Given>
consteval std::size_t Count() {
  if constexpr (requires { T{Given{}..., Anything{}}; }) {
    return Count<T, Given..., Anything>();
  } else {
    return sizeof...(Given);
  }
}

template <typename T>
inline constexpr std::size_t kListed = std::tuple_size_v<decltype(FieldsOf<T>::List().fields)>;

/// False where a member stands in no list.
template <HasFields T>
consteval bool AreAll() {
  using Inherited = typename decltype(FieldsOf<T>::List())::Inherited;
  if constexpr (!std::is_aggregate_v<T>) {
    return true;
  } else if constexpr (std::is_void_v<Inherited>) {
    return kListed<T> == Count<T>();
  } else {
    return kListed<T> - kListed<Inherited> == Count<T>() - 1;  // the base class counts as a member
  }
}

}  // namespace fields
}  // namespace patchbay
