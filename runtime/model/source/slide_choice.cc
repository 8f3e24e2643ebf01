#include "runtime/model/source/slide_choice.h"

#include <charconv>
#include <cmath>

namespace patchbay {

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
