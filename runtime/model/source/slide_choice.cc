#include "runtime/model/source/slide_choice.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "runtime/core/strings.h"

namespace patchbay {

std::string SlideChoice::ToString() const {
  std::string text;
  if (focal_plane) {
    char um[32];
    std::snprintf(um, sizeof um, "%.6g", *focal_plane);
    text = StrCat("focal plane at ", um, " um");
  }
  if (optical_path.empty()) return text;
  return StrCat(text, text.empty() ? "" : ", ", "optical path ", optical_path);
}

bool SlideChoice::IsSameAs(const SlideChoice& other) const {
  if (focal_plane.has_value() != other.focal_plane.has_value()) return false;
  const bool is_far = focal_plane && std::abs(*focal_plane - *other.focal_plane) >= kSameFocalUm;
  return !is_far && optical_path == other.optical_path;
}

StatusOr<std::optional<double>> ParseFocalPlane(std::string_view cell) {
  if (cell.empty()) return std::optional<double>();
  double um = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), um);
  const bool is_number = error == std::errc() && end == cell.data() + cell.size();
  if (is_number && std::abs(um) <= kLargestFocalUm) return std::optional<double>(um);
  return InvalidArgument("'", cell, "': not the height of a focal plane in um, of at most ",
                         kLargestFocalUm);
}

}  // namespace patchbay
