#include "ops/stain_normalize/stain_normalize.h"

#include <utility>

#include "ops/colour/densities.h"
#include "ops/stain_normalize/reinhard_math.h"
#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

Status Wrong(std::string_view where, std::string_view cause) {
  return InvalidArgument(where, ": ", cause);
}

Status CheckFit(plan::StainProfile profile, std::string_view where, const Json& fit) {
  const Status fits = profile == plan::StainProfile::kReinhard
                          ? plan::ReinhardFromValues(fit).status()
                          : plan::MacenkoFromValues(fit).status();
  return fits.ok() ? fits : Wrong(where, MessageOf(fits));
}

Status CheckScanners(const plan::StainReferences& normalize) {
  if (!normalize.IsByScanner()) return absl::OkStatus();
  if (normalize.reference != plan::kDefaultReference || !normalize.reference_fit.empty()) {
    return Wrong("scanners",
                 "exclude reference and reference_fit; the scanner 'other' stands for those that "
                 "are not listed");
  }
  if (normalize.scanners.size() + normalize.scanner_fits.size() > plan::kMaxScanners) {
    return Wrong("scanners", StrCat("more than ", plan::kMaxScanners));
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
  const auto normalize = plan::StainReferences::FromJson(options);
  if (normalize.reference.empty()) return Wrong("reference", "an empty path");
  if (normalize.scanner_column.empty()) return Wrong("scanner_column", "an empty name");
  PB_RETURN_IF_ERROR(CheckScanners(normalize));
  if (normalize.reference_fit.empty()) return absl::OkStatus();
  if (normalize.reference != plan::kDefaultReference) {
    return InvalidArgument("reference and reference_fit exclude each other");
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

config::Key Number(const char* name, double fallback, double min, double max, const char* help) {
  return {.name = name,
          .type = config::KeyType::kFloat,
          .fallback = fallback,
          .min = min,
          .max = max,
          .help = help};
}

/// Options of the op are the references that a plan settles.
config::Key Keys() {
  return {
      .name = "stain_normalize",
      .type = config::KeyType::kMap,
      .help = "maps the colours of each slide to those of a reference",
      .members =
          {{.name = "profile",
            .type = config::KeyType::kChoice,
            .fallback = NameOf(plan::StainProfile::kMacenkoCucim),
            .choices = {std::string(NameOf(plan::StainProfile::kMacenkoCucim)),
                        std::string(NameOf(plan::StainProfile::kReinhard))},
            .help = "stain vectors in optical density, or mean and deviation in L*a*b*; "
                    "both as fitted at ingest"},
           {.name = "reference",
            .type = config::KeyType::kString,
            .fallback = plan::kDefaultReference,
            .help = "`default`, the built-in fit; `cohort`, the medians over the "
                    "run's slides; or the path of a picture or store"},
           {.name = "reference_fit",
            .type = config::KeyType::kFloatList,
            .fallback = Json::array(),
            .max_items = plan::kMacenkoValues,
            .help = "the reference as numbers: hematoxylin and eosin as r, g, b and "
                    "their concentrations, or three means and three deviations"},
           ByScanner("scanners",
                     "for the slides of each scanner, instead of reference: default, "
                     "cohort or a path; `other`: for scanners that are not listed, "
                     "which are refused without it",
                     {.type = config::KeyType::kString}),
           ByScanner("scanner_fits", "the references of scanners as numbers, each as reference_fit",
                     {.type = config::KeyType::kFloatList, .max_items = plan::kMacenkoValues}),
           {.name = "scanner_column",
            .type = config::KeyType::kString,
            .fallback = plan::kScannerColumn,
            .help = "the column of the cohort table that names each slide's scanner"},
           {.name = "misfit",
            .type = config::KeyType::kChoice,
            .fallback = NameOf(plan::StainMisfit::kRefuse),
            .choices = {std::string(NameOf(plan::StainMisfit::kRefuse)),
                        std::string(NameOf(plan::StainMisfit::kKeep)),
                        std::string(NameOf(plan::StainMisfit::kSkip))},
            .help = "slides that are not H&E: refuse the run, use their fit as it is "
                    "(keep), or leave their patches unnormalised (skip)"},
           {.name = "tissue",
            .type = config::KeyType::kString,
            .fallback = "",
            .help = "fit each slide on the tissue of this label set (`labels tissue`), which all "
                    "have; by default of the set `tissue` of those that have it, else over all "
                    "pixels; `none`: over all pixels"},
           Number("alpha", 1, 0, 25,
                  "Macenko's alpha: percentile of the angles that gives a stain"),
           Number("beta", plan::kStainTissueOd, 0, 2,
                  "Macenko's beta: natural optical density above which a pixel counts"),
           Number("background", plan::kStainWhite, 128, 255,
                  "grey level from which on the fit sees no density")},
      .check = CheckTable};
}

/// Refuses an image without a fit, unless such images stay unnormalised.
Status CheckHasFit(bool has_reference, bool has_fit, plan::StainMisfit misfit) {
  if (has_reference && (has_fit || misfit == plan::StainMisfit::kSkip)) return absl::OkStatus();
  return InvalidArgument(
      "run ops: stain_normalize: the image has no stain fit; ingest it into a store");
}

Status CheckFitted(const plan::OpStep& step, const plan::StainReferences& stain) {
  const auto unsettled = stain.Unsettled();
  if (!unsettled.empty()) {
    return plan::WrongOp(step.key,
                         StrCat("reference: '", unsettled.begin()->second, "': not fitted"));
  }
  for (std::size_t i = 0; i < stain.scanner_fits.size(); ++i) {
    if (!stain.scanner_fits.contains(StrCat(i))) {
      return plan::WrongOp(step.key, "scanner_fits: its scanners are not numbered");
    }
  }
  return absl::OkStatus();
}

Status Compile(const plan::OpStep& step, ProgramBuilder& program) {
  const auto stain = plan::StainReferences::FromJson(step.options);
  PB_RETURN_IF_ERROR(CheckFitted(step, stain));
  const std::size_t count = stain.ReferenceCount();
  if (stain.profile == plan::StainProfile::kMacenkoCucim) {
    Densities::Of(program).Normalise(stain.MacenkoReferences(), StainNormalizeStep);
    program.CheckColours([count, misfit = stain.misfit](const ImageColours& colours) {
      return CheckHasFit(colours.stain_reference < count, colours.macenko != nullptr, misfit);
    });
    return absl::OkStatus();
  }
  program.CheckColours([count, misfit = stain.misfit](const ImageColours& colours) {
    return CheckHasFit(colours.stain_reference < count, colours.reinhard != nullptr, misfit);
  });
  program.Add([references = stain.ReinhardReferences(), white = program.shape().White()](
                  const PatchDraw& draw, StepSink& sink) {
    const ImageColours& colours = draw.colours;
    if (colours.reinhard == nullptr) return;
    sink.Add(LabMapOf(*colours.reinhard, references[colours.stain_reference], white));
  });
  return absl::OkStatus();
}

}  // namespace

plan::OpRow DescribeStainNormalize() {
  return {.number = kStainNormalize,
          .keys = Keys(),
          .compile = Compile,
          .needs = {.rgb = true, .once = true, .stain = true},
          .axes = plan::OpAxes::kPlane,
          .images = {kIntensities.begin(), kIntensities.end()}};
}

OdStep StainNormalizeStep(const plan::MacenkoFit& image, const plan::MacenkoFit& reference) {
  const std::array<Vector3, 2> unmix = LeastSquares(image.stains);
  OdStep step;
  step.matrix = {};
  for (std::size_t s = 0; s < 2; ++s) {
    AddStain(step.matrix, reference.stains[s], unmix[s],
             reference.max_concentrations[s] / image.max_concentrations[s]);
  }
  return step;
}

}  // namespace patchbay::ops
