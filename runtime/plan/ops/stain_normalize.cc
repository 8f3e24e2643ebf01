#include "runtime/plan/ops/stain_normalize.h"

#include "runtime/base/strings.h"

namespace patchbay::plan {
namespace {

constexpr StainProfile kProfiles[] = {StainProfile::kMacenkoCucim, StainProfile::kReinhard};

StainProfile ProfileOf(const Json& name) {
  for (const StainProfile profile : kProfiles) {
    if (NameOf(profile) == name.get_ref<const std::string&>()) return profile;
  }
  return StainProfile::kMacenkoCucim;
}

Status CheckTable(const Json& options) {
  const auto normalize = StainNormalizeOptions::FromJson(options);
  if (normalize.reference.empty()) return absl::InvalidArgumentError("reference: an empty path");
  if (normalize.reference_fit.empty()) return absl::OkStatus();
  if (normalize.reference != kDefaultReference) {
    return absl::InvalidArgumentError("reference and reference_fit exclude each other");
  }
  const Status fits = normalize.profile == StainProfile::kReinhard
                          ? ReinhardFromValues(normalize.reference_fit).status()
                          : MacenkoFromValues(normalize.reference_fit).status();
  if (fits.ok()) return fits;
  return absl::InvalidArgumentError(StrCat("reference_fit: ", MessageOf(fits)));
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
                               "their concentrations, or three means and three deviations"}},
          .check = CheckTable};
}

StainNormalizeOptions StainNormalizeOptions::FromJson(const Json& options) {
  return {ProfileOf(options["profile"]), options["reference"].get<std::string>(),
          options["reference_fit"]};
}

bool StainNormalizeOptions::IsPicture() const {
  return reference != kDefaultReference && reference != kCohortReference;
}

MacenkoFit StainNormalizeOptions::MacenkoReference() const {
  if (reference_fit.empty()) return DefaultMacenko();
  return MacenkoFromValues(reference_fit).value();
}

ReinhardFit StainNormalizeOptions::ReinhardReference() const {
  if (reference_fit.empty()) return DefaultReinhard();
  return ReinhardFromValues(reference_fit).value();
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

void SetStainReference(Json& preprocess, Json& augment, std::string_view reference) {
  for (Json* list : {&preprocess, &augment}) {
    for (Json& step : *list) {
      if (step.contains(kStainNormalize)) step[kStainNormalize]["reference"] = reference;
    }
  }
}

void SettleStainReference(Json& preprocess, Json& augment, const Json& reference_fit) {
  SetStainReference(preprocess, augment, kDefaultReference);
  for (Json* list : {&preprocess, &augment}) {
    for (Json& step : *list) {
      if (step.contains(kStainNormalize)) step[kStainNormalize]["reference_fit"] = reference_fit;
    }
  }
}

}  // namespace patchbay::plan
