#include "ops/chain.h"

#include <algorithm>
#include <utility>

#include "ops/cast.h"
#include "ops/normalize.h"
#include "ops/pixels.h"
#include "runtime/base/strings.h"

namespace patchbay::ops {
namespace {

constexpr std::int64_t kMaxPatchSide = 16'384;

/// "augment[0]": where a config has the op of that occurrence.
std::string PlaceOf(const ChainOptions& options, std::uint32_t occurrence) {
  const std::size_t before = options.preprocess.size();
  return occurrence < before ? StrCat("preprocess[", occurrence, "]")
                             : StrCat("augment[", occurrence - before, "]");
}

/// `key` is written as in the messages of a key table, so that a reader finds its line.
Status Wrong(const std::string& key, std::string_view cause) {
  return absl::InvalidArgumentError(StrCat("compile ops: key '", key, "': ", cause));
}

/// The most values a normalize of these steps has for its channels.
std::size_t LongestList(const Json& steps) {
  std::size_t longest = 1;
  for (const Json& step : steps) {
    if (!step.is_object() || !step.contains("normalize")) continue;
    for (const char* name : {"mean", "std"}) {
      const Json& options = step["normalize"];
      if (options.is_object() && options.contains(name) && options[name].is_array()) {
        longest = std::max(longest, options[name].size());
      }
    }
  }
  return longest;
}

std::int64_t Extent(std::int64_t patch, std::int64_t margin) { return patch + 2 * margin; }

/// The map out -> in of an image under the ops applied so far, as y = sy + yi * i + yj * j and
/// likewise x. Its coefficients are -1, 0 or 1.
struct PixelMap {
  std::int64_t sy = 0, yi = 1, yj = 0;
  std::int64_t sx = 0, xi = 0, xj = 1;

  PixelPlace At(PixelPlace p) const { return {sy + yi * p.y + yj * p.x, sx + xi * p.y + xj * p.x}; }

