#include "workers/jobs/plan/stain_reference.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "ops/stain_normalize/fit_stains.h"
#include "ops/stain_normalize/stain_histogram.h"
#include "runtime/core/hash.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/format/zarr/tied_file.h"
#include "runtime/model/ops/stain_references.h"
#include "runtime/model/plan/image_colours.h"
#include "runtime/os/file.h"
#include "workers/access/stamps.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {
namespace {

constexpr std::int64_t kMaxPicturePixels = std::int64_t{1} << 26;
constexpr std::int64_t kBandRows = 256;
constexpr std::size_t kMaxColourBytes = std::size_t{32} << 20;

Status NoReference(std::string_view cause) { return InvalidArgument(cause); }

/// An error whose cure is another reference, as one of the config's key; others as they are.
Status AtReferenceKey(const plan::RunConfig& config, const std::string& scanner,
                      const Status& status) {
  if (!absl::IsInvalidArgument(status) && !absl::IsNotFound(status) &&
      !absl::IsPermissionDenied(status) && !absl::IsDataLoss(status)) {
    return status;
  }
  return Annotate(WithCode(status, absl::StatusCode::kInvalidArgument),
                  StrCat("plan stream: key '", plan::FindStainOp(config).key,
                         scanner.empty() ? ".reference'" : ".scanners'"));
}

double Median(std::vector<double> values) {
  const std::size_t half = values.size() / 2;
  std::sort(values.begin(), values.end());
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Value by value; the stains made unit vectors again.
Json MediansOf(const std::vector<Json>& fits, bool has_vectors) {
  Json medians = Json::array();
  for (std::size_t i = 0; i < fits.front().size(); ++i) {
    std::vector<double> values;
    for (const Json& fit : fits) values.push_back(fit[i].get<double>());
    medians.push_back(Median(std::move(values)));
  }
  for (std::size_t first = 0; has_vectors && first < 6; first += 3) {
    double square = 0;
    for (std::size_t i = first; i < first + 3; ++i) square += std::pow(medians[i].get<double>(), 2);
    for (std::size_t i = first; i < first + 3; ++i) {
      medians[i] = medians[i].get<double>() / std::sqrt(square);
    }
  }
  return medians;
}

StatusOr<Json> CohortReference(const std::vector<plan::PlannedImage>& images,
                               plan::StainProfile profile) {
  std::vector<Json> fits;
  const bool has_vectors = profile == plan::StainProfile::kMacenkoCucim;
  for (const plan::PlannedImage& image : images) {
    if (!image.macenko || !image.reinhard) continue;  // it stays unnormalised
    if (has_vectors && image.macenko->fallback == plan::StainFallback::kNone) {
      fits.push_back(plan::ValuesOf(*image.macenko));
    } else if (!has_vectors && image.reinhard->fallback == plan::StainFallback::kNone) {
      fits.push_back(plan::ValuesOf(*image.reinhard));
    }
  }
  if (fits.empty()) return NoReference("cohort: none of the images has a stain fit of its own");
  return MediansOf(fits, has_vectors);
}

Json ShippedReference(plan::StainProfile profile) {
  return profile == plan::StainProfile::kReinhard ? plan::ValuesOf(plan::DefaultReinhard())
                                                  : plan::ValuesOf(plan::DefaultMacenko());
}

/// The fit of counted colours, under the options of the run.
StatusOr<RecordedStain> FitOfColours(TaskContext& context, const ops::StainHistogram& colours,
                                     const ImageSource& image, const WantedStain& wanted) {
  ops::StainFitOptions options{.tissue_od = wanted.options.beta,
                               .angle_percentile = wanted.options.alpha,
                               .white = wanted.options.background};
  std::shared_ptr<const ops::IccLookup> lookup;
  if (wanted.colours == StainColours::kSrgb) {
    const auto found = image.ToSrgb();
    if (found.ok()) lookup = *found;
    if (!found.ok() && !absl::IsInvalidArgument(found.status())) return found.status();
  }
  if (lookup != nullptr) {
    options.to_srgb = [&lookup](float(&rgb)[3]) { lookup->Apply(&rgb[0], &rgb[1], &rgb[2], 1); };
  }
  const auto judged = ops::JudgeStains(colours, options, [&context] { context.AddProgress(); });
  return RecordedStain{ops::Rounded(judged.fit), judged.evidence};
}

/// The colours of the tissue of an image's label set; nullopt for a set without them. NotFound
/// without the set.
StatusOr<std::optional<ops::StainHistogram>> TissueColours(const Folders& allowed,
                                                           const std::string& store,
                                                           const WantedStain& wanted) {
  const std::string set = wanted.options.TissueSet();
  PB_ASSIGN_OR_RETURN(const std::shared_ptr<const zarr::OpenedLabelSet> opened,
                      OpenRevision(allowed, store, set, wanted.tissue));
  const StatusOr<std::string> text =
      ReadFile(allowed, StrCat(opened->path, "/", kTissueColoursFile), kMaxColourBytes);
  if (absl::IsNotFound(text.status())) return std::optional<ops::StainHistogram>();
  if (!text.ok()) return text.status();
  const Json files = opened->attributes.value("files", Json::object());
  if (files.is_object() && files.value(kTissueColoursFile, Json()) == Sha256Of(*text).Hex()) {
    PB_ASSIGN_OR_RETURN(ops::StainHistogram colours, ops::ParseHistogram(*text));
    return std::optional(std::move(colours));
  }
  return DataLoss("the label set '", set, "': its ", kTissueColoursFile,
                  " is another file than was written: import it again");
}

bool HasFit(const RecordedStain& stain, plan::StainProfile profile) {
  return (profile == plan::StainProfile::kReinhard
              ? stain.fit.reinhard.fallback
              : stain.fit.macenko.fallback) == plan::StainFallback::kNone;
}

/// The fit of the tissue of an image's label set. Background is that of the whole image: a mask has
/// none. nullopt where the run asks for no set, and the image has none of that name, or one without
/// colours or with too little tissue.
StatusOr<std::optional<RecordedStain>> FitOfTissue(TaskContext& context, const std::string& store,
                                                   const WantedStain& wanted) {
  const bool is_asked = wanted.options.AsksForTissue();
  const auto colours = TissueColours(context.allowed, store, wanted);
  const bool is_pinned = wanted.tissue.by != LabelRevision::By::kCurrent;
  if (!is_asked && !is_pinned && absl::IsNotFound(colours.status())) {
    return std::optional<RecordedStain>();
  }
  PB_RETURN_IF_ERROR(colours.status());
  if (!*colours && is_asked) {
    return InvalidArgument("the label set '", wanted.options.tissue,
                           "' has no colours of its tissue: make it again, with `patchbay labels "
                           "tissue`, or import it with a class `tissue`");
  }
  if (!*colours) return std::optional<RecordedStain>();
  PB_ASSIGN_OR_RETURN(const std::unique_ptr<ImageSource> image, OpenImage(context.allowed, store));
  PB_ASSIGN_OR_RETURN(RecordedStain stain, FitOfColours(context, **colours, *image, wanted));
  if (!is_asked && !HasFit(stain, wanted.options.profile)) return std::optional<RecordedStain>();
  PB_ASSIGN_OR_RETURN(const auto whole, RecordedStainOf(context.allowed, store, wanted.colours));
  stain.evidence->background = whole && whole->evidence ? whole->evidence->background : 255;
  stain.of_tissue = true;
  return std::optional(std::move(stain));
}

/// The fit of all pixels by the numbers of the run, of the colours that ingest left in the store;
/// nullopt for a store without them.
StatusOr<std::optional<RecordedStain>> FitOfAll(TaskContext& context, const std::string& store,
                                                const WantedStain& wanted) {
  const Json pixels = RecordedAttribute(context.allowed, store, "pixel_digest");
  if (!pixels.is_string()) return std::optional<RecordedStain>();
  PB_ASSIGN_OR_RETURN(const Digest digest, Digest::FromHex(pixels.get<std::string>()));
  const auto bytes =
      zarr::ReadTied(context.allowed, StrCat(store, "/", zarr::kStainColoursFile), digest);
  if (absl::IsNotFound(bytes.status())) return std::optional<RecordedStain>();
  if (!bytes.ok()) {
    return Annotate(bytes.status(), zarr::kStainColoursFile);
  }
  PB_ASSIGN_OR_RETURN(const ops::StainHistogram colours, ops::ParseHistogram(*bytes));
  PB_ASSIGN_OR_RETURN(const std::unique_ptr<ImageSource> image, OpenImage(context.allowed, store));
  PB_ASSIGN_OR_RETURN(RecordedStain stain, FitOfColours(context, colours, *image, wanted));
  return std::optional(std::move(stain));
}

/// The fit of a store: of the tissue of its label set, else of all pixels; nullopt for a store
/// without.
StatusOr<std::optional<RecordedStain>> FitOfStore(TaskContext& context, const std::string& store,
                                                  const WantedStain& wanted) {
  if (!wanted.options.TissueSet().empty()) {
    auto of_tissue = FitOfTissue(context, store, wanted);
    if (!of_tissue.ok() || *of_tissue) return of_tissue;
  }
  if (!wanted.options.FitsAsIngest()) return FitOfAll(context, store, wanted);
  return RecordedStainOf(context.allowed, store, wanted.colours);
}

/// The colours of the picture's finest level, all of their bits.
StatusOr<ops::StainHistogram> PictureColours(TaskContext& context, const ImageSource& image) {
  const Extent size = image.layout().levels.front().size;
  if (!IsRgb(image.layout()) || size.z != 1) {
    return NoReference("it is not RGB of uint8");
  }
  if (size.Pixels() > kMaxPicturePixels) {
    return NoReference(StrCat(size.ToString(), " pixels are more than ", kMaxPicturePixels,
                              ": name a tile, or the slide's store"));
  }
  ops::StainCounter colours(ops::kMaxColourBits);
  const auto scratch = image.MakeScratch();
  EncodedPatch encoded;
  encoded.after_piece = ProgressOf(context);
  std::vector<std::byte> pixels;
  for (std::int64_t y = 0; y < size.y; y += kBandRows) {
    const Box band = Box2D(y, 0, std::min(kBandRows, size.y - y), size.x);
    pixels.resize(static_cast<std::size_t>(3 * band.height * band.width));
    const TensorView view =
        ContiguousView<3>(pixels.data(), DType::kUint8, {band.height, band.width, 3});
    PB_RETURN_IF_ERROR(image.Fetch(0, band, encoded));
    PB_RETURN_IF_ERROR(image.Decode(encoded, view, 255, *scratch));
    PB_RETURN_IF_ERROR(colours.Add(view));
    context.AddProgress();
    PB_RETURN_IF_ERROR(context.CheckCancelled());
  }
  return colours.Take();
}

/// A store with the set of tissue is fitted by that, another store has the fit of ingest, a picture
/// that of all its pixels.
StatusOr<RecordedStain> FitOfPicture(TaskContext& context, const std::string& path,
                                     const WantedStain& wanted) {
  PB_ASSIGN_OR_RETURN(const std::unique_ptr<ImageSource> image, OpenImage(context.allowed, path));
  if (zarr::IsStore(context.allowed, path)) {
    auto fit = FitOfStore(context, path, wanted);
    if (absl::IsNotFound(fit.status())) {  // the set that the run's images are to have
      WantedStain all = wanted;
      all.options.tissue = plan::kNoTissueOfFits;
      fit = FitOfStore(context, path, all);
    }
    PB_RETURN_IF_ERROR(fit.status());
    if (*fit) return **fit;
  }
  PB_ASSIGN_OR_RETURN(const ops::StainHistogram colours, PictureColours(context, *image));
  return FitOfColours(context, colours, *image, wanted);
}

StatusOr<Json> PictureReference(TaskContext& context, const plan::StainReferences& normalize,
                                StainColours colours, const std::string& scanner) {
  constexpr std::string_view kWhat = "stream manifest";
  PB_ASSIGN_OR_RETURN(const Json* paths, JsonMember(context.manifest, "stain_references", kWhat));
  PB_ASSIGN_OR_RETURN(const std::string listed, JsonString(*paths, scanner.c_str(), kWhat));
  context.subjects.Add(listed, {SubjectKind::kNone, 0, "the stain reference"});
  PB_ASSIGN_OR_RETURN(const std::string path, context.MayRead(listed));
  PB_ASSIGN_OR_RETURN(const RecordedStain stain,
                      FitOfPicture(context, path, {colours, normalize, {}}));
  const plan::StainFit& fit = stain.fit;
  if (const std::string misfit = stain.Misfit();
      !misfit.empty() && normalize.misfit != plan::StainMisfit::kKeep) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "", path, misfit);
  }
  const bool is_reinhard = normalize.profile == plan::StainProfile::kReinhard;
  const plan::StainFallback fallback = is_reinhard ? fit.reinhard.fallback : fit.macenko.fallback;
  if (fallback != plan::StainFallback::kNone) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "", path,
                      StrCat("no stains can be fitted (", plan::NameOf(fallback), ")"));
  }
  return is_reinhard ? plan::ValuesOf(fit.reinhard) : plan::ValuesOf(fit.macenko);
}

}  // namespace

