// The fields of an Aperio description, by allow-list: everything else in it may name a patient.
#pragma once

#include <optional>
#include <string_view>

namespace patchbay::workers {

struct AperioDescription {
  std::optional<double> mpp;              ///< micrometres per pixel, as stated; never derived
  std::optional<double> objective_power;  ///< AppMag
};

/// True for the description of the first directory of an Aperio slide, variants of other scanners
/// that write the same layout included.
bool IsAperioDescription(std::string_view description);

/// Reads `key = value` fields parted by '|'. Keys and values are trimmed, a decimal comma is a
/// point, of a key that appears twice the last counts; what is not a positive number is absent.
AperioDescription ParseAperioDescription(std::string_view description);

}  // namespace patchbay::workers
