// A card a patch, made as the stream makes it.
#include <algorithm>
#include <filesystem>
#include <map>

#include "ops/chain/chain.h"
#include "ops/geometry/area_average.h"
#include "runtime/base/strings.h"
#include "runtime/plan/plan.h"
#include "workers/access/planned_images.h"
#include "workers/jobs/preview/pictures.h"
#include "workers/jobs/preview/preview.h"
#include "workers/plots/axes.h"
#include "workers/sources/image_source.h"
#include "workers/stream/chain_options.h"
#include "workers/stream/view_window.h"

namespace patchbay::workers {
namespace {

/// Steps whose values are no colours.
Json ForTheEye(const Json& steps) {
  Json kept = Json::array();
  for (const Json& step : steps) {
    if (!step.contains("normalize") && !step.contains("cast")) kept.push_back(step);
  }
  return kept;
}

/// The stream's chain to pixels that can be looked at, with or without its augmentation.
StatusOr<ops::Chain> ChainOf(const plan::Plan& plan, bool augmented) {
  ops::ChainOptions options = ChainOptionsOf(plan);
  options.preprocess = ForTheEye(options.preprocess);
  options.augment = augmented ? ForTheEye(options.augment) : Json::array();
  options.dtype = options.source_dtype == DType::kUint8 ? DType::kUint8 : DType::kFloat32;
  options.layout = ops::OutputLayout::kNhwc;
  return ops::Chain::Compile(options);
}

struct OpenedImage {
  std::string name;
  std::unique_ptr<ImageSource> source;
};

/// Makes the pictures of patches, one after another.
class Darkroom {
 public:
  Darkroom(const plan::Plan& plan, ops::Chain plain, ops::Chain whole)
      : plan_(plan), plain_(std::move(plain)), whole_(std::move(whole)) {}

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
    AddDraws(spec, card);
    return card;
  }

 private:
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
    card.pictures.push_back(std::move(whole));
    card.captions.push_back(view == 0 ? "delivered" : StrCat("context ", view, ", delivered"));
    return absl::OkStatus();
  }

  /// What the chain starts from; the middle slice of a volume.
  StatusOr<Picture> Source(const plan::PatchSpec& spec, std::size_t view,
                           const ImageSource& image) {
    PB_ASSIGN_OR_RETURN(const TensorView tile, Tile(whole_, spec, view, image));
    return PictureOf(SliceOf(ConstTensorView(tile), tile.shape[0] / 2));
  }

  StatusOr<Picture> Made(const ops::Chain& chain, const plan::PatchSpec& spec, std::size_t view,
                         const ImageSource& image) {
    PB_ASSIGN_OR_RETURN(const TensorView tile, Tile(chain, spec, view, image));
    std::vector<std::byte> out(chain.patch_bytes()), scratch;
    const auto& fit = plan_.images()[spec.image].macenko;
    PB_RETURN_IF_ERROR(chain.Run(tile, spec.key, out, scratch, fit.has_value() ? &*fit : nullptr));
    const Extent& size = chain.options().patch;
    const TensorView patch = ContiguousView<4>(out.data(), chain.options().dtype,
                                               {size.z, size.y, size.x, tile.shape[3]});
    return PictureOf(SliceOf(ConstTensorView(patch), size.z / 2));
  }

  /// The chain's source of a view: read, decoded and resampled as in a stream.
  StatusOr<TensorView> Tile(const ops::Chain& chain, const plan::PatchSpec& spec, std::size_t view,
                            const ImageSource& image) {
    const ViewWindow window = WindowOf(plan_, chain, spec, view);
    const Extent size = chain.source_extent();
    const DType dtype = chain.options().source_dtype;
    const std::int64_t channels = chain.options().channels;
    const auto bytes_of = [&](const Extent& e) {
      return static_cast<std::size_t>(e.Pixels() * channels) * SizeOf(dtype);
    };
    tile_.resize(bytes_of(size));
    const TensorView tile =
        ContiguousView<4>(tile_.data(), dtype, {size.z, size.y, size.x, channels});
    const auto scratch = image.MakeScratch();
    PB_RETURN_IF_ERROR(image.Fetch(window.level, window.box, encoded_));
    if (window.IsPlain()) {
      PB_RETURN_IF_ERROR(image.Decode(encoded_, tile, plan_.fill(), *scratch));
      return tile;
    }
    finer_.resize(bytes_of(window.box.Shape()));
    const TensorView finer =
        ContiguousView<3>(finer_.data(), dtype, {window.box.height, window.box.width, channels});
    PB_RETURN_IF_ERROR(image.Decode(encoded_, finer, plan_.fill(), *scratch));
    PB_RETURN_IF_ERROR(average_.Run(finer, window.y, window.x, SliceOf(tile, 0)));
    return tile;
  }

  void AddGeometry(const ops::PatchGeometry& drawn, PatchCard& card) const {
    if (drawn.whole_pixels) {
      const ops::WindowMap& w = drawn.window;
      card.facts.push_back(StrCat("drawn:", w.transpose ? " transposed" : "",
                                  w.reverse_y ? " upside-down" : "",
                                  w.reverse_x ? " left-right" : "",
                                  w.transpose || w.reverse_y || w.reverse_x ? "" : " as it is"));
      return;
    }
    const ops::AffineMap& m = drawn.map;
    card.facts.push_back(StrCat("drawn: source y = ", Digits(m.yy, 3), " y + ", Digits(m.yx, 3),
                                " x + ", Digits(m.y0, 1)));
    card.facts.push_back(StrCat("drawn: source x = ", Digits(m.xy, 3), " y + ", Digits(m.xx, 3),
                                " x + ", Digits(m.x0, 1)));
    if (drawn.elastic.points > 0) {
      card.facts.push_back(StrCat("drawn: elastic, ", drawn.elastic.points, " points"));
    }
  }