Status SettleStainReferences(TaskContext& context, plan::RunConfig& config,
                             const std::vector<plan::PlannedImage>& images) {
  const auto normalize = plan::FindStainReferences(config);
  if (!normalize) return absl::OkStatus();
  if (normalize->NeedsCohort()) {
    const StatusOr<Json> medians = CohortReference(images, normalize->profile);
    if (!medians.ok()) {
      return AtReferenceKey(config, normalize->IsByScanner() ? "cohort" : "", medians.status());
    }
    plan::SettleCohortReferences(config, *medians);
  }
  for (const auto& [scanner, name] : normalize->Unsettled()) {
    if (name == plan::kCohortReference) continue;
    StatusOr<Json> fit = ShippedReference(normalize->profile);
    if (plan::IsPictureReference(name)) {
      fit = PictureReference(context, *normalize, StainColoursOf(config), scanner);
    }
    if (!fit.ok()) return AtReferenceKey(config, scanner, fit.status());
    plan::SettleStainReference(config, scanner, *fit);
  }
  return absl::OkStatus();
}

StatusOr<Json> PictureReferencesOf(TaskContext& context, const plan::RunConfig& config) {
  Json pictures = Json::object();
  const auto normalize = plan::FindStainReferences(config);
  if (!normalize) return pictures;
  const StainColours colours = StainColoursOf(config);
  for (const auto& [scanner, name] : normalize->Unsettled()) {
    if (!plan::IsPictureReference(name)) continue;
    const StatusOr<Json> fit = PictureReference(context, *normalize, colours, scanner);
    if (!fit.ok()) return AtReferenceKey(config, scanner, fit.status());
    pictures[scanner] = {{"profile", plan::NameOf(normalize->profile)},
                         {"icc_to_srgb", colours == StainColours::kSrgb},
                         {"fit", *fit}};
  }
  return pictures;
}

