// A card an image.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

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
#include "workers/jobs/task/tissue_profile.h"
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
  ShownLevel shown;
};

/// All of the coarsest level that fills a card.
StatusOr<ShownLevel> WholeImage(const ImageLayout& layout) {
  const std::size_t level = ThumbnailLevel(layout);
  const Extent size = layout.levels[level].size;
  if (Flat(size.y, size.x).Pixels() > kMaxThumbnailPixels) {
    return InvalidArgument("preview: its smallest level has ", size.y, " x ", size.x,
                           " pixels: `patchbay ingest` the slide, and preview its store");
  }
  return ShownLevel{
      static_cast<int>(level), size, BoxAt({size.z / 2, 0, 0}, {1, size.y, size.x}), {}};
}

/// A square around a pixel of level 0, of the coarsest level in which it fills a card.
StatusOr<ShownLevel> SquareOf(const ImageLayout& layout, const PreviewOptions& options) {
  PB_ASSIGN_OR_RETURN(const PreviewPlace at, options.Place());
  const Extent& whole = layout.levels[0].size;
  if (at.y >= whole.y || at.x >= whole.x) {
    return InvalidArgument("--at ", options.at, ": outside the image of ", whole.y, " x ", whole.x,
                           " pixels");
  }
  const auto mpp = layout.spacing.MeanMpp();
  if (!mpp) return InvalidArgument("--at: the image does not state its um per pixel");
  ShownLevel shown;
  for (std::size_t i = 0; i < layout.levels.size(); ++i) {
    const LevelLayout& level = layout.levels[i];
    const auto side =
        std::max<std::int64_t>(1, std::llround(options.um / (*mpp * level.downsample)));
    if (i > 0 && side < kThumbnailSide) break;
    const auto near = [&](std::int64_t place, std::int64_t from, std::int64_t to) {
      return place * to / from - side / 2;
    };
    shown = {
        static_cast<int>(i),
        level.size,
        Box2D(near(at.y, whole.y, level.size.y), near(at.x, whole.x, level.size.x), side, side),
        {}};
  }
  if (shown.box.Pixels() <= kMaxThumbnailPixels) return shown;
  return InvalidArgument("--um ", options.um, ": ", shown.box.width, " x ", shown.box.width,
                         " pixels");
}

StatusOr<Thumbnail> ThumbnailOf(const ImageSource& image, const PreviewOptions& options,
                                const AfterPiece& after_piece) {
  const ImageLayout& layout = image.layout();
  Thumbnail thumbnail;
  PB_ASSIGN_OR_RETURN(thumbnail.shown,
                      options.at.empty() ? WholeImage(layout) : SquareOf(layout, options));
  thumbnail.shown.after_piece = after_piece;
  const Box& box = thumbnail.shown.box;
  thumbnail.bytes.resize(static_cast<std::size_t>(box.Pixels() * layout.channels) *
                         SizeOf(layout.dtype));
  const TensorView view = ContiguousView<3>(thumbnail.bytes.data(), layout.dtype,
                                            {box.height, box.width, std::int64_t{layout.channels}});
  EncodedPatch encoded;
  encoded.after_piece = after_piece;
  PB_RETURN_IF_ERROR(image.Fetch(thumbnail.shown.level, box, encoded));
  PB_RETURN_IF_ERROR(image.Decode(encoded, view, 0, *image.MakeScratch()));
  thumbnail.view = view;
  return thumbnail;
}

/// The profile that is asked for, with its options.
StatusOr<TissueProfile> ProfileOf(const PreviewOptions& options) {
  PB_ASSIGN_OR_RETURN(const TissueProfile profile,
                      TissueProfileOf(options.tissue.empty() ? "clam" : options.tissue));
  PB_ASSIGN_OR_RETURN(const TissueOptions own, ParseTissueOptions(options.options));
  return WithOptions(profile, own);
}

