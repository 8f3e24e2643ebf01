#include "workers/sources/aperio.h"

#include <charconv>
#include <cmath>
#include <string>

namespace patchbay::workers {
namespace {

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::optional<double> PositiveNumber(std::string_view text) {
  std::string plain(text);
  for (char& c : plain) {
    if (c == ',') c = '.';
  }
  double value = 0;
  const auto result = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  const bool is_whole = result.ec == std::errc() && result.ptr == plain.data() + plain.size();
  if (!is_whole || !std::isfinite(value) || value <= 0) return std::nullopt;
  return value;
}

}  // namespace

bool IsAperioDescription(std::string_view description) {
  return description.substr(0, 6) == "Aperio";
}

AperioDescription ParseAperioDescription(std::string_view description) {
  AperioDescription out;
  while (!description.empty()) {
    const auto bar = description.find('|');
    const std::string_view field = description.substr(0, bar);
    description.remove_prefix(bar == std::string_view::npos ? description.size() : bar + 1);
    const auto equals = field.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = Trim(field.substr(0, equals));
    const std::string_view value = Trim(field.substr(equals + 1));
    if (key == "MPP") out.mpp = PositiveNumber(value);
    if (key == "AppMag") out.objective_power = PositiveNumber(value);
  }
  return out;
}

}  // namespace patchbay::workers