bool NeedsCohortReference(const plan::RunConfig& config) {
  const auto normalize = plan::FindStainReferences(config);
  return normalize && normalize->NeedsCohort();
}

namespace {

/// The fit of a training image, whose set of tissue the lock pins.
WantedStain WantedOf(const plan::RunConfig& config, const plan::StainReferences& normalize,
                     const TrainingImage& image) {
  WantedStain wanted{StainColoursOf(config), normalize, {}};
  const auto set = image.sets.find(normalize.TissueSet());
  if (set != image.sets.end()) {
    wanted.tissue = {LabelRevision::By::kDigest, set->second};
  } else if (!normalize.AsksForTissue()) {
    wanted.options.tissue = plan::kNoTissueOfFits;
  }
  return wanted;
}

}  // namespace

StatusOr<Json> CohortReferenceOf(TaskContext& context, const plan::RunConfig& config,
                                 const std::vector<TrainingImage>& images) {
  const auto normalize = plan::FindStainReferences(config);
  std::vector<plan::PlannedImage> fitted;
  for (const TrainingImage& image : images) {
    const StatusOr<RecordedStain> stain =
        StainFitOfStore(context, image.path, WantedOf(config, *normalize, image));
    if (!stain.ok()) return About(stain.status(), "lock", image.path);
    context.AddProgress();
    if (const std::string misfit = stain->Misfit(); !misfit.empty()) {
      if (normalize->misfit == plan::StainMisfit::kSkip) continue;
      if (normalize->misfit == plan::StainMisfit::kRefuse) {
        return ErrorAbout(absl::StatusCode::kInvalidArgument, "lock", image.path, misfit);
      }
    }
    plan::PlannedImage& row = fitted.emplace_back();
    row.macenko = stain->fit.macenko;
    row.reinhard = stain->fit.reinhard;
  }
  const StatusOr<Json> medians = CohortReference(fitted, normalize->profile);
  if (!medians.ok()) return Annotate(medians.status(), "lock: stain_normalize");
  return medians;
}