  /// This map after `source`, an op's own out -> in function.
  template <typename Source>
  PixelMap Then(const Source& source) const {
    const PixelPlace origin = At(source({0, 0})), down = At(source({1, 0})),
                     right = At(source({0, 1}));
    return {origin.y, down.y - origin.y, right.y - origin.y,
            origin.x, down.x - origin.x, right.x - origin.x};
  }
};

WindowMap WindowOf(const PixelMap& map, std::int64_t height, std::int64_t width) {
  WindowMap window;
  window.out_height = height;
  window.out_width = width;
  window.transpose = map.yj != 0;
  window.reverse_y = map.yi + map.yj < 0;
  window.reverse_x = map.xi + map.xj < 0;
  const PixelPlace first = map.At({0, 0}), last = map.At({height - 1, width - 1});
  window.source_y = std::min(first.y, last.y);
  window.source_x = std::min(first.x, last.x);
  return window;
}

bool Same(const config::Key& key, const std::string& name) { return key.name == name; }

}  // namespace

std::vector<config::Key> OpKeys() {
  return {CropOptions::Keys(), FlipOptions::Keys(), Rotate90Options::Keys(),
          NormalizeOptions::Keys(), CastOptions::Keys()};
}

Status Chain::AddOp(const Json& step, std::uint32_t occurrence,
                    std::vector<std::vector<double>>& values) {
  const std::string place = PlaceOf(options_, occurrence);
  if (!step.is_object() || step.size() != 1) return Wrong(place, "not one name with options");
  const std::string& name = step.begin().key();
  const std::string path = StrCat(place, ".", name);
  const std::vector<config::Key> known = OpKeys();
  const auto key =
      std::find_if(known.begin(), known.end(), [&](const config::Key& k) { return Same(k, name); });
  if (key == known.end()) return Wrong(path, "unknown op");
  PB_ASSIGN_OR_RETURN(const Json options, config::ValidateJson(step.begin().value(), *key,
                                                               StrCat("compile ops: ", path)));
  if (name == "flip") {
    steps_.push_back({occurrence, FlipOptions::FromJson(options)});
  } else if (name == "rotate90") {
    steps_.push_back({occurrence, Rotate90Options{}});
  } else if (name == "crop") {
    const CropOptions crop = CropOptions::FromJson(options);
    margin_y_ += crop.margin_y;
    margin_x_ += crop.margin_x;
    steps_.push_back({occurrence, crop});
  } else if (name == "normalize") {
    const auto channels = NormalizeChannels(NormalizeOptions::FromJson(options), options_.channels);
    if (!channels.ok()) return Wrong(path, MessageOf(channels.status()));
    for (std::size_t c = 0; c < values.size(); ++c) {
      const NormalizeChannel& k = (*channels)[c];
      for (double& v : values[c]) v = NormalizeValue(v, k.scale, k.mean, k.std);
    }
  } else {
    PB_ASSIGN_OR_RETURN(const CastTo to, CastTarget(CastOptions::FromJson(options).dtype));
    for (auto& channel : values) {
      for (double& v : channel) v = CastValue(CastBits(static_cast<float>(v), to), to);
    }
  }
  return absl::OkStatus();
}

Status Chain::CheckShapes() const {
  std::int64_t height = source_height(), width = source_width();
  for (const GeometryStep& step : steps_) {
    if (const auto* crop = std::get_if<CropOptions>(&step.op)) {
      height -= 2 * crop->margin_y;
      width -= 2 * crop->margin_x;
    }
    if (std::holds_alternative<Rotate90Options>(step.op) && height != width) {
      return Wrong(
          PlaceOf(options_, step.occurrence) + ".rotate90",
          StrCat("needs a square patch, got ", height, " x ", width, " at its place of the chain"));
    }
  }
  return absl::OkStatus();
}

StatusOr<Chain> Chain::Compile(const ChainOptions& options) {
  if (options.source_dtype != DType::kUint8) {
    return absl::UnimplementedError(StrCat("compile ops: images of ", NameOf(options.source_dtype),
                                           ": only uint8 is supported"));
  }
  if (options.channels < 1 || options.channels > kMaxChannels) {
    return absl::InvalidArgumentError(
        StrCat("compile ops: ", options.channels, " channels: not in 1..", kMaxChannels));
  }
  if (std::min(options.patch_height, options.patch_width) < 1 ||
      std::max(options.patch_height, options.patch_width) > kMaxPatchSide) {
    return absl::InvalidArgumentError(StrCat("compile ops: patch ", options.patch_height, " x ",
                                             options.patch_width, ": sides not in 1..",
                                             kMaxPatchSide));
  }
  const bool lists = options.preprocess.is_array() && options.augment.is_array();
  if (!lists || options.preprocess.size() + options.augment.size() > kMaxOps) {
    return absl::InvalidArgumentError(
        StrCat("compile ops: expected two lists of at most ", kMaxOps, " ops"));
  }
  Chain chain;
  chain.options_ = options;
  std::vector<std::vector<double>> values(static_cast<std::size_t>(options.channels),
                                          std::vector<double>(kTableEntries));
  for (auto& channel : values) {
    for (std::size_t v = 0; v < kTableEntries; ++v) channel[v] = static_cast<double>(v);
  }
  std::uint32_t occurrence = 0;
  for (const Json* list : {&options.preprocess, &options.augment}) {
    for (const Json& step : *list) PB_RETURN_IF_ERROR(chain.AddOp(step, occurrence++, values));
  }
  PB_RETURN_IF_ERROR(chain.CheckShapes());
  PB_ASSIGN_OR_RETURN(const CastTo to, CastTarget(options.dtype));
  std::vector<double> exact;
  for (const auto& channel : values) exact.insert(exact.end(), channel.begin(), channel.end());
  chain.rows_ = std::make_shared<const RowMaker>(
      exact, options.channels, to, options.layout == OutputLayout::kNchw, options.cpu_level);
  return chain;
}

Status Chain::CheckConfig(const ChainOptions& options) {
  ChainOptions some_image = options;
  const std::size_t longest =
      std::max(LongestList(options.preprocess), LongestList(options.augment));
  if (longest > 1)
    some_image.channels = static_cast<int>(std::min<std::size_t>(longest, kMaxChannels));
  return Compile(some_image).status();
}

Box Chain::SourceBox(const Box& box) const {
  Box source = box;
  source.y -= margin_y_;
  source.x -= margin_x_;
  source.height = Extent(box.height, margin_y_);
  source.width = Extent(box.width, margin_x_);
  return source;
}

std::uint64_t Chain::patch_bytes() const {
  return static_cast<std::uint64_t>(options_.patch_height) *
         static_cast<std::uint64_t>(options_.patch_width) *
         static_cast<std::uint64_t>(options_.channels) * SizeOf(options_.dtype);
}

WindowMap Chain::DrawWindow(const DrawKey& key) const {
  PixelMap map;
  std::int64_t height = source_height(), width = source_width();
  for (const GeometryStep& step : steps_) {
    DrawKey own = key;
    own.op_occurrence = step.occurrence;
    own.stream = DrawStream::kParameters;
    if (const auto* flip = std::get_if<FlipOptions>(&step.op)) {
      map = map.Then(FlipSource{DrawFlip(*flip, own), height, width});
    } else if (const auto* crop = std::get_if<CropOptions>(&step.op)) {
      map = map.Then(CropSource{DrawCrop(*crop, own)});
      height -= 2 * crop->margin_y;
      width -= 2 * crop->margin_x;
    } else {
      map = map.Then(Rotate90Source{DrawRotate90(own), height, width});
    }
  }
  return WindowOf(map, height, width);
}

Status Chain::Run(const ConstTensorView& source, const DrawKey& key, std::span<std::byte> out,
                  std::vector<std::byte>& scratch) const {
  const std::int64_t height = options_.patch_height, width = options_.patch_width;
  const bool fits = source.rank == 3 && source.dtype == DType::kUint8 && source.data != nullptr &&
                    source.shape[0] == source_height() && source.shape[1] == source_width() &&
                    source.shape[2] == options_.channels && out.size() == patch_bytes();
  if (!fits) {
    return absl::InvalidArgumentError(StrCat("run ops: expected a source of ", source_height(),
                                             " x ", source_width(), " x ", options_.channels,
                                             " uint8 and ", patch_bytes(), " bytes of output"));
  }
  PB_ASSIGN_OR_RETURN(const Strided in, AsInput(source));
  const WindowMap window = DrawWindow(key);
  const std::int64_t channels = options_.channels;
  const auto element = static_cast<std::int64_t>(SizeOf(options_.dtype));
  const bool planar = options_.layout == OutputLayout::kNchw;
  const std::int64_t stage_row = (width * channels + kStageSlack + 63) / 64 * 64;
  scratch.resize(static_cast<std::size_t>(stage_row * kStageRows));
  auto* stage = reinterpret_cast<std::uint8_t*>(scratch.data());
  for (std::int64_t first = 0; first < height; first += kStageRows) {
    const std::int64_t count = std::min(kStageRows, height - first);
    const RowInSource found = FindRow(in, window, first);
    const bool in_place = found.row != nullptr && (!found.mirrored || rows_->CanMirror(width));
    if (!in_place) StageRows(in, window, first, count, stage, stage_row);
    for (std::int64_t r = 0; r < count; ++r) {
      RowJob job;
      job.row = in_place ? FindRow(in, window, first + r).row : stage + r * stage_row;
      job.mirrored = in_place && found.mirrored;
      job.width = width;
      job.out = out.data() + (first + r) * width * element * (planar ? 1 : channels);
      job.plane_bytes = height * width * element;
      job.stream = rows_->CanStream();
      rows_->Make(job);
    }
  }
  if (rows_->CanStream()) RowMaker::FinishStreaming();
  return absl::OkStatus();
}

}  // namespace patchbay::ops
