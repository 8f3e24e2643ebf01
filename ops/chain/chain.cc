#include "ops/chain/chain.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "ops/cast/cast.h"
#include "ops/chain/patch_pass.h"
#include "ops/chain/row_gather.h"
#include "ops/geometry/pixels.h"
#include "ops/normalize/normalize.h"
#include "runtime/core/strings.h"
#include "runtime/model/ops/cast.h"
#include "runtime/model/ops/volume_chain.h"

namespace patchbay::ops {
namespace {

constexpr std::int64_t kMaxPatchSide = 16'384;
constexpr std::int64_t kMaxPatchPixels = kMaxPatchSide * kMaxPatchSide;

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

/// The values 0 to 255 of every channel.
std::vector<std::vector<double>> EveryByte(int channels) {
  std::vector<double> bytes(kTableEntries);
  std::iota(bytes.begin(), bytes.end(), 0.0);
  return std::vector<std::vector<double>>(static_cast<std::size_t>(channels), bytes);
}

}  // namespace

Status Chain::AddValueOp(const plan::OpStep& step, std::vector<std::vector<double>>& values) {
  if (step.op == plan::OpNumber::kCast) {
    PB_ASSIGN_OR_RETURN(const CastTo to,
                        CastTarget(plan::CastOptions::FromJson(step.options).dtype));
    for (auto& channel : values) {
      for (double& v : channel) v = CastValue(CastBits(static_cast<float>(v), to), to);
    }
    value_steps_.AddCast(to);
  } else if (step.op == plan::OpNumber::kNormalize) {
    const auto normalize = plan::NormalizeOptions::FromJson(step.options);
    PB_ASSIGN_OR_RETURN(const std::vector<NormalizeChannel> channels,
                        NormalizeChannels(normalize, options_.channels));
    for (std::size_t c = 0; c < values.size(); ++c) {
      const NormalizeChannel& k = channels[c];
      for (double& v : values[c]) v = NormalizeValue(v, k.scale, k.mean, k.std);
    }
    value_steps_.AddNormalize(channels);
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
      plan::CheckOps(options.preprocess, options.augment, options.patch, options.kind));
  PB_ASSIGN_OR_RETURN(const std::vector<plan::OpStep> steps,
                      plan::SortOps(options.preprocess, options.augment));
  Chain chain;
  chain.options_ = options;
  chain.geometry_ = GeometryProgram(options.patch);
  chain.colour_ = ColourProgram(options.channels, options.source_dtype);
  if (plan::IsVolumeChain(steps, options.patch, options.kind)) {
    PB_RETURN_IF_ERROR(CompileVolume(steps, chain));
    return chain;
  }
  for (const plan::OpStep& step : steps) {
    if (plan::NeedsOf(step.op).moves) {
      chain.geometry_.Add(step);
    } else {
      PB_RETURN_IF_ERROR(chain.colour_.Add(step));
    }
  }
  PB_ASSIGN_OR_RETURN(const CastTo to, CastTarget(options.dtype));
  if (chain.geometry_.samples_between() || chain.colour_.needs_pixels()) {
    chain.loops_ = &LoopsAt(options.cpu_level);
    return chain;
  }
  auto values = EveryByte(options.channels);
  for (const plan::OpStep& step : steps) PB_RETURN_IF_ERROR(chain.AddValueOp(step, values));
  if (options.source_dtype != DType::kUint8) return chain;
  std::vector<double> exact;
  for (const auto& channel : values) exact.insert(exact.end(), channel.begin(), channel.end());
  chain.rows_ = std::make_shared<const RowMaker>(
      exact, options.channels, to, options.layout == OutputLayout::kNchw, options.cpu_level);
  return chain;
}

Status Chain::CompileVolume(const std::vector<plan::OpStep>& steps, Chain& chain) {
  PB_RETURN_IF_ERROR(CastTarget(chain.options_.dtype).status());
  if (chain.options_.channels != 1) {
    const auto first = std::find_if(steps.begin(), steps.end(), plan::IsVolumeStep);
    const auto& named = first == steps.end() ? steps.begin() : first;
    return plan::WrongOp(
        named == steps.end() ? "patch.spacing" : named->key,
        StrCat("needs images of one channel; these have ", chain.options_.channels,
               chain.options_.patch.z == 1 ? "; of 2-D images patch.size is [y, x]" : ""));
  }
  PB_ASSIGN_OR_RETURN(VolumeProgram program,
                      VolumeProgram::Make(steps, chain.options_.patch, chain.options_.kind));
  chain.volume_ = std::make_shared<const VolumeProgram>(std::move(program));
  chain.loops_ = &LoopsAt(chain.options_.cpu_level);
  return absl::OkStatus();
}

Status Chain::CheckImage(const plan::VolumeFacts& facts) const {
  return is_volume() ? volume_->moves().CheckImage(facts) : absl::OkStatus();
}

Extent Chain::SourceExtent(const DrawKey& key, const plan::VolumeFacts& facts) const {
  return is_volume() ? DrawVolume(key, facts).source.Shape() : source_extent();
}

Box Chain::SourceBox(const Box& box, const DrawKey& key, const plan::VolumeFacts& facts) const {
  Box source = box;
  if (is_volume()) {
    source = DrawVolume(key, facts).source;
    source.z += box.z;
    source.y += box.y;
    source.x += box.x;
    return source;
  }
  source.y -= geometry_.margin_y();
  source.x -= geometry_.margin_x();
  source.height += 2 * geometry_.margin_y();
  source.width += 2 * geometry_.margin_x();
  return source;
}

std::uint64_t Chain::patch_bytes() const {
  return static_cast<std::uint64_t>(options_.patch.Pixels()) *
         static_cast<std::uint64_t>(options_.channels) * SizeOf(options_.dtype);
}

std::span<const std::uint32_t> Chain::table() const {
  return rows_ == nullptr ? std::span<const std::uint32_t>() : rows_->table();
}

std::string_view Chain::cpu_path() const {
  if (loops_ != nullptr) return loops_->name;
  return rows_ == nullptr ? "values" : rows_->PathName();
}

Status Chain::CheckFit(const ImageColours& colours) const {
  if (colour_.HasFit(colours)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "run ops: stain_normalize: the image has no stain fit; ingest it into a store");
}

Status Chain::Run(const ConstTensorView& source, const DrawKey& key, std::span<std::byte> out,
                  std::vector<std::byte>& scratch, const ImageColours& colours,
                  const plan::VolumeFacts* facts) const {
  if (needs_facts() && facts == nullptr) {
    return absl::InvalidArgumentError("run ops: the volume's spacing and statistics are not known");
  }
  const plan::VolumeFacts known = facts != nullptr ? *facts : plan::VolumeFacts{};
  const ConstTensorView deep = source.rank == 3 ? WithDepth(source) : source;
  const Extent expected = SourceExtent(key, known);
  const bool fits = deep.rank == 4 && deep.dtype == options_.source_dtype && deep.data != nullptr &&
                    deep.shape[0] == expected.z && deep.shape[1] == expected.y &&
                    deep.shape[2] == expected.x && deep.shape[3] == options_.channels &&
                    out.size() == patch_bytes();
  if (!fits) {
    return absl::InvalidArgumentError(
        StrCat("run ops: expected a source of ", expected.ToString(), " x ", options_.channels, " ",
               NameOf(options_.source_dtype), " and ", patch_bytes(), " bytes of output"));
  }
  PB_RETURN_IF_ERROR(CheckFit(colours));
  if (loops_ != nullptr) {
    RunInFloat(deep, key, colours, known, out.data(), scratch);
    return absl::OkStatus();
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

void Chain::RunInFloat(const ConstTensorView& source, const DrawKey& key,
                       const ImageColours& colours, const plan::VolumeFacts& facts, std::byte* out,
                       std::vector<std::byte>& scratch) const {
  const PatchTarget target{options_.patch, options_.channels,
                           options_.layout == OutputLayout::kNchw, *CastTarget(options_.dtype),
                           out};
  if (is_volume()) {
    const VolumeGeometry geometry = DrawVolume(key, facts);
    const auto steps = StepsOf(*volume_, DrawIntensity(key, facts), options_.patch);
    return RunPatch(*loops_, *GatherOf(*loops_, source, geometry, options_.patch), steps, target,
                    scratch);
  }
  const PatchGeometry geometry = DrawGeometry(key);
  const auto steps = StepsOf(colour_, DrawColour(key, colours));
  RunPatch(*loops_, *GatherOf(*loops_, source, geometry, options_.patch), steps, target, scratch);
}

Status Chain::RunLabels(const ConstTensorView& labels, const DrawKey& key,
                        std::span<std::uint8_t> out, std::vector<std::byte>& scratch,
                        const plan::VolumeFacts& facts) const {
  const Extent expected = SourceExtent(key, facts);
  const ConstTensorView deep = labels.rank == 3 ? WithDepth(labels) : labels;
  const bool fits = deep.rank == 4 && deep.dtype == DType::kUint8 && deep.data != nullptr &&
                    deep.shape[0] == expected.z && deep.shape[1] == expected.y &&
                    deep.shape[2] == expected.x && deep.shape[3] == 1 &&
                    out.size() == static_cast<std::size_t>(options_.patch.Pixels());
  if (!fits) {
    return absl::InvalidArgumentError(StrCat("run ops: expected labels of ", expected.ToString(),
                                             " x 1 uint8 and ", options_.patch.Pixels(),
                                             " bytes of output"));
  }
  const RowLoops& loops = LoopsAt(options_.cpu_level);
  if (is_volume()) {
    VolumeGeometry geometry = DrawVolume(key, facts);
    for (double& sigma : geometry.smooth) sigma = 0;
    RunNearest(*GatherOf(loops, deep, geometry, options_.patch), options_.patch, out.data(),
               scratch);
  } else {
    const PatchGeometry geometry = DrawGeometry(key);
    RunNearest(*GatherOf(loops, deep, geometry, options_.patch), options_.patch, out.data(),
               scratch);
  }
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
      ByteRow pixels;
      pixels.row = in_place ? FindRow(in, window, first + r).row : stage + r * stage_row;
      pixels.mirrored = in_place && found.mirrored;
      pixels.width = width;
      pixels.out = out + (first + r) * width * element * (planar ? 1 : channels);
      pixels.plane_bytes = plane_bytes;
      pixels.stream = rows_->CanStream();
      rows_->Make(pixels);
    }
  }
}

}  // namespace patchbay::ops