StainColours StainColoursOf(const plan::RunConfig& config) {
  return plan::FindIccOp(config) ? StainColours::kSrgb : StainColours::kDevice;
}

StatusOr<RecordedStain> StainFitOfStore(TaskContext& context, const std::string& path,
                                        const WantedStain& wanted) {
  const Folders& allowed = context.allowed;
  if (!zarr::IsStore(allowed, path)) {
    return InvalidArgument(
        "stain_normalize needs the stain fit that ingest makes from all pixels: `patchbay ingest` "
        "the slide and name its store");
  }
  PB_ASSIGN_OR_RETURN(const auto fit, FitOfStore(context, path, wanted));
  if (fit) return *fit;
  if (!wanted.options.FitsAsIngest()) {
    return InvalidArgument(
        "alpha, beta and background: the store has no colours to fit by them (made by an earlier "
        "version, without statistics, or not of RGB): `patchbay ingest` the slide again, into "
        "another folder, or make a set of its tissue (`patchbay labels tissue`)");
  }
  return InvalidArgument(
      "stain_normalize: the store has no stain fit (made by an earlier version or not of RGB): "
      "`patchbay ingest` the slide again, into another folder");
}

plan::StainFallback StainFallbackOf(const plan::PlannedImage& image) {
  if (image.macenko) return image.macenko->fallback;
  return image.reinhard ? image.reinhard->fallback : plan::StainFallback::kNone;
}

}  // namespace patchbay::workers
