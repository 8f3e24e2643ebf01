// A card an image.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "ops/tissue/tissue_mask.h"
#include "runtime/core/counted.h"
#include "runtime/core/strings.h"
#include "runtime/model/jobs/job_manifest.h"
#include "runtime/model/jobs/local_job_options.h"
#include "runtime/model/ops/stain_fit.h"
#include "workers/access/stamps.h"
#include "workers/jobs/preview/cards.h"
#include "workers/jobs/task/find_images.h"
#include "workers/jobs/task/recorded_stain.h"
#include "workers/jobs/task/single_tasks.h"
#include "workers/jobs/task/task.h"
#include "workers/plots/axes.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {
namespace {

/// Pixels of a thumbnail's longer side. The coarsest level that is at least as large is shown.
constexpr std::int64_t kThumbnailSide = 480;
constexpr std::int64_t kMaxThumbnailPixels = std::int64_t{1} << 24;
/// Tissue in the middle of the slide's concentrations.
constexpr double kSwatchConcentration = 0.6;

std::size_t ThumbnailLevel(const ImageLayout& layout) {
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < layout.levels.size(); ++i) {
    const Extent& size = layout.levels[i].size;
    if (std::max(size.y, size.x) >= kThumbnailSide) chosen = i;
  }
  return chosen;
}

struct Thumbnail {
  std::vector<std::byte> bytes;
  ConstTensorView view;
  int level = 0;
  Extent size;  ///< size of the level
  std::optional<double> mpp;
};

StatusOr<Thumbnail> ThumbnailOf(const ImageSource& image, const AfterPiece& after_piece) {
  const ImageLayout& layout = image.layout();
  const std::size_t level = ThumbnailLevel(layout);
  const Extent size = layout.levels[level].size;
  if (Flat(size.y, size.x).Pixels() > kMaxThumbnailPixels) {
    return InvalidArgument("preview: its smallest level has ", size.y, " x ", size.x,
                           " pixels: `patchbay ingest` the slide, and preview its store");
  }
  Thumbnail thumbnail;
  const Box middle = BoxAt({size.z / 2, 0, 0}, {1, size.y, size.x});
  thumbnail.bytes.resize(static_cast<std::size_t>(size.y * size.x * layout.channels) *
                         SizeOf(layout.dtype));
  const TensorView view = ContiguousView<3>(thumbnail.bytes.data(), layout.dtype,
                                            {size.y, size.x, std::int64_t{layout.channels}});
  EncodedPatch encoded;
  encoded.after_piece = after_piece;
  PB_RETURN_IF_ERROR(image.Fetch(static_cast<int>(level), middle, encoded));
  PB_RETURN_IF_ERROR(image.Decode(encoded, view, 0, *image.MakeScratch()));
  thumbnail.view = view;
  thumbnail.level = static_cast<int>(level);
  thumbnail.size = size;
  const auto mpp = layout.spacing.MeanMpp();
  if (mpp) thumbnail.mpp = *mpp * layout.levels[level].downsample;
  return thumbnail;
}

/// Adds outline and share of the tissue that `patchbay labels tissue` would find, if the image has
/// colours.
void AddTissue(const Thumbnail& thumbnail, ImageCard& card) {
  if (thumbnail.view.dtype != DType::kUint8 || thumbnail.view.shape[2] != 3) return;
  const auto mask = ops::MakeTissueMask(thumbnail.view, thumbnail.mpp, {});
  if (!mask.ok()) return;
  card.areas.insert(card.areas.begin(), {kTissueColor, mask->pixels});
  const double share = static_cast<double>(mask->tissue_pixels) /
                       static_cast<double>(std::max<std::size_t>(1, mask->pixels.size()));
  card.facts.push_back(StrCat("tissue ", Digits(100 * share, 1), " % (outlined)"));
}

Color ColourOf(const std::array<double, 3>& stain, double concentration) {
  const auto channel = [&](std::size_t c) {
    return static_cast<std::uint8_t>(
        std::clamp(255 * std::exp(-stain[c] * concentration), 0.0, 255.0));
  };
  return {channel(0), channel(1), channel(2)};
}

void AddStains(const StatusOr<std::optional<RecordedStain>>& recorded, ImageCard& card) {
  if (!recorded.ok()) {
    card.warning = "its stain fit cannot be read";
    return;
  }
  if (!*recorded) {
    card.facts.push_back("no stain fit in the store");
    return;
  }
  const plan::StainFit& fit = (*recorded)->fit;
  constexpr std::string_view kNames[] = {"hematoxylin", "eosin"};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& stain = fit.macenko.stains[i];
    const double most = fit.macenko.max_concentrations[i];
    card.stains.push_back({ColourOf(stain, kSwatchConcentration * most),
                           StrCat(kNames[i], " ", Digits(stain[0], 3), " ", Digits(stain[1], 3),
                                  " ", Digits(stain[2], 3), ", up to ", Digits(most, 2))});
  }
  card.warning = (*recorded)->Misfit();
  if (!card.warning.empty() || fit.macenko.fallback == plan::StainFallback::kNone) return;
  card.warning = StrCat("no fit of its own (", plan::NameOf(fit.macenko.fallback),
                        "): this is the built-in default fit");
}

