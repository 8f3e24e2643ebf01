#include "workers/sources/volumes/dicom_pet.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <string_view>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dctk.h>

#include "runtime/core/strings.h"
#include "workers/sources/volumes/dicom_library.h"

namespace patchbay::workers {
namespace {

constexpr double kDay = 86'400, kHalfDay = kDay / 2;
/// Clocks of one scanner differ by less.
constexpr double kSameTime = 1;
/// After so many half-lives there is nothing to scan: dates that do not belong together.
constexpr double kMostHalfLives = 20;

Status Lacks(std::string_view cause) {
  return FailedPrecondition(cause, ": SUV cannot be computed");
}

std::optional<double> Positive(std::optional<double> number) {
  return number && *number > 0 ? number : std::nullopt;
}

/// The digits [at, at + count) as a number.
std::optional<unsigned> DigitsAt(std::string_view text, std::size_t at, std::size_t count) {
  unsigned value = 0;
  if (text.size() < at + count) return std::nullopt;
  const char* end = text.data() + at + count;
  const auto [after, error] = std::from_chars(text.data() + at, end, value);
  return error == std::errc() && after == end ? std::optional(value) : std::nullopt;
}

/// Seconds of "HHMMSS.FFF", of which the seconds may be missing.
std::optional<double> TimeOfDay(std::string_view text) {
  const auto hours = DigitsAt(text, 0, 2), minutes = DigitsAt(text, 2, 2);
  if (!hours || !minutes) return std::nullopt;
  const auto seconds = text.size() > 4 ? ToNumber(std::string(text.substr(4))) : 0;
  return seconds ? Positive(*hours * 3600.0 + *minutes * 60.0 + *seconds) : std::nullopt;
}

/// Seconds from an epoch to the beginning of "YYYYMMDD".
std::optional<double> Day(std::string_view text) {
  const auto y = DigitsAt(text, 0, 4), m = DigitsAt(text, 4, 2), d = DigitsAt(text, 6, 2);
  if (!y || !m || !d) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*y)),
                                         std::chrono::month(*m), std::chrono::day(*d)};
  if (!date.ok()) return std::nullopt;
  return static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count()) * kDay;
}

std::optional<double> Moment(std::string_view date, std::string_view time) {
  const auto day = Day(date), of_day = TimeOfDay(time);
  return day && of_day ? std::optional(*day + *of_day) : std::nullopt;
}

/// Seconds of "+0130".
std::optional<double> Zone(std::string_view text) {
  const auto hours = DigitsAt(text, 1, 2), minutes = DigitsAt(text, 3, 2);
  if (!hours || !minutes) return std::nullopt;
  return (text.front() == '-' ? -1 : 1) * (*hours * 3600.0 + *minutes * 60.0);
}

/// A date and time in one, on the clock of the zone `local`.
std::optional<double> MomentOf(std::string_view text, const std::optional<double>& local) {
  constexpr std::size_t kDateDigits = 8;
  const std::size_t zone_at = std::min(text.find_first_of("+-"), text.size());
  const std::string_view digits = text.substr(0, zone_at);
  if (digits.size() < kDateDigits) return std::nullopt;
  auto moment = Moment(digits.substr(0, kDateDigits), digits.substr(kDateDigits));
  const auto zone = Zone(text.substr(zone_at));
  if (moment && zone && local) *moment += *local - *zone;
  return moment;
}

/// The start of the scan, to which a dose decays with DecayCorrection START.
StatusOr<double> StartOf(const PetAttributes& pet, const std::optional<double>& acquired) {
  if (!pet.series) return Lacks("SeriesDate and SeriesTime (0008,0031) are missing or 0");
  if (!acquired) return Lacks("AcquisitionDate and AcquisitionTime (0008,0032) are missing or 0");
  if (*pet.series <= *acquired + kSameTime) return *pet.series;
  if (pet.scan) return *pet.scan;
  return Lacks(
      "SeriesTime (0008,0031) is later than AcquisitionTime (0008,0032), and there is no scan time "
      "of GE (0009,100d)");
}

/// Seconds from the injection to `start`.
StatusOr<double> DecayTime(const PetAttributes& pet, double start) {
  std::optional<double> injected = pet.injected;
  if (!injected && pet.injected_time_of_day) {
    injected = std::floor(start / kDay) * kDay + *pet.injected_time_of_day;
    if (*injected - start > kHalfDay) *injected -= kDay;  // before midnight
  }
  if (!injected) return Lacks("RadiopharmaceuticalStartTime (0018,1072) is missing or 0");
  const double decay = start - *injected;
  if (decay < 0) {
    return Lacks("RadiopharmaceuticalStartTime (0018,1072, 0018,1078) is after the scan's start");
  }
  if (decay <= kMostHalfLives * *pet.half_life_s) return decay;
  return Lacks(StrCat("RadiopharmaceuticalStartDateTime (0018,1078) is more than ", kMostHalfLives,
                      " half-lives before the scan"));
}

