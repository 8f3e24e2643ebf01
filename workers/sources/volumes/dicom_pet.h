// PET: the attributes of a file that SUV by body weight is computed from, and the factor they give.
#pragma once

#include <optional>
#include <string>

#include "runtime/core/status.h"

class DcmItem;

namespace patchbay::workers {

/// Times are seconds of one clock, that of the scanner; a number that is absent or 0 is unknown, as
/// is a time of day of 0. They name a patient's day, and are never stored.
struct PetAttributes {
  std::string units;  ///< "BQML", "CNTS", "GML" of Units, or of the unit of enhanced frames
  std::string suv_type, decay_correction, corrections;
  std::optional<double> weight_kg, dose_bq, half_life_s;
  std::optional<double> counts_to_suv, counts_to_bqml;  ///< Philips's
  std::optional<double> injected, injected_time_of_day;
  std::optional<double> series, acquired;
  std::optional<double> scan;        ///< GE's
  std::optional<double> decayed_to;  ///< in enhanced files
};

/// Reads a data set. `unit` is that of its frames' real-world values, "" without one.
PetAttributes ReadPet(DcmItem& data_set, const std::string& unit);

/// SUV by body weight, in g/ml, for one of the values that slope and intercept give. `acquired` is
/// the earliest acquisition of the series. FailedPrecondition names the attribute, with its tag,
/// that is missing, 0, or says that there is no such factor.
StatusOr<double> SuvFactor(const PetAttributes& pet, const std::optional<double>& acquired);

}  // namespace patchbay::workers