/// Adds outline and share of the tissue that `patchbay labels tissue` would find, if the image has
/// colours.
StatusOr<std::optional<double>> AddTissue(TaskContext& context, const ImageSource& image,
                                          const Thumbnail& thumbnail, const TissueProfile& profile,
                                          ImageCard& card) {
  const ImageLayout& layout = image.layout();
  if (!IsRgb(layout)) return std::nullopt;
  PB_ASSIGN_OR_RETURN(const FoundTissue found,
                      FindTissue(context, image, layout.spacing.MeanMpp(), profile));
  const Extent& size = thumbnail.shown.size;
  const Box& box = thumbnail.shown.box;
  const auto rows = MaskPixels(size.y, found.averaged.y, found.picture.factor);
  const auto columns = MaskPixels(size.x, found.averaged.x, found.picture.factor);
  OutlinedArea area{kTissueColor, {}};
  for (std::int64_t y = box.y; y < box.y + box.height; ++y) {
    for (std::int64_t x = box.x; x < box.x + box.width; ++x) {
      const bool is_inside = y >= 0 && x >= 0 && y < size.y && x < size.x;
      const auto at = is_inside ? rows[static_cast<std::size_t>(y)] * found.mask.width +
                                      columns[static_cast<std::size_t>(x)]
                                : 0;
      area.inside.push_back(is_inside ? found.mask.pixels[static_cast<std::size_t>(at)] : 0);
    }
  }
  const double share =
      static_cast<double>(found.mask.tissue_pixels) / static_cast<double>(found.mask.pixels.size());
  card.areas.insert(card.areas.begin(), std::move(area));
  card.facts.push_back(
      StrCat("tissue ", Digits(100 * share, 1), " % (", profile.name, ", outlined)"));
  return share;
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
  if (!layout.channel_names.empty()) card.facts.push_back(StrJoin(layout.channel_names, ", "));
}

/// The cards of one sheet: slides or volumes, never both.
struct Cards {
  std::vector<ImageCard> slides;
  std::vector<PatchCard> volumes;
  Json tissue = Json::array();  ///< the share of each slide; null: not looked for

  std::size_t Count() const { return slides.size() + volumes.size(); }
};

Status AddSlide(TaskContext& context, const std::string& path, const ImageSource& image,
                const PreviewOptions& options, Cards& cards) {
  const Folders& allowed = context.allowed;
  const AfterPiece after_piece = ProgressOf(context);
  ImageCard card;
  card.name = std::filesystem::path(path).filename().string();
  PB_ASSIGN_OR_RETURN(const Thumbnail thumbnail, ThumbnailOf(image, options, after_piece));
  card.thumbnail = PictureOf(thumbnail.view);
  AddFacts(image.layout(), card);
  if (!options.at.empty()) {
    card.facts.push_back(StrCat(Digits(options.um, 1), " um around y,x ", options.at, ", level ",
                                thumbnail.shown.level));
  }
  const bool is_asked = !options.tissue.empty() || !options.options.empty();
  bool has_tissue = false;
  std::optional<double> share;
  if (!is_asked || !options.labels.empty()) {
    PB_ASSIGN_OR_RETURN(has_tissue,
                        AddLabelOutlines(allowed, path, options.labels, thumbnail.shown, card));
  }
  if (is_asked || (!has_tissue && options.labels.empty())) {
    PB_ASSIGN_OR_RETURN(const TissueProfile profile, ProfileOf(options));
    const auto found = AddTissue(context, image, thumbnail, profile, card);
    // A damaged tile of its level does not hide the rest of the card.
    if (!found.ok() && (is_asked || absl::IsCancelled(found.status()))) return found.status();
    share = found.value_or(std::nullopt);
  }
  AddStains(RecordedStainOf(allowed, path, StainColours::kDevice), card);
  cards.slides.push_back(std::move(card));
  cards.tissue.push_back(share ? Json(*share) : Json());
  return absl::OkStatus();
}

Status AddCard(TaskContext& context, const std::string& path, const PreviewOptions& options,
               Cards& cards) {
  const Folders& allowed = context.allowed;
  PB_ASSIGN_OR_RETURN(const std::unique_ptr<ImageSource> image, OpenImage(allowed, path));
  const bool is_volume = image->layout().levels[0].size.z > 1;
  if (is_volume ? !cards.slides.empty() : !cards.volumes.empty()) {
    return InvalidArgument(is_volume ? "a volume on a sheet of slides: preview it apart"
                                     : "a slide on a sheet of volumes: preview it apart");
  }
  if (is_volume) {
    PB_ASSIGN_OR_RETURN(PatchCard card,
                        VolumeCardOf(allowed, path, *image, options.labels, ProgressOf(context)));
    cards.volumes.push_back(std::move(card));
  } else {
    PB_RETURN_IF_ERROR(AddSlide(context, path, *image, options, cards));
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
    const Status added =
        allowed.ok() ? AddCard(context, *allowed, options, cards) : allowed.status();
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
                            {"tissue", cards.tissue},
                            {"skipped_files", Json(skipped_files)}});
  return output;
}

}  // namespace patchbay::workers