/// The dose, in Bq, that the values are corrected to.
StatusOr<double> DecayedDose(const PetAttributes& pet, const std::optional<double>& acquired) {
  if (!pet.dose_bq) return Lacks("RadionuclideTotalDose (0018,1074) is missing or 0");
  if (pet.decay_correction == "ADMIN") return *pet.dose_bq;
  const bool from_start = pet.decay_correction == "START";
  if (!from_start && !(pet.decay_correction.empty() && pet.decayed_to)) {
    return Lacks(StrCat("DecayCorrection (0054,1102) is ",
                        pet.decay_correction == "NONE" ? "NONE" : "missing or unknown"));
  }
  if (!pet.half_life_s) return Lacks("RadionuclideHalfLife (0018,1075) is missing or 0");
  double start = pet.decayed_to.value_or(0);
  if (from_start) {
    PB_ASSIGN_OR_RETURN(start, StartOf(pet, acquired));
  }
  PB_ASSIGN_OR_RETURN(const double decay, DecayTime(pet, start));
  return *pet.dose_bq * std::exp2(-decay / *pet.half_life_s);
}

}  // namespace

PetAttributes ReadPet(DcmItem& data_set, const std::string& unit) {
  PetAttributes pet;
  const auto text = [&data_set](unsigned group, unsigned element) {
    return DicomText(data_set, group, element);
  };
  const auto local = Zone(text(0x0008, 0x0201));
  pet.units = text(0x0054, 0x1001);
  if (pet.units.empty()) {
    pet.units = unit == "Bq/ml"                                  ? "BQML"
                : unit == "g/ml{SUVbw}" || unit == "{SUVbw}g/ml" ? "GML"
                                                                 : "";
  }
  pet.suv_type = text(0x0054, 0x1006);
  pet.decay_correction = text(0x0054, 0x1102);
  pet.corrections = text(0x0028, 0x0051);
  pet.weight_kg = Positive(DicomNumber(data_set, 0x0010, 0x1030));
  pet.series = Moment(text(0x0008, 0x0021), text(0x0008, 0x0031));
  pet.acquired = Moment(text(0x0008, 0x0022), text(0x0008, 0x0032));
  if (!pet.acquired) pet.acquired = MomentOf(text(0x0008, 0x002a), local);
  if (text(0x0018, 0x9758) == "YES") pet.decayed_to = MomentOf(text(0x0018, 0x9701), local);
  const auto private_text = [&](std::string_view creator, unsigned group, unsigned element) {
    return text(group, DicomPrivateElement(data_set, creator, group, element));
  };
  pet.scan = MomentOf(private_text("GEMS_PETD_01", 0x0009, 0x0d), local);
  constexpr std::string_view kPhilips = "Philips PET Private Group";
  pet.counts_to_suv = Positive(ToNumber(private_text(kPhilips, 0x7053, 0x00)));
  pet.counts_to_bqml = Positive(ToNumber(private_text(kPhilips, 0x7053, 0x09)));
  DcmItem* dose = DicomItem(data_set, 0x0054, 0x0016);
  if (dose == nullptr) return pet;
  pet.dose_bq = Positive(DicomNumber(*dose, 0x0018, 0x1074));
  pet.half_life_s = Positive(DicomNumber(*dose, 0x0018, 0x1075));
  pet.injected = MomentOf(DicomText(*dose, 0x0018, 0x1078), local);
  pet.injected_time_of_day = TimeOfDay(DicomText(*dose, 0x0018, 0x1072));
  return pet;
}

StatusOr<double> SuvFactor(const PetAttributes& pet, const std::optional<double>& acquired) {
  if (pet.units == "GML") {
    if (pet.suv_type.empty() || pet.suv_type == "BW") return 1;
    return Lacks("SUVType (0054,1006) is not BW");
  }
  double to_bqml = 1;
  if (pet.units == "CNTS") {
    if (pet.counts_to_suv) return *pet.counts_to_suv;
    if (!pet.counts_to_bqml) {
      return Lacks(
          "Units (0054,1001) are CNTS, and Philips's factors (7053,1000) and (7053,1009) "
          "are missing or 0");
    }
    to_bqml = *pet.counts_to_bqml;
  } else if (pet.units != "BQML") {
    return Lacks("Units (0054,1001) are none of BQML, CNTS and GML");
  }
  if (!pet.weight_kg) return Lacks("PatientWeight (0010,1030) is missing or 0");
  PB_ASSIGN_OR_RETURN(const double dose_bq, DecayedDose(pet, acquired));
  return to_bqml * *pet.weight_kg * 1000 / dose_bq;
}

}  // namespace patchbay::workers
