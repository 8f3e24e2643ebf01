#include "ops/chain/chain.h"

#include <algorithm>
#include <utility>

#include "ops/geometry/pixels.h"
#include "ops/intensity/cast.h"
#include "ops/intensity/normalize.h"
#include "runtime/base/strings.h"
#include "runtime/plan/ops/cast.h"

namespace patchbay::ops {
namespace {

constexpr std::int64_t kMaxPatchSide = 16'384;
constexpr std::int64_t kMaxPatchPixels = kMaxPatchSide * kMaxPatchSide;

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

Status CheckPatch(const Extent& patch) {
  for (const std::int64_t side : {patch.z, patch.y, patch.x}) {
    if (side < 1 || side > kMaxPatchSide) {
      return absl::InvalidArgumentError(
          StrCat("compile ops: patch ", patch.ToString(), ": sides not in 1..", kMaxPatchSide));
    }
  }
  if (patch.z <= kMaxPatchPixels / (patch.y * patch.x)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("compile ops: patch ", patch.ToString(), ": more than ", kMaxPatchPixels, " pixels"));
}

}  // namespace

Status Chain::AddOp(const plan::OpStep& step, std::vector<std::vector<double>>& values) {
  const std::uint32_t occurrence = plan::Occurrence(step);
  switch (step.op) {
    case plan::OpNumber::kFlip:
      steps_.push_back({occurrence, plan::FlipOptions::FromJson(step.options)});
      break;
    case plan::OpNumber::kRotate90:
      steps_.push_back({occurrence, plan::Rotate90Options{}});
      break;
    case plan::OpNumber::kCrop: {
      const auto crop = plan::CropOptions::FromJson(step.options);
      margin_y_ += crop.margin_y;
      margin_x_ += crop.margin_x;
      steps_.push_back({occurrence, crop});
      break;
    }
    case plan::OpNumber::kNormalize: {
      const auto normalize = plan::NormalizeOptions::FromJson(step.options);
      const auto channels = NormalizeChannels(normalize, options_.channels);
      if (!channels.ok()) return plan::WrongOp(step.key, MessageOf(channels.status()));
      for (std::size_t c = 0; c < values.size(); ++c) {
        const NormalizeChannel& k = (*channels)[c];
        for (double& v : values[c]) v = NormalizeValue(v, k.scale, k.mean, k.std);
      }
      value_steps_.AddNormalize(*channels);
      break;
    }
    case plan::OpNumber::kCast: {
      const DType dtype = plan::CastOptions::FromJson(step.options).dtype;
      PB_ASSIGN_OR_RETURN(const CastTo to, CastTarget(dtype));
      for (auto& channel : values) {
        for (double& v : channel) v = CastValue(CastBits(static_cast<float>(v), to), to);
      }
      value_steps_.AddCast(to);
      break;
    }
  }
  return absl::OkStatus();
}

StatusOr<Chain> Chain::Compile(const ChainOptions& options) {
  if (options.source_dtype != DType::kUint8 && !HasValuePath(options.source_dtype)) {
    return absl::UnimplementedError(
        StrCat("compile ops: images of ", NameOf(options.source_dtype),
               ": only uint8, uint16, int16 and float32 are supported"));
  }
  if (options.channels < 1 || options.channels > kMaxChannels) {
    return absl::InvalidArgumentError(
        StrCat("compile ops: ", options.channels, " channels: not in 1..", kMaxChannels));
  }
  PB_RETURN_IF_ERROR(CheckPatch(options.patch));
  PB_RETURN_IF_ERROR(
      plan::CheckOps(options.preprocess, options.augment, options.patch.y, options.patch.x));
  PB_ASSIGN_OR_RETURN(const std::vector<plan::OpStep> steps,
                      plan::OrderOps(options.preprocess, options.augment));
  Chain chain;
  chain.options_ = options;
  std::vector<std::vector<double>> values(static_cast<std::size_t>(options.channels),
                                          std::vector<double>(kTableEntries));
  for (auto& channel : values) {
    for (std::size_t v = 0; v < kTableEntries; ++v) channel[v] = static_cast<double>(v);
  }
  for (const plan::OpStep& step : steps) PB_RETURN_IF_ERROR(chain.AddOp(step, values));
  PB_ASSIGN_OR_RETURN(const CastTo to, CastTarget(options.dtype));
  if (options.source_dtype != DType::kUint8) return chain;
  std::vector<double> exact;
  for (const auto& channel : values) exact.insert(exact.end(), channel.begin(), channel.end());
  chain.rows_ = std::make_shared<const RowMaker>(
      exact, options.channels, to, options.layout == OutputLayout::kNchw, options.cpu_level);
  return chain;
}

Box Chain::SourceBox(const Box& box) const {
  Box source = box;
  source.y -= margin_y_;
  source.x -= margin_x_;
  source.height += 2 * margin_y_;
  source.width += 2 * margin_x_;
  return source;
}

std::uint64_t Chain::patch_bytes() const {
  return static_cast<std::uint64_t>(options_.patch.Pixels()) *
         static_cast<std::uint64_t>(options_.channels) * SizeOf(options_.dtype);
}

WindowMap Chain::DrawWindow(const DrawKey& key) const {
  PixelMap map;
  std::int64_t height = source_extent().y, width = source_extent().x;
  for (const GeometryStep& step : steps_) {
    DrawKey own = key;
    own.op_occurrence = step.occurrence;
    own.stream = DrawStream::kParameters;
    if (const auto* flip = std::get_if<plan::FlipOptions>(&step.op)) {
      map = map.Then(FlipSource{DrawFlip(*flip, own), height, width});
    } else if (const auto* crop = std::get_if<plan::CropOptions>(&step.op)) {
      map = map.Then(CropSource{DrawCrop(*crop, own)});
      height -= 2 * crop->margin_y;
      width -= 2 * crop->margin_x;
    } else {
      map = map.Then(Rotate90Source{DrawRotate90(own), height, width});
    }
  }
  return WindowOf(map, height, width);
}

std::span<const std::uint32_t> Chain::table() const {
  return rows_ == nullptr ? std::span<const std::uint32_t>() : rows_->table();
}

std::string_view Chain::cpu_path() const { return rows_ == nullptr ? "values" : rows_->PathName(); }

Status Chain::Run(const ConstTensorView& source, const DrawKey& key, std::span<std::byte> out,
                  std::vector<std::byte>& scratch) const {
  const ConstTensorView deep = source.rank == 3 ? WithDepth(source) : source;
  const Extent expected = source_extent();
  const bool fits = deep.rank == 4 && deep.dtype == options_.source_dtype && deep.data != nullptr &&
                    deep.shape[0] == expected.z && deep.shape[1] == expected.y &&
                    deep.shape[2] == expected.x && deep.shape[3] == options_.channels &&
                    out.size() == patch_bytes();
  if (!fits) {
    return absl::InvalidArgumentError(
        StrCat("run ops: expected a source of ", expected.ToString(), " x ", options_.channels, " ",
               NameOf(options_.source_dtype), " and ", patch_bytes(), " bytes of output"));
  }
  const WindowMap window = DrawWindow(key);
  const std::int64_t slice_bytes = options_.patch.y * options_.patch.x *
                                   static_cast<std::int64_t>(SizeOf(options_.dtype)) *
                                   (options_.layout == OutputLayout::kNchw ? 1 : options_.channels);
  for (std::int64_t z = 0; z < expected.z; ++z) {
    PB_ASSIGN_OR_RETURN(const Strided slice, AsInput(SliceOf(deep, z)));
    RunSlice(slice, window, out.data() + z * slice_bytes, scratch);
  }
  if (rows_ != nullptr && rows_->CanStream()) RowMaker::FinishStreaming();
  return absl::OkStatus();
}

void Chain::RunSlice(const Strided& in, const WindowMap& window, std::byte* out,
                     std::vector<std::byte>& scratch) const {
  const std::int64_t height = options_.patch.y, width = options_.patch.x;
  const std::int64_t channels = options_.channels;
  const auto element = static_cast<std::int64_t>(SizeOf(options_.dtype));
  const bool planar = options_.layout == OutputLayout::kNchw;
  const std::int64_t plane_bytes = options_.patch.Pixels() * element;
  if (rows_ == nullptr) {
    const ValueTarget target{out, planar ? element : element * channels,
                             planar ? plane_bytes : element, *CastTarget(options_.dtype)};
    return MakeValues(in, options_.source_dtype, window, value_steps_, target);
  }
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
      job.out = out + (first + r) * width * element * (planar ? 1 : channels);
      job.plane_bytes = plane_bytes;
      job.stream = rows_->CanStream();
      rows_->Make(job);
    }
  }
}

}  // namespace patchbay::ops
