#include "runtime/core/spacing.h"

namespace patchbay {
namespace {

struct UnitRow {
  LengthUnit unit;
  std::string_view name;
  double micrometres;
};

constexpr UnitRow kLengthUnits[] = {
    {LengthUnit::kAngstrom, "angstrom", 1e-4},    {LengthUnit::kNanometer, "nanometer", 1e-3},
    {LengthUnit::kMicrometer, "micrometer", 1.0}, {LengthUnit::kMillimeter, "millimeter", 1e3},
    {LengthUnit::kCentimeter, "centimeter", 1e4}, {LengthUnit::kMeter, "meter", 1e6},
};

}  // namespace

std::string_view NameOf(LengthUnit unit) {
  return kLengthUnits[static_cast<std::size_t>(unit)].name;
}

std::optional<LengthUnit> LengthUnitFromName(std::string_view name) {
  for (const UnitRow& row : kLengthUnits) {
    if (row.name == name) return row.unit;
  }
  return std::nullopt;
}

double MicrometresIn(LengthUnit unit) {
  return kLengthUnits[static_cast<std::size_t>(unit)].micrometres;
}

std::optional<double> Spacing::MeanMpp() const {
  if (!y || !x) return std::nullopt;
  return (x->Micrometres() + y->Micrometres()) / 2;
}

Spacing SpacingOfMpp(std::optional<double> y, std::optional<double> x) {
  Spacing spacing;
  if (y) spacing.y = AxisSpacing{*y, LengthUnit::kMicrometer};
  if (x) spacing.x = AxisSpacing{*x, LengthUnit::kMicrometer};
  return spacing;
}

}  // namespace patchbay