  void AddColour(const plan::PatchSpec& spec, PatchCard& card) const {
    const auto& fit = plan_.images()[spec.image].macenko;
    const ops::PatchColour drawn = whole_.DrawColour(spec.key, fit.has_value() ? &*fit : nullptr);
    if (fit.has_value()) {
      card.facts.push_back(
          StrCat("stain fit: up to ", Digits(fit->max_concentrations[0], 2), " and ",
                 Digits(fit->max_concentrations[1], 2),
                 fit->fallback == plan::StainFallback::kNone
                     ? ""
                     : StrCat(" (shipped numbers: ", plan::NameOf(fit->fallback), ")")));
    }
    if (drawn.od.has_value()) card.facts.emplace_back("drawn: stain map");
    if (drawn.jitter.has_value()) card.facts.emplace_back("drawn: colour jitter");
    if (drawn.blur.radius > 0) card.facts.emplace_back("drawn: blur");
    if (drawn.noise.std > 0) {
      card.facts.push_back(StrCat("drawn: noise of ", Digits(drawn.noise.std, 3)));
    }
  }

  /// What was drawn for the patch, in words.
  void AddDraws(const plan::PatchSpec& spec, PatchCard& card) const {
    const plan::PlannedView view = plan_.ViewOf(spec.image, 0);
    if (view.source != plan_.config().patch) {
      card.facts.push_back(
          StrCat("resampled to ", plan_.config().patch.y, " x ", plan_.config().patch.x));
    }
    AddGeometry(whole_.DrawGeometry(spec.key), card);
    AddColour(spec, card);
    card.facts.push_back(
        StrCat("seed ", spec.key.seed, ", epoch ", spec.key.epoch, ", ordinal ", spec.key.ordinal));
  }

  const plan::Plan& plan_;
  const ops::Chain plain_, whole_;
  ops::AreaAverage average_;
  EncodedPatch encoded_;
  std::vector<std::byte> tile_, finer_;
};

StatusOr<std::size_t> PatchesAsked(const Json& payload) {
  PB_ASSIGN_OR_RETURN(const std::uint64_t patches, JsonCount(payload, "patches", "preview"));
  if (patches >= 1 && patches <= kMaxPreviewCards) return static_cast<std::size_t>(patches);
  return absl::InvalidArgumentError(
      StrCat("preview: patches: ", patches, " is not in 1..", kMaxPreviewCards));
}

}  // namespace

StatusOr<TaskOutput> RunPreviewPatches(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const std::size_t asked, PatchesAsked(context.payload));
  PB_ASSIGN_OR_RETURN(const std::string text, JsonString(context.payload, "plan", "preview"));
  PB_ASSIGN_OR_RETURN(const plan::Plan plan, plan::Plan::Parse(text));
  PB_ASSIGN_OR_RETURN(const PlannedImages where,
                      PlannedImagesOf(context.manifest, plan.images().size()));
  PB_ASSIGN_OR_RETURN(const std::string out, JsonString(context.manifest, "out", "manifest"));
  PB_ASSIGN_OR_RETURN(const std::string target, context.MayWrite(out));
  PB_ASSIGN_OR_RETURN(ops::Chain plain, ChainOf(plan, false));
  PB_ASSIGN_OR_RETURN(ops::Chain whole, ChainOf(plan, true));
  Darkroom darkroom(plan, std::move(plain), std::move(whole));
  std::map<std::uint32_t, OpenedImage> images;
  std::vector<PatchCard> cards;
  const std::uint64_t count = std::min<std::uint64_t>(asked, plan.patches_per_epoch());
  for (std::uint64_t i = 0; i < count; ++i) {
    PB_RETURN_IF_ERROR(context.CheckCancelled());
    context.AddProgress();
    const std::uint64_t ordinal = plan.patches_per_epoch() / count * i;
    PB_ASSIGN_OR_RETURN(const plan::PatchSpec spec, plan.DeriveSpec(0, ordinal));
    OpenedImage& image = images[spec.image];
    if (image.source == nullptr) {
      const std::string& listed = where.paths[spec.image];
      context.names.AddImage(listed, StrCat("image ", spec.image));
      PB_ASSIGN_OR_RETURN(const std::string path, context.MayRead(listed));
      PB_ASSIGN_OR_RETURN(image.source, OpenImage(path));
      image.name = std::filesystem::path(path).filename().string();
    }
    PB_ASSIGN_OR_RETURN(PatchCard card, darkroom.CardOf(ordinal, spec, image));
    cards.push_back(std::move(card));
  }
  PB_ASSIGN_OR_RETURN(
      const std::string png,
      DrawPatchSheet(StrCat(count, " of ", plan.patches_per_epoch(), " patches"), cards));
  PB_ASSIGN_OR_RETURN(const std::uint64_t bytes, WriteSheet(target, png));
  TaskOutput output;
  output.result = DumpJson({{"patches", count}, {"bytes", bytes}});
  return output;
}

}  // namespace patchbay::workers