void AddFacts(const ImageLayout& layout, ImageCard& card) {
  const Extent& size = layout.levels[0].size;
  card.facts.push_back(StrCat(size.x, " x ", size.y, " px, ", layout.levels.size(), " levels"));
  const auto mpp = layout.spacing.MeanMpp();
  card.facts.push_back(mpp ? StrCat(Digits(*mpp, 4), " um/px") : std::string("um/px unknown"));
  card.facts.push_back(StrCat(Counted(static_cast<std::uint64_t>(layout.channels), "channel"),
                              " of ", NameOf(layout.dtype), ", ", layout.kind));
}

/// The cards of one sheet: slides or volumes, never both.
struct Cards {
  std::vector<ImageCard> slides;
  std::vector<PatchCard> volumes;

  std::size_t Count() const { return slides.size() + volumes.size(); }
};

StatusOr<ImageCard> SlideCardOf(const Folders& allowed, const std::string& path,
                                const ImageSource& image, const std::string& set,
                                const AfterPiece& after_piece) {
  ImageCard card;
  card.name = std::filesystem::path(path).filename().string();
  PB_ASSIGN_OR_RETURN(const Thumbnail thumbnail, ThumbnailOf(image, after_piece));
  card.thumbnail = PictureOf(thumbnail.view);
  AddFacts(image.layout(), card);
  const ShownLevel shown{thumbnail.level, thumbnail.size, after_piece};
  PB_ASSIGN_OR_RETURN(const bool has_tissue, AddLabelOutlines(allowed, path, set, shown, card));
  if (!has_tissue && set.empty()) AddTissue(thumbnail, card);
  AddStains(RecordedStainOf(allowed, path, StainColours::kDevice), card);
  return card;
}

Status AddCard(const Folders& allowed, const std::string& path, const std::string& set,
               const AfterPiece& after_piece, Cards& cards) {
  PB_ASSIGN_OR_RETURN(const std::unique_ptr<ImageSource> image, OpenImage(allowed, path));
  const bool is_volume = image->layout().levels[0].size.z > 1;
  if (is_volume ? !cards.slides.empty() : !cards.volumes.empty()) {
    return InvalidArgument(is_volume ? "a volume on a sheet of slides: preview it apart"
                                     : "a slide on a sheet of volumes: preview it apart");
  }
  if (is_volume) {
    PB_ASSIGN_OR_RETURN(PatchCard card, VolumeCardOf(allowed, path, *image, set, after_piece));
    cards.volumes.push_back(std::move(card));
  } else {
    PB_ASSIGN_OR_RETURN(ImageCard card, SlideCardOf(allowed, path, *image, set, after_piece));
    cards.slides.push_back(std::move(card));
  }
  return absl::OkStatus();
}

/// True where the other images can be shown all the same.
bool IsOfOneImage(const Status& status) {
  return !absl::IsCancelled(status) && !absl::IsInternal(status);
}

StatusOr<std::string> SheetOf(const Cards& cards) {
  const std::string things = cards.volumes.empty() ? "image" : "volume";
  const std::string title = StrCat(cards.Count(), " ", things, cards.Count() == 1 ? "" : "s");
  return cards.volumes.empty() ? DrawImageSheet(title, cards.slides)
                               : DrawPatchSheet(title, cards.volumes);
}

}  // namespace

StatusOr<TaskOutput> RunPreviewImages(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const auto manifest, FromJson<JobManifest>(context.manifest, "manifest"));
  PB_ASSIGN_OR_RETURN(const std::string target, context.MayWrite(manifest.out));
  FilesByKind skipped_files;
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                      FindImages(context, manifest.images,
                                 {.most = kMaxPreviewCards, .skipped_files = &skipped_files}));
  PB_ASSIGN_OR_RETURN(const auto options, ReadPayload<PreviewOptions>(context.payload, "preview"));
  Cards cards;
  std::set<Digest> shown;  // as far as stores record it
  Status first_fault;
  Json failed = Json::array();
  for (const std::string& path : paths) {
    PB_RETURN_IF_ERROR(context.CheckCancelled());
    context.AddProgress();
    context.subjects.Add(path, {SubjectKind::kImage, cards.Count() + failed.size(), ""});
    const StatusOr<std::string> allowed = context.MayRead(path);
    const Status added = allowed.ok() ? AddCard(context.allowed, *allowed, options.labels,
                                                ProgressOf(context), cards)
                                      : allowed.status();
    if (added.ok()) {
      if (const auto digest = RecordedDigest(context.allowed, *allowed)) shown.insert(*digest);
      continue;
    }
    if (!IsOfOneImage(added)) return About(added, "preview", path);
    if (failed.empty()) first_fault = About(added, "preview", path);
    failed.push_back({path, MessageOf(added)});
  }
  if (cards.Count() == 0) return first_fault;
  PB_ASSIGN_OR_RETURN(const std::string png, SheetOf(cards));
  PB_ASSIGN_OR_RETURN(const std::uint64_t bytes, WriteSheet(context.allowed, target, png, shown));
  TaskOutput output;
  output.result = DumpJson({{"images", cards.Count()},
                            {"failed", std::move(failed)},
                            {"bytes", bytes},
                            {"skipped_files", Json(skipped_files)}});
  return output;
}

}  // namespace patchbay::workers
