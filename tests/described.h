// For tests of structs that list their fields: printing as JSON, and a round trip of every field.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/format/json/json_forms.h"

namespace patchbay {

/// The text that gtest prints for a struct.
template <HasFields T>
void PrintTo(const T& value, std::ostream* out) {
  *out << DumpJson(JsonOf(value));
}

namespace plan {
using patchbay::PrintTo;
}
namespace model {
using patchbay::PrintTo;
}
namespace results {
using patchbay::PrintTo;
}
namespace workers {
using patchbay::PrintTo;
}

namespace test {

template <typename T>
T SampleOf(const T& unlike, double min, double max);

/// A value of a type that has a form of its own, unlike its default.
template <typename T>
T SampleForm(const T& unlike) {
  if constexpr (std::is_same_v<T, Digest>) {
    Digest digest;
    digest.bytes.fill(7);
    return digest;
  } else if constexpr (std::is_same_v<T, Extent>) {
    return {3, 5, 7};
  } else {
    static_assert(std::is_enum_v<T>, "no sample of this type");
    return static_cast<T>(static_cast<int>(unlike) == 0 ? 1 : 0);
  }
}

template <HasFields T>
T SampleStruct() {
  T sample{};
  EachField<T>([&](const auto& field) {
    sample.*field.member = SampleOf(sample.*field.member, field.min, field.max);
  });
  return sample;
}

/// A value within the range and unlike `unlike`.
template <typename T>
T SampleOf(const T& unlike, double min, double max) {
  if constexpr (HasJsonForm<T>) {
    return SampleForm(unlike);
  } else if constexpr (HasFields<T>) {
    return SampleStruct<T>();
  } else if constexpr (json_fields::kIsOptional<T>) {
    return SampleOf(typename T::value_type{}, min, max);
  } else if constexpr (json_fields::kIsVector<T>) {
    return {SampleOf(typename T::value_type{}, min, max)};
  } else if constexpr (json_fields::kIsArray<T>) {
    T values{};
    for (auto& value : values) value = SampleOf(value, min, max);
    return values;
  } else if constexpr (json_fields::kIsMap<T>) {
    return {{"name", SampleOf(typename T::mapped_type{}, min, max)}};
  } else if constexpr (std::is_same_v<T, Json>) {
    return Json::object({{"any", 1}});
  } else if constexpr (std::is_same_v<T, bool>) {
    return !unlike;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return unlike + "sample";
  } else {
    const auto last = static_cast<double>(unlike);
    return static_cast<T>(last + 1 <= max && last + 1 >= min ? last + 1
                          : last == max || max > 1e300       ? min
                                                             : max);
  }
}

/// Every field alone, and all together, come back as they were; a field is written unless it has
/// its default; a key more is refused by its name.
template <HasFields T>
void ExpectEveryFieldComesBack() {
  const auto expect_back = [](const T& sent, std::string_view which) {
    const Json json = JsonOf(sent);
    const StatusOr<T> back = FromJson<T>(json, "sample");
    ASSERT_TRUE(back.ok()) << which << ": " << back.status() << " of " << DumpJson(json);
    EXPECT_EQ(DumpJson(JsonOf(*back)), DumpJson(json)) << which;
    EXPECT_NE(DumpJson(json), DumpJson(JsonOf(T{}))) << which << " is not written";
    EachField<T>([&](const auto& field) {
      EXPECT_TRUE(json_fields::Equal(sent.*field.member, (*back).*field.member)) << field.key;
    });
  };
  const T defaults{};
  T bare = SampleStruct<T>();  // required members have values in range
  EachField<T>([&](const auto& field) {
    if (!field.is_required) bare.*field.member = defaults.*field.member;
  });
  EachField<T>([&](const auto& field) {
    T sent = bare;
    sent.*field.member = SampleOf(defaults.*field.member, field.min, field.max);
    expect_back(sent, field.key);
  });
  const T all = SampleStruct<T>();
  expect_back(all, "all");
  if constexpr (decltype(FieldsOf<T>::List())::kIsObject) {
    Json more = JsonOf(all);
    more["no_such_key"] = 1;
    EXPECT_EQ(MessageOf(FromJson<T>(more, "sample").status()),
              "sample: key 'no_such_key': unknown key");
  }
}

}  // namespace test
}  // namespace patchbay
