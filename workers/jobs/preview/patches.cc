// A card a patch, made as the stream makes it.
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "ops/chain/chain.h"
#include "ops/geometry/area_average.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/model/jobs/local_job_options.h"
#include "runtime/model/plan/class_table.h"
#include "runtime/model/plan/plan.h"
#include "workers/access/planned_images.h"
#include "workers/jobs/preview/cards.h"
#include "workers/jobs/task/single_tasks.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/channel_choice.h"
#include "workers/sources/dicom_slide.h"
#include "workers/sources/image_source.h"
#include "workers/stream/chain_options.h"
#include "workers/stream/image_places.h"
#include "workers/stream/view_window.h"

namespace patchbay::workers {
namespace {

/// Steps whose values are no colours.
Json ForTheEye(const Json& steps) {
  Json kept = Json::array();
  for (const Json& step : steps) {
    const bool is_number = step.contains("normalize") || step.contains("cast") ||
                           step.contains("zscore") || step.contains("ct_normalize");
    if (!is_number) kept.push_back(step);
  }
  return kept;
}

/// The stream's chain to pixels that can be looked at, with or without its augmentation.
StatusOr<ops::Chain> ChainOf(const plan::Plan& plan, bool augmented) {
  ops::ChainOptions options = ChainOptionsOf(plan);
  options.preprocess = ForTheEye(options.preprocess);
  options.augment = augmented ? ForTheEye(options.augment) : Json::array();
  options.dtype = options.source_dtype == DType::kUint8 ? DType::kUint8 : DType::kFloat32;
  options.layout = PatchLayout::kNhwc;
  return ops::Chain::Compile(options);
}

struct OpenedImage {
  std::string name;
  std::unique_ptr<ImageSource> source;
  std::vector<std::unique_ptr<ImageSource>> labels;  ///< images of the sets that the run reads
  std::optional<plan::ImagePlaces> places;           ///< where sampling uses them
};

/// Makes the pictures of patches, one after another.
class PatchPictures {
 public:
  PatchPictures(const plan::Plan& plan, ops::Chain plain, ops::Chain whole, AfterPiece after_piece)
      : plan_(plan), plain_(std::move(plain)), whole_(std::move(whole)) {
    encoded_.after_piece = std::move(after_piece);
  }

  StatusOr<PatchCard> CardOf(std::uint64_t ordinal, const plan::PatchSpec& spec,
                             const OpenedImage& image) {
    PatchCard card;
    card.name = StrCat("patch ", ordinal);
    for (std::size_t view = 0; view < plan_.views(); ++view) {
      PB_RETURN_IF_ERROR(AddView(spec, view, *image.source, card));
    }
    const Box& box = spec.box;
    card.facts.push_back(image.name);
    card.facts.push_back(StrCat("level ", spec.level, ", y ", box.y, " x ", box.x, ", ", box.height,
                                " x ", box.width, " px"));
    for (std::size_t set = 0; set < image.labels.size(); ++set) {
      PB_RETURN_IF_ERROR(AddMask(spec, set, *image.labels[set], card));
    }
    AddDraws(plan_, whole_, spec, card);
    return card;
  }

 private:
  /// The classes of the delivered pixels in colour upon them, and in words.
  Status AddMask(const plan::PatchSpec& spec, std::size_t set, const ImageSource& labels,
                 PatchCard& card) {
    const ViewWindow window = WindowOf(plan_, whole_, spec, 0);
    const plan::VolumeFacts known = plan_.FactsOf(spec.image);
    const Extent size = whole_.SourceExtent(spec.key, known);
    const auto room = [](std::vector<std::byte>& bytes, const Extent& e) {
      bytes.resize(static_cast<std::size_t>(e.Pixels()));
      return ContiguousView<4>(bytes.data(), DType::kUint8, {e.z, e.y, e.x, std::int64_t{1}});
    };
    const TensorView finer = room(finer_, window.box.Shape());
    PB_RETURN_IF_ERROR(labels.Fetch(window.level, window.box, encoded_));
    PB_RETURN_IF_ERROR(labels.Decode(encoded_, finer, plan::kIgnoreClass, *labels.MakeScratch()));
    TensorView tile = finer;
    if (!window.IsPlain()) {
      tile = room(tile_, size);
      PB_RETURN_IF_ERROR(ops::TakeNearest(SliceOf(finer, 0), window.y, window.x, SliceOf(tile, 0)));
    }
    const Extent& patch = plan_.config().patch;
    std::vector<std::uint8_t> mask(static_cast<std::size_t>(patch.Pixels()));
    std::vector<std::byte> scratch;
    PB_RETURN_IF_ERROR(whole_.RunLabels(tile, spec.key, mask, scratch, known));
    // The pictures of a volume's patch are those of its middle slice.
    const auto middle = mask.begin() + patch.z / 2 * patch.y * patch.x;
    card.pictures.push_back(
        Overlaid(card.pictures[delivered_], {middle, middle + patch.y * patch.x}));
    card.captions.push_back(plan::MaskArrayOf(set));
    AddMaskFacts(plan_, spec, set, mask, card);
    return absl::OkStatus();
  }

