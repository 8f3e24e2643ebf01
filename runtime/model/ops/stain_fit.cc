#include "runtime/model/ops/stain_fit.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/core/names.h"
#include "runtime/core/strings.h"

namespace patchbay::plan {
namespace {

/// Loose enough for vectors that a user typed with rounded numbers.
constexpr double kUnitTolerance = 1e-3;
constexpr double kLeastDifference = 1e-6;
constexpr std::string_view kWhat = "stain fit";

constexpr auto kStainFallbacks =
    NamesInOrder<StainFallback>("none", "too_few_pixels", "one_stain", "no_concentration");

Status WrongFit(std::string_view cause) { return InvalidArgument(kWhat, ": ", cause); }

StatusOr<std::vector<double>> Numbers(const Json& values, std::size_t count) {
  if (!values.is_array() || values.size() != count) {
    return WrongFit(StrCat("expected ", count, " numbers"));
  }
  std::vector<double> numbers;
  for (const Json& value : values) {
    if (!value.is_number() || !std::isfinite(value.get<double>())) {
      return WrongFit("not all numbers");
    }
    numbers.push_back(value.get<double>());
  }
  return numbers;
}

bool IsUnit(const std::array<double, 3>& v) {
  return std::abs(std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]) - 1) <= kUnitTolerance;
}

double Distance(const std::array<double, 3>& a, const std::array<double, 3>& b) {
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

/// The fit of a profile in JSON.
struct FitText {
  Json values;
  StainFallback fallback = StainFallback::kNone;

  static constexpr auto Fields() {
    using T = FitText;
    return AsObject(Field("values", &T::values).Required(), Field("fallback", &T::fallback));
  }
};

template <typename Fit>
StatusOr<Fit> FitOf(const Json& json, StatusOr<Fit> (&from_values)(const Json&)) {
  PB_ASSIGN_OR_RETURN(const auto text, FromJson<FitText>(json, kWhat));
  PB_ASSIGN_OR_RETURN(Fit fit, from_values(text.values));
  fit.fallback = text.fallback;
  return fit;
}

}  // namespace

std::string_view NameOf(StainFallback fallback) { return kStainFallbacks.Of(fallback); }
std::optional<StainFallback> StainFallbackFromName(std::string_view name) {
  return kStainFallbacks.Find(name);
}

MacenkoFit DefaultMacenko() {
  return {.stains = {{{0.5626, 0.7201, 0.4062}, {0.2159, 0.8012, 0.5581}}},
          .max_concentrations = {1.9705, 1.0308}};
}

ReinhardFit DefaultReinhard() {
  return {.mean = {53.195, 34.041, -13.638}, .std = {11.282, 6.053, 4.423}};
}

Json ValuesOf(const MacenkoFit& fit) {
  Json values = Json::array();
  for (const auto& stain : fit.stains) {
    for (const double part : stain) values.push_back(part);
  }
  for (const double concentration : fit.max_concentrations) values.push_back(concentration);
  return values;
}

Json ValuesOf(const ReinhardFit& fit) {
  Json values = Json::array();
  for (const double mean : fit.mean) values.push_back(mean);
  for (const double deviation : fit.std) values.push_back(deviation);
  return values;
}

StatusOr<MacenkoFit> MacenkoFromValues(const Json& values) {
  PB_ASSIGN_OR_RETURN(const std::vector<double> n, Numbers(values, kMacenkoValues));
  const MacenkoFit fit{.stains = {{{n[0], n[1], n[2]}, {n[3], n[4], n[5]}}},
                       .max_concentrations = {n[6], n[7]}};
  if (!IsUnit(fit.stains[0]) || !IsUnit(fit.stains[1])) {
    return WrongFit("each stain (3 numbers) must be a vector of length 1");
  }
  if (Distance(fit.stains[0], fit.stains[1]) < kLeastDifference) {
    return WrongFit("both stains are the same");
  }
  if (fit.stains[0][0] < fit.stains[1][0]) {
    return WrongFit("hematoxylin comes first: it has the larger red");
  }
  if (fit.max_concentrations[0] <= 0 || fit.max_concentrations[1] <= 0) {
    return WrongFit("concentrations must be above 0");
  }
  return fit;
}

StatusOr<ReinhardFit> ReinhardFromValues(const Json& values) {
  PB_ASSIGN_OR_RETURN(const std::vector<double> n, Numbers(values, kReinhardValues));
  const ReinhardFit fit{.mean = {n[0], n[1], n[2]}, .std = {n[3], n[4], n[5]}};
  if (*std::min_element(fit.std.begin(), fit.std.end()) <= 0) {
    return WrongFit("standard deviations must be above 0");
  }
  return fit;
}

}  // namespace patchbay::plan

namespace patchbay {

using plan::FitOf, plan::FitText, plan::MacenkoFit, plan::ReinhardFit;

Json JsonForm<MacenkoFit>::To(const MacenkoFit& fit) {
  return JsonOf(FitText{ValuesOf(fit), fit.fallback});
}
StatusOr<MacenkoFit> JsonForm<MacenkoFit>::From(const Json& json) {
  return FitOf(json, plan::MacenkoFromValues);
}
Json JsonForm<ReinhardFit>::To(const ReinhardFit& fit) {
  return JsonOf(FitText{ValuesOf(fit), fit.fallback});
}
StatusOr<ReinhardFit> JsonForm<ReinhardFit>::From(const Json& json) {
  return FitOf(json, plan::ReinhardFromValues);
}

}  // namespace patchbay
