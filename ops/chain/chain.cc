#include "ops/chain/chain.h"

#include <algorithm>
#include <utility>

#include "ops/all_ops.h"
#include "ops/chain/patch_pass.h"
#include "ops/chain/row_gather.h"
#include "ops/geometry/pixels.h"
#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

constexpr std::int64_t kMaxPatchSide = 16'384;
constexpr std::int64_t kMaxPatchPixels = kMaxPatchSide * kMaxPatchSide;

Status CheckPatch(const Extent& patch) {
  for (const std::int64_t side : {patch.z, patch.y, patch.x}) {
    if (side < 1 || side > kMaxPatchSide) {
      return InvalidArgument("compile ops: patch ", patch.ToString(), ": sides not in 1..",
                             kMaxPatchSide);
    }
  }
  if (patch.z <= kMaxPatchPixels / (patch.y * patch.x)) return absl::OkStatus();
  return InvalidArgument("compile ops: patch ", patch.ToString(), ": more than ", kMaxPatchPixels,
                         " pixels");
}

bool IsSourceType(DType dtype) {
  return dtype == DType::kUint8 || dtype == DType::kUint16 || dtype == DType::kInt16 ||
         dtype == DType::kFloat32;
}

/// A patch of one slice and several channels may be a slide's, whose ops are others.
Status CheckChannels(const std::vector<plan::OpStep>& steps, const ChainOptions& options) {
  if (options.channels == 1 || options.patch.z > 1 || options.images_have_depth) {
    return absl::OkStatus();
  }
  const auto first = std::find_if(steps.begin(), steps.end(), plan::IsVolumeStep);
  const auto& named = first == steps.end() ? steps.begin() : first;
  return plan::WrongOp(named == steps.end() ? "patch.spacing" : named->key,
                       StrCat("needs images of one channel; these have ", options.channels,
                              "; of 2-D images patch.size is [y, x]"));
}

}  // namespace

StatusOr<Chain> Chain::Compile(const ChainOptions& options) {
  if (!IsSourceType(options.source_dtype)) {
    return Unimplemented("compile ops: images of ", NameOf(options.source_dtype),
                         ": only uint8, uint16, int16 and float32 are supported");
  }
  if (options.channels < 1 || options.channels > kMaxChannels) {
    return InvalidArgument("compile ops: ", options.channels, " channels: not in 1..",
                           kMaxChannels);
  }
  PB_RETURN_IF_ERROR(CheckPatch(options.patch));
  PB_RETURN_IF_ERROR(
      plan::CheckOps(Table(), options.preprocess, options.augment, options.patch, options.kind));
  PB_ASSIGN_OR_RETURN(std::vector<plan::OpStep> steps,
                      plan::SortOps(Table(), options.preprocess, options.augment));
  PB_ASSIGN_OR_RETURN(const CastTo to, CastTarget(options.dtype));
  Chain chain;
  chain.options_ = options;
  chain.loops_ = &LoopsAt(options.cpu_level);
  chain.is_volume_ = plan::IsVolumeChain(steps, options.patch, options.kind);
  if (chain.is_volume_) {
    PB_RETURN_IF_ERROR(CheckChannels(steps, options));
    const auto needed = plan::FactsNeededBy(steps, options.patch, options.kind);
    chain.needs_facts_ = needed.spacing || needed.body;
  }
  PB_ASSIGN_OR_RETURN(auto program,
                      ChainProgram::Compile(steps, {options.patch, options.channels,
                                                    options.source_dtype, chain.is_volume_}));
  chain.program_ = std::make_shared<const ChainProgram>(std::move(program));
  if (chain.program_->in_float() || options.source_dtype != DType::kUint8) return chain;
  std::vector<double> exact;
  for (int c = 0; c < options.channels; ++c) {
    for (int v = 0; v < static_cast<int>(kTableEntries); ++v) {
      exact.push_back(chain.program_->Exactly(v, c));
    }
  }
  chain.rows_ = std::make_shared<const RowMaker>(
      exact, options.channels, to, options.layout == PatchLayout::kNchw, options.cpu_level);
  return chain;
}

Status Chain::CheckImage(const plan::VolumeFacts& facts) const {
  return is_volume() ? program_->volumes().CheckImage(facts) : absl::OkStatus();
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
  source.y -= images().margin_y();
  source.x -= images().margin_x();
  source.height += 2 * images().margin_y();
  source.width += 2 * images().margin_x();
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
  if (rows_ != nullptr) return rows_->PathName();
  return program_->in_float() ? loops_->name : "values";
}

