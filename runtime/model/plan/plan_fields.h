// The JSON fields of a plan's values while it is made, and the JSON forms of values that are no
// structs. A finished plan's text has columns instead (image_columns.h).
#pragma once

#include <string>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/format/json/json_forms.h"
#include "runtime/model/plan/class_table.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/resolution/volume_spacing.h"

namespace patchbay {

/// JsonForm of a type that has ToJson and a reader.
template <typename T, auto read>
struct JsonOfOwn {
  static Json To(const T& value) { return plan::ToJson(value); }
  static StatusOr<T> From(const Json& json) { return read(json); }
};

template <>
struct JsonForm<plan::ImageIcc> : JsonOfOwn<plan::ImageIcc, plan::ImageIccFromJson> {};
template <>
struct JsonForm<plan::Magnification> : JsonOfOwn<plan::Magnification, plan::MagnificationFromJson> {
};
template <>
struct JsonForm<std::vector<plan::PlannedView>>
    : JsonOfOwn<std::vector<plan::PlannedView>, plan::ViewsFromJson> {};

template <>
struct JsonForm<plan::OnBadImage> {
  static Json To(plan::OnBadImage choice) { return std::string(plan::NameOf(choice)); }
  static StatusOr<plan::OnBadImage> From(const Json& json) {
    for (const auto choice : {plan::OnBadImage::kFail, plan::OnBadImage::kSkip}) {
      if (json == To(choice)) return choice;
    }
    return InvalidArgument("expected one of its names");
  }
};

/// EncodePositions of them.
template <>
struct JsonForm<std::vector<plan::PlanePoint>> {
  static Json To(const std::vector<plan::PlanePoint>& at) { return plan::EncodePositions(at); }
  static StatusOr<std::vector<plan::PlanePoint>> From(const Json& json) {
    if (!json.is_string()) return InvalidArgument("expected text");
    return plan::DecodePositions(json.get_ref<const std::string&>());
  }
};

/// EncodePlaceLabels of them.
template <>
struct JsonForm<plan::PlaceLabels> {
  static Json To(const plan::PlaceLabels& labels) { return plan::EncodePlaceLabels(labels); }
  static StatusOr<plan::PlaceLabels> From(const Json& json) {
    if (!json.is_string()) return InvalidArgument("expected text");
    return plan::DecodePlaceLabels(json.get_ref<const std::string&>());
  }
};

/// EncodeListedRuns of them.
template <>
struct JsonForm<std::vector<plan::ListedRun>> {
  static Json To(const std::vector<plan::ListedRun>& runs) { return plan::EncodeListedRuns(runs); }
  static StatusOr<std::vector<plan::ListedRun>> From(const Json& json) {
    if (!json.is_string()) return InvalidArgument("expected text");
    return plan::DecodeListedRuns(json.get_ref<const std::string&>());
  }
};

template <>
struct FieldsOf<plan::PerAxis> {
  static constexpr auto List() {
    using T = plan::PerAxis;
    return AsArray(Field("z", &T::z), Field("y", &T::y), Field("x", &T::x));
  }
};

template <>
struct FieldsOf<plan::WantedSpacing> {
  static constexpr auto List() {
    using T = plan::WantedSpacing;
    return AsFullObject(Field("mm", &T::mm).Within(plan::kMinSpacingMm, plan::kMaxSpacingMm),
                        Field("tolerance", &T::tolerance), Field("upsample", &T::upsample),
                        Field("size", &T::patch).Within(1, plan::kMaxSourceSide),
                        Field("separate_z", &T::separate_z));
  }
};

template <>
struct FieldsOf<plan::NamedValue> {
  static constexpr auto List() {
    using T = plan::NamedValue;
    return AsArray(Field("name", &T::name),
                   Field("value", &T::value).Within(0, plan::kIgnoreClass - 1));
  }
};

template <>
struct FieldsOf<plan::PlaceCount> {
  static constexpr auto List() {
    using T = plan::PlaceCount;
    return AsArray(Field("places", &T::places), Field("pixels_each", &T::pixels_each));
  }
};

template <>
struct FieldsOf<plan::ImageLabels> {
  static constexpr auto List() {
    using T = plan::ImageLabels;
    return AsObject(Field("digest", &T::digest),
                    Field("classes", &T::classes).Counted(0, plan::kMaxClasses));
  }
};

template <>
struct FieldsOf<plan::PlannedImage> {
  static constexpr auto List() {
    using T = plan::PlannedImage;
    return AsObject(Field("digest", &T::digest), Field("kind", &T::kind), Field("size", &T::size),
                    Field("channels", &T::channels), Field("dtype", &T::dtype),
                    Field("choice", &T::choice), Field("macenko", &T::macenko),
                    Field("reinhard", &T::reinhard), Field("stain_reference", &T::stain_reference),
                    Field("icc", &T::icc), Field("volume", &T::volume), Field("labels", &T::labels),
                    Field("further_labels", &T::further_labels), Field("label", &T::label),
                    Field("views", &T::views), Field("groups", &T::groups),
                    Field("indexes", &T::indexes), Field("listed", &T::listed),
                    Field("listed_labels", &T::listed_labels), Field("places", &T::places));
  }
};

}  // namespace patchbay