  Status AddView(const plan::PatchSpec& spec, std::size_t view, const ImageSource& image,
                 PatchCard& card) {
    const bool differ = !plan_.config().augment.empty();
    PB_ASSIGN_OR_RETURN(Picture source, Source(spec, view, image));
    card.pictures.push_back(std::move(source));
    card.captions.push_back(view == 0 ? "as read" : StrCat("context ", view, ", as read"));
    if (differ && view == 0 && !ForTheEye(plan_.config().preprocess).empty()) {
      PB_ASSIGN_OR_RETURN(Picture plain, Made(plain_, spec, view, image));
      card.pictures.push_back(std::move(plain));
      card.captions.push_back("preprocessed");
    }
    PB_ASSIGN_OR_RETURN(Picture whole, Made(whole_, spec, view, image));
    if (view == 0) delivered_ = card.pictures.size();
    card.pictures.push_back(std::move(whole));
    card.captions.push_back(view == 0 ? "delivered" : StrCat("context ", view, ", delivered"));
    return absl::OkStatus();
  }

  /// The picture of the chain's input; of a volume, its middle slice.
  StatusOr<Picture> Source(const plan::PatchSpec& spec, std::size_t view,
                           const ImageSource& image) {
    PB_ASSIGN_OR_RETURN(const TensorView tile, Tile(whole_, spec, view, image));
    return PictureOf(SliceOf(ConstTensorView(tile), tile.shape[0] / 2));
  }

  StatusOr<Picture> Made(const ops::Chain& chain, const plan::PatchSpec& spec, std::size_t view,
                         const ImageSource& image) {
    PB_ASSIGN_OR_RETURN(const TensorView tile, Tile(chain, spec, view, image));
    std::vector<std::byte> out(chain.patch_bytes()), scratch;
    const plan::PlannedImage& planned = plan_.images()[spec.image];
    std::shared_ptr<const ops::IccLookup> icc;
    if (planned.icc && planned.icc->fallback == plan::IccFallback::kNone) {
      PB_ASSIGN_OR_RETURN(icc, image.ToSrgb());
    }
    const plan::VolumeFacts facts = plan_.FactsOf(spec.image);
    PB_RETURN_IF_ERROR(
        chain.Run(tile, spec.key, out, scratch, ColoursOf(planned, icc.get()), &facts));
    const Extent& size = chain.options().patch;
    const TensorView patch = ContiguousView<4>(out.data(), chain.options().dtype,
                                               {size.z, size.y, size.x, tile.shape[3]});
    return PictureOf(SliceOf(ConstTensorView(patch), size.z / 2));
  }

  /// The chain's source of a view: read, decoded and resampled as in a stream.
  StatusOr<TensorView> Tile(const ops::Chain& chain, const plan::PatchSpec& spec, std::size_t view,
                            const ImageSource& image) {
    const ViewWindow window = WindowOf(plan_, chain, spec, view);
    const Extent size = chain.SourceExtent(spec.key, plan_.FactsOf(spec.image));
    const DType dtype = chain.options().source_dtype;
    const std::int64_t channels = chain.options().channels;
    const auto bytes_of = [&](const Extent& e) {
      return static_cast<std::size_t>(e.Pixels() * channels) * SizeOf(dtype);
    };
    tile_.resize(bytes_of(size));
    const TensorView tile =
        ContiguousView<4>(tile_.data(), dtype, {size.z, size.y, size.x, channels});
    const auto scratch = image.MakeScratch();
    PB_ASSIGN_OR_RETURN(encoded_.channels, ChooseChannels(plan_.config().channels, image.layout()));
    PB_RETURN_IF_ERROR(image.Fetch(window.level, window.box, encoded_));
    if (window.IsPlain()) {
      PB_RETURN_IF_ERROR(
          DecodeChosen(image, encoded_, tile, plan_.fill(), *scratch, all_channels_));
      return tile;
    }
    finer_.resize(bytes_of(window.box.Shape()));
    const TensorView finer =
        ContiguousView<3>(finer_.data(), dtype, {window.box.height, window.box.width, channels});
    PB_RETURN_IF_ERROR(DecodeChosen(image, encoded_, finer, plan_.fill(), *scratch, all_channels_));
    PB_RETURN_IF_ERROR(average_.Run(finer, window.y, window.x, SliceOf(tile, 0)));
    return tile;
  }