Status Chain::Run(const ConstTensorView& source, const DrawKey& key, std::span<std::byte> out,
                  std::vector<std::byte>& scratch, const ImageColours& colours,
                  const plan::VolumeFacts* facts) const {
  if (needs_facts() && facts == nullptr) {
    return InvalidArgument("run ops: the volume's spacing and statistics are not known");
  }
  const plan::VolumeFacts known = facts != nullptr ? *facts : plan::VolumeFacts{};
  const ConstTensorView deep = source.rank == 3 ? WithDepth(source) : source;
  const Extent expected = SourceExtent(key, known);
  const bool fits = deep.rank == 4 && deep.dtype == options_.source_dtype && deep.data != nullptr &&
                    deep.shape[0] == expected.z && deep.shape[1] == expected.y &&
                    deep.shape[2] == expected.x && deep.shape[3] == options_.channels &&
                    out.size() == patch_bytes();
  if (!fits) {
    return InvalidArgument("run ops: expected a source of ", expected.ToString(), " x ",
                           options_.channels, " ", NameOf(options_.source_dtype), " and ",
                           patch_bytes(), " bytes of output");
  }
  PB_RETURN_IF_ERROR(CheckFit(colours));
  if (rows_ == nullptr) {
    RunSteps(deep, {key, colours, known}, out.data(), scratch);
    return absl::OkStatus();
  }
  const WindowMap window = DrawWindow(key);
  const std::int64_t slice_bytes = options_.patch.y * options_.patch.x *
                                   static_cast<std::int64_t>(SizeOf(options_.dtype)) *
                                   (options_.layout == PatchLayout::kNchw ? 1 : options_.channels);
  for (std::int64_t z = 0; z < expected.z; ++z) {
    PB_ASSIGN_OR_RETURN(const Strided slice, AsInput(SliceOf(deep, z)));
    RunTable(slice, window, out.data() + z * slice_bytes, scratch);
  }
  if (rows_->CanStream()) RowMaker::FinishStreaming();
  return absl::OkStatus();
}

bool Chain::OnlyMirrors(const DrawKey& key) const {
  return rows_ != nullptr && rows_->path() == RowMaker::Path::kCopy &&
         source_extent() == options_.patch && !DrawWindow(key).transpose;
}

void Chain::RunInPlace(const DrawKey& key, std::span<std::byte> patch,
                       std::vector<std::byte>& scratch) const {
  PB_CHECK(OnlyMirrors(key) && patch.size() == patch_bytes());
  const WindowMap window = DrawWindow(key);
  const Extent& size = options_.patch;
  Strided slice{.data = patch.data(),
                .height = size.y,
                .width = size.x,
                .channels = options_.channels,
                .row_bytes = size.x * options_.channels,
                .column_bytes = options_.channels,
                .channel_bytes = 1};
  scratch.resize(static_cast<std::size_t>(2 * (slice.row_bytes + kStageSlack)));
  auto* stage = reinterpret_cast<std::uint8_t*>(scratch.data());
  for (std::int64_t z = 0; z < size.z; ++z, slice.data += size.y * slice.row_bytes) {
    MirrorInPlace(slice, window, stage);
  }
}

void Chain::RunSteps(const ConstTensorView& source, const PatchDraw& draw, std::byte* out,
                     std::vector<std::byte>& scratch) const {
  const PatchTarget target{options_.patch, options_.channels, options_.layout == PatchLayout::kNchw,
                           *CastTarget(options_.dtype), out};
  const auto steps = DrawSteps(draw);
  if (is_volume()) {
    const VolumeGeometry geometry = DrawVolume(draw.key, draw.facts);
    RunPatch(*loops_, *GatherOf(*loops_, source, geometry, options_.patch), steps, target, scratch);
  } else {
    const PatchGeometry geometry = DrawGeometry(draw.key);
    RunPatch(*loops_, *GatherOf(*loops_, source, geometry, options_.patch), steps, target, scratch);
  }
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
    return InvalidArgument("run ops: expected labels of ", expected.ToString(), " x 1 uint8 and ",
                           options_.patch.Pixels(), " bytes of output");
  }
  if (is_volume()) {
    VolumeGeometry geometry = DrawVolume(key, facts);
    for (double& sigma : geometry.smooth) sigma = 0;
    RunNearest(*GatherOf(*loops_, deep, geometry, options_.patch), options_.patch, out.data(),
               scratch);
  } else {
    const PatchGeometry geometry = DrawGeometry(key);
    RunNearest(*GatherOf(*loops_, deep, geometry, options_.patch), options_.patch, out.data(),
               scratch);
  }
  return absl::OkStatus();
}

void Chain::RunTable(const Strided& in, const WindowMap& window, std::byte* out,
                     std::vector<std::byte>& scratch) const {
  const std::int64_t height = options_.patch.y, width = options_.patch.x;
  const std::int64_t channels = options_.channels;
  const auto element = static_cast<std::int64_t>(SizeOf(options_.dtype));
  const bool planar = options_.layout == PatchLayout::kNchw;
  const std::int64_t plane_bytes = options_.patch.Pixels() * element;
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
