#include "runtime/model/results/image_facts.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "runtime/core/strings.h"

namespace patchbay::results {
namespace {

constexpr double kSameDownsample = 1e-9;
constexpr std::int64_t kMaxSide = std::int64_t{1} << 31;

Status Wrong(const char* member) {
  return absl::InvalidArgumentError(StrCat("read facts of an image: ", member));
}

/// The downsamples that the sizes of the levels imply.
std::vector<double> RatiosOf(const std::vector<Extent>& levels) {
  std::vector<double> ratios;
  for (const Extent& level : levels) {
    const Extent& finest = levels.front();
    ratios.push_back((static_cast<double>(finest.y) / static_cast<double>(level.y) +
                      static_cast<double>(finest.x) / static_cast<double>(level.x)) /
                     2);
  }
  return ratios;
}

bool AreSame(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double one, double other) {
    return std::abs(one - other) <= kSameDownsample * std::abs(other);
  });
}

bool TakeNumbers(const Json& list, std::span<double> out) {
  if (!list.is_array() || list.size() != out.size()) return false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!list[i].is_number() || !std::isfinite(list[i].get<double>())) return false;
    out[i] = list[i].get<double>();
  }
  return true;
}

bool TakeLength(const Json& value, std::optional<double>& out) {
  out = 0;
  return value.is_number() && TakeNumbers(Json::array({value}), {&*out, 1}) && *out > 0;
}

bool TakeLevels(const Json& list, std::vector<Extent>& levels) {
  if (!list.is_array() || list.empty() || list.size() > kMaxFactLevels) return false;
  for (const Json& sides : list) {
    if (!sides.is_array() || (sides.size() != 2 && sides.size() != 3)) return false;
    Extent& level = levels.emplace_back(Extent{1, 1, 1});
    std::int64_t* const axes[] = {&level.x, &level.y, &level.z};
    for (std::size_t i = 0; i < sides.size(); ++i) {
      const Json& side = sides[sides.size() - 1 - i];
      if (!side.is_number_integer()) return false;
      *axes[i] = side.get<std::int64_t>();
      if (*axes[i] < 1 || *axes[i] > kMaxSide) return false;
    }
  }
  return true;
}

}  // namespace

std::optional<Matrix4> AffineFromJson(const Json& rows) {
  Matrix4 affine;
  if (!rows.is_array() || rows.size() != affine.size()) return std::nullopt;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!TakeNumbers(rows[i], affine[i])) return std::nullopt;
  }
  return affine;
}

Json ToJson(const ImageFacts& facts) {
  Json value = {{"levels", Json::array()}};
  for (const Extent& level : facts.levels) {
    Json sides = {level.y, level.x};
    if (level.z != 1) sides.insert(sides.begin(), level.z);
    value["levels"].push_back(std::move(sides));
  }
  if (!AreSame(facts.downsamples, RatiosOf(facts.levels))) {
    value["downsamples"] = facts.downsamples;
  }
  if (facts.mpp) value["mpp"] = *facts.mpp;
  if (facts.mpp_corrected) {
    value["stated_mpp"] = facts.stated_mpp ? Json(*facts.stated_mpp) : Json();
  }
  if (facts.spacing_mm) value["spacing_mm"] = *facts.spacing_mm;
  if (facts.affine) value["affine"] = *facts.affine;
  return value;
}

StatusOr<ImageFacts> ImageFactsFromJson(const Json& value) {
  ImageFacts facts;
  if (!value.is_object() || !TakeLevels(value.value("levels", Json()), facts.levels)) {
    return Wrong("levels");
  }
  facts.downsamples = RatiosOf(facts.levels);
  if (value.contains("downsamples") && !TakeNumbers(value["downsamples"], facts.downsamples)) {
    return Wrong("downsamples");
  }
  if (value.contains("mpp") && !TakeLength(value["mpp"], facts.mpp)) return Wrong("mpp");
  facts.mpp_corrected = value.contains("stated_mpp");
  const bool states = facts.mpp_corrected && !value["stated_mpp"].is_null();
  if (states && !TakeLength(value["stated_mpp"], facts.stated_mpp)) return Wrong("stated_mpp");
  if (value.contains("spacing_mm") &&
      !TakeNumbers(value["spacing_mm"], facts.spacing_mm.emplace())) {
    return Wrong("spacing_mm");
  }
  if (value.contains("affine")) {
    facts.affine = AffineFromJson(value["affine"]);
    if (!facts.affine) return Wrong("affine");
  }
  return facts;
}

}  // namespace patchbay::results
