#include "workers/sources/scan_description.h"

#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "runtime/model/source/mpp_range.h"
#include "workers/sources/source_extent.h"
#include "workers/sources/xml_tags.h"

namespace patchbay::workers {
namespace {

/// Members of OME's UnitsLength that a microscope states; the default of the schema is um.
std::optional<double> MicrometresOf(std::string_view unit) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"\u00B5m", 1}, {"\u03BCm", 1}, {"um", 1},  {"&#181;m", 1},   {"&#xB5;m", 1}, {"nm", 1e-3},
      {"mm", 1e3},    {"cm", 1e4},    {"m", 1e6}, {"\u00C5", 1e-4}, {"in", 25400},  {"pm", 1e-6},
  };
  for (const auto& [name, micrometres] : kUnits) {
    if (name == unit) return micrometres;
  }
  return std::nullopt;
}

std::optional<double> SizeOf(const XmlTag& pixels, std::string_view size,
                             std::string_view size_unit) {
  const auto text = XmlAttribute(pixels, size);
  if (!text) return std::nullopt;
  double value = 0;
  const auto read = std::from_chars(text->data(), text->data() + text->size(), value);
  const bool is_whole = read.ec == std::errc() && read.ptr == text->data() + text->size();
  const auto unit = MicrometresOf(XmlAttribute(pixels, size_unit).value_or("um"));
  if (!is_whole || !unit || !std::isfinite(value)) return std::nullopt;
  const double um = value * *unit;
  if (um < kSmallestMpp || um > kLargestMpp) return std::nullopt;
  return um;
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\v\f";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
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

bool IsOmeDescription(std::string_view description) {
  return FindXmlTag(description.substr(0, 65536), "OME").has_value();
}

OmeDescription ParseOmeDescription(std::string_view description) {
  const auto pixels = FindXmlTag(description, "Pixels");
  if (!pixels) return {};
  return {SizeOf(*pixels, "PhysicalSizeY", "PhysicalSizeYUnit"),
          SizeOf(*pixels, "PhysicalSizeX", "PhysicalSizeXUnit")};
}

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
    if (key == "ScannerType") out.scanner_type = value;
    if (key == "Date") out.date = value;
    if (key == "Time") out.time = value;
    if (key == "AppMag") out.objective_power = PositiveNumber(value);
  }
  return out;
}

}  // namespace patchbay::workers