  const plan::Plan& plan_;
  const ops::Chain plain_, whole_;
  ops::AreaAverage average_;
  EncodedPatch encoded_;
  std::vector<std::byte> tile_, finer_, all_channels_;
  std::size_t delivered_ = 0;  ///< index of the delivered patch among a card's pictures
};

/// The revision of one of the run's label sets that the plan names.
StatusOr<std::unique_ptr<ImageSource>> LabelsOf(const Folders& allowed, const plan::Plan& plan,
                                                std::uint32_t image, std::size_t set,
                                                const std::string& store) {
  const plan::PlannedImage& planned = plan.images()[image];
  PB_ASSIGN_OR_RETURN(const zarr::OpenedLabelSet opened,
                      zarr::OpenLabelRevision(allowed, store, plan.config().labels.Sets()[set],
                                              planned.LabelsOf(set).digest));
  PB_ASSIGN_OR_RETURN(std::unique_ptr<ImageSource> labels, OpenImage(allowed, opened.path));
  const auto level = static_cast<std::size_t>(plan.ViewOf(image, 0).level);
  const ImageLayout& layout = labels->layout();
  const bool fits = layout.dtype == DType::kUint8 && layout.channels == 1 &&
                    level < layout.levels.size() && layout.levels[level].size == planned.size;
  if (fits) return labels;
  return DataLoss("its label image differs from the image in size");
}

StatusOr<OpenedImage> Open(TaskContext& context, const plan::Plan& plan, std::uint32_t image,
                           const std::string& listed) {
  OpenedImage opened;
  context.subjects.Add(listed, {SubjectKind::kImage, image, ""});
  PB_ASSIGN_OR_RETURN(const std::string path, context.MayRead(listed));
  PB_ASSIGN_OR_RETURN(opened.source,
                      OpenChosenSlide(context.allowed, path, plan.images()[image].choice));
  opened.source->KeepToTiles();
  opened.name = std::filesystem::path(path).filename().string();
  const plan::LabelsConfig& labels = plan.config().labels;
  for (std::size_t set = 0; (labels.mask || labels.rule) && set < labels.Sets().size(); ++set) {
    PB_ASSIGN_OR_RETURN(opened.labels.emplace_back(),
                        LabelsOf(context.allowed, plan, image, set, path));
  }
  if (plan::NeedsPlaces(plan.config())) {
    const plan::PlannedImage& planned = plan.images()[image];
    PB_ASSIGN_OR_RETURN(LoadedPlaces loaded,
                        LoadPlaces(context.allowed, plan.config(), planned, path,
                                   RevisionsOfIndexes(plan.config(), planned.indexes)));
    if (loaded.places.Counts() != plan.images()[image].places) {
      return DataLoss("its annotations or its mask of tissue changed just now");
    }
    opened.places = std::move(loaded.places);
  }
  return opened;
}

}  // namespace

StatusOr<TaskOutput> RunPreviewPatches(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const auto options,
                      ReadPayload<PreviewOptions>(context.payload, "preview", {"plan"}));
  PB_ASSIGN_OR_RETURN(const std::string text, JsonString(context.payload, "plan", "preview"));
  PB_ASSIGN_OR_RETURN(const plan::Plan plan, plan::Plan::Parse(context.ops, text));
  PB_ASSIGN_OR_RETURN(const std::string out, JsonString(context.manifest, "out", "manifest"));
  context.manifest.erase("out");
  PB_ASSIGN_OR_RETURN(const PlannedImages where,
                      PlannedImagesOf(context.manifest, plan.images().size()));
  PB_ASSIGN_OR_RETURN(const std::string target, context.MayWrite(out));
  PB_ASSIGN_OR_RETURN(ops::Chain plain, ChainOf(plan, false));
  PB_ASSIGN_OR_RETURN(ops::Chain whole, ChainOf(plan, true));
  PatchPictures pictures(plan, std::move(plain), std::move(whole), ProgressOf(context));
  std::map<std::uint32_t, OpenedImage> images;
  std::vector<PatchCard> cards;
  std::set<Digest> shown;
  const std::uint64_t count =
      std::min(static_cast<std::uint64_t>(options.patches), plan.patches_per_epoch());
  for (std::uint64_t i = 0; i < count; ++i) {
    PB_RETURN_IF_ERROR(context.CheckCancelled());
    context.AddProgress();
    const std::uint64_t ordinal = plan.patches_per_epoch() / count * i;
    PB_ASSIGN_OR_RETURN(const plan::PatchSource from, plan.SourceOf(0, ordinal));
    if (from.pad) continue;
    OpenedImage& image = images[from.image];
    if (image.source == nullptr) {
      StatusOr<OpenedImage> opened = Open(context, plan, from.image, where.paths[from.image]);
      if (!opened.ok()) {
        return About(opened.status(), "preview", where.paths[from.image]);
      }
      image = *std::move(opened);
    }
    PB_ASSIGN_OR_RETURN(const plan::PatchSpec spec,
                        plan.SpecOf(from, image.places ? &*image.places : nullptr));
    PB_ASSIGN_OR_RETURN(PatchCard card, pictures.CardOf(ordinal, spec, image));
    cards.push_back(std::move(card));
    shown.insert(plan.images()[from.image].digest);
  }
  PB_ASSIGN_OR_RETURN(
      const std::string png,
      DrawPatchSheet(StrCat(cards.size(), " of ", plan.patches_per_epoch(), " patches"), cards));
  PB_ASSIGN_OR_RETURN(const std::uint64_t bytes, WriteSheet(context.allowed, target, png, shown));
  TaskOutput output;
  output.result = DumpJson({{"patches", cards.size()}, {"bytes", bytes}});
  return output;
}

}  // namespace patchbay::workers
