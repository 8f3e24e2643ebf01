#include "runtime/model/ops/stain_normalize.h"

#include <algorithm>
#include <utility>

#include "runtime/core/strings.h"

namespace patchbay::plan {
namespace {

/// As `patchbay scan` writes it.
constexpr std::string_view kScannerColumn = "scanner";
constexpr StainProfile kProfiles[] = {StainProfile::kMacenkoCucim, StainProfile::kReinhard};

StainProfile ProfileOf(const Json& name) {
  for (const StainProfile profile : kProfiles) {
    if (NameOf(profile) == name.get_ref<const std::string&>()) return profile;
  }
  return StainProfile::kMacenkoCucim;
}

Status Wrong(std::string_view where, std::string_view cause) {
  return absl::InvalidArgumentError(StrCat(where, ": ", cause));
}

Status CheckFit(StainProfile profile, std::string_view where, const Json& fit) {
  const Status fits = profile == StainProfile::kReinhard ? ReinhardFromValues(fit).status()
                                                         : MacenkoFromValues(fit).status();
  return fits.ok() ? fits : Wrong(where, MessageOf(fits));
}

Status CheckScanners(const StainNormalizeOptions& normalize) {
  if (!normalize.IsByScanner()) return absl::OkStatus();
  if (normalize.reference != kDefaultReference || !normalize.reference_fit.empty()) {
    return Wrong("scanners",
                 "exclude reference and reference_fit; the scanner 'other' stands for those that "
                 "are not listed");
  }
  if (normalize.scanners.size() + normalize.scanner_fits.size() > kMaxScanners) {
    return Wrong("scanners", StrCat("more than ", kMaxScanners));
  }
  for (const auto& [name, reference] : normalize.scanners.items()) {
    if (normalize.scanner_fits.contains(name)) {
      return Wrong("scanners", StrCat("'", name, "' is in scanner_fits too"));
    }
    if (reference == "") return Wrong(StrCat("scanners.", name), "an empty path");
  }
  for (const auto& [name, fit] : normalize.scanner_fits.items()) {
    PB_RETURN_IF_ERROR(CheckFit(normalize.profile, StrCat("scanner_fits.", name), fit));
  }
  return absl::OkStatus();
}

Status CheckTable(const Json& options) {
  const auto normalize = StainNormalizeOptions::FromJson(options);
  if (normalize.reference.empty()) return Wrong("reference", "an empty path");
  if (normalize.scanner_column.empty()) return Wrong("scanner_column", "an empty name");
  PB_RETURN_IF_ERROR(CheckScanners(normalize));
  if (normalize.reference_fit.empty()) return absl::OkStatus();
  if (normalize.reference != kDefaultReference) {
    return absl::InvalidArgumentError("reference and reference_fit exclude each other");
  }
  return CheckFit(normalize.profile, "reference_fit", normalize.reference_fit);
}

config::Key ByScanner(const char* name, const char* help, config::Key value) {
  return {.name = name,
          .type = config::KeyType::kNamed,
          .fallback = Json::object(),
          .help = help,
          .members = {std::move(value)}};
}

/// Calls `change` with the options of every stain_normalize.
template <typename Change>
void ForEachNormalize(Json& preprocess, Json& augment, const Change& change) {
  for (Json* list : {&preprocess, &augment}) {
    for (Json& step : *list) {
      if (step.contains(kStainNormalize)) change(step[kStainNormalize]);
    }
  }
}

/// One fit a reference, as `from` reads numbers.
template <typename Fit, typename FromValues>
std::vector<Fit> References(const StainNormalizeOptions& options, const Fit& shipped,
                            const FromValues& from) {
  if (!options.IsByScanner()) {
    return {options.reference_fit.empty() ? shipped : from(options.reference_fit).value()};
  }
  std::vector<Fit> fits;
  for (std::size_t i = 0; i < options.scanner_fits.size(); ++i) {
    fits.push_back(from(options.scanner_fits[StrCat(i)]).value());
  }
  return fits;
}

}  // namespace

std::string_view NameOf(StainProfile profile) {
  return profile == StainProfile::kReinhard ? "reinhard" : "macenko/cucim";
}

config::Key StainNormalizeOptions::Keys() {
  return {.name = std::string(kStainNormalize),
          .type = config::KeyType::kMap,
          .help = "maps the colours of each slide to those of a reference",
          .members = {{.name = "profile",
                       .type = config::KeyType::kChoice,
                       .fallback = NameOf(StainProfile::kMacenkoCucim),
                       .choices = {std::string(NameOf(StainProfile::kMacenkoCucim)),
                                   std::string(NameOf(StainProfile::kReinhard))},
                       .help = "stain vectors in optical density, or mean and deviation in L*a*b*; "
                               "both as fitted at ingest"},
                      {.name = "reference",
                       .type = config::KeyType::kString,
                       .fallback = kDefaultReference,
                       .help = "`default`, the shipped numbers; `cohort`, the medians over the "
                               "run's slides; or the path of a picture or store"},
                      {.name = "reference_fit",
                       .type = config::KeyType::kFloatList,
                       .fallback = Json::array(),
                       .max_items = kMacenkoValues,
                       .help = "the reference as numbers: hematoxylin and eosin as r, g, b and "
                               "their concentrations, or three means and three deviations"},
                      ByScanner("scanners",
                                "for the slides of each scanner, instead of reference: default, "
                                "cohort or a path; `other`: for scanners that are not listed, "
                                "which are refused without it",
                                {.type = config::KeyType::kString}),
                      ByScanner("scanner_fits",
                                "the references of scanners as numbers, each as reference_fit",
                                {.type = config::KeyType::kFloatList, .max_items = kMacenkoValues}),
                      {.name = "scanner_column",
                       .type = config::KeyType::kString,
                       .fallback = kScannerColumn,
                       .help = "the column of the cohort table that names each slide's scanner"}},
          .check = CheckTable};
}

StainNormalizeOptions StainNormalizeOptions::FromJson(const Json& options) {
  return {ProfileOf(options["profile"]), options["reference"].get<std::string>(),
          options["reference_fit"],      options["scanners"],
          options["scanner_fits"],       options["scanner_column"].get<std::string>()};
}

std::map<std::string, std::string> StainNormalizeOptions::Unsettled() const {
  std::map<std::string, std::string> names;
  for (const auto& [scanner, name] : scanners.items()) names[scanner] = name.get<std::string>();
  if (reference != kDefaultReference) names[""] = reference;
  return names;
}

bool StainNormalizeOptions::NeedsCohort() const {
  const auto names = Unsettled();
  return std::any_of(names.begin(), names.end(),
                     [](const auto& each) { return each.second == kCohortReference; });
}

std::vector<MacenkoFit> StainNormalizeOptions::MacenkoReferences() const {
  return References(*this, DefaultMacenko(), MacenkoFromValues);
}

std::vector<ReinhardFit> StainNormalizeOptions::ReinhardReferences() const {
  return References(*this, DefaultReinhard(), ReinhardFromValues);
}

std::string PictureStatistic(std::string_view reference) {
  return StrCat(kStainReference, ":", reference);
}

bool IsPictureReference(std::string_view reference) {
  return reference != kDefaultReference && reference != kCohortReference;
}

std::optional<StainNormalizeOptions> FindStainNormalize(const Json& preprocess,
                                                        const Json& augment) {
  for (const Json* list : {&preprocess, &augment}) {
    for (const Json& step : *list) {
      if (step.contains(kStainNormalize)) {
        return StainNormalizeOptions::FromJson(step[kStainNormalize]);
      }
    }
  }
  return std::nullopt;
}

void SetStainReference(Json& preprocess, Json& augment, const std::string& scanner,
                       std::string_view reference) {
  ForEachNormalize(preprocess, augment, [&](Json& options) {
    (scanner.empty() ? options["reference"] : options["scanners"][scanner]) = reference;
  });
}

void SettleStainReference(Json& preprocess, Json& augment, const std::string& scanner,
                          const Json& fit) {
  ForEachNormalize(preprocess, augment, [&](Json& options) {
    if (scanner.empty()) {
      options["reference"] = kDefaultReference;
      options["reference_fit"] = fit;
    } else {
      options["scanners"].erase(scanner);
      options["scanner_fits"][scanner] = fit;
    }
  });
}

void SettleCohortReferences(Json& preprocess, Json& augment, const Json& fit) {
  const auto normalize = FindStainNormalize(preprocess, augment);
  if (!normalize) return;
  for (const auto& [scanner, reference] : normalize->Unsettled()) {
    if (reference == kCohortReference) SettleStainReference(preprocess, augment, scanner, fit);
  }
}

void NumberScanners(Json& preprocess, Json& augment, const std::vector<std::string>& names) {
  ForEachNormalize(preprocess, augment, [&](Json& options) {
    for (const char* const map : {"scanners", "scanner_fits"}) {
      Json numbered = Json::object();
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (options[map].contains(names[i])) numbered[StrCat(i)] = options[map][names[i]];
      }
      options[map] = std::move(numbered);
    }
    options["scanner_column"] = kScannerColumn;
  });
}

}  // namespace patchbay::plan
