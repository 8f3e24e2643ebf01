// A run's ops compiled into one pass over memory: geometry gathers once, colour becomes one table
// per channel, and the result is stored into the slot in its final type and layout.
//
// Every op whose input is uint8 and that looks at one channel of one pixel is a function of 256
// values. The chain evaluates those functions once, in double, rounds once to float and once to the
// output type; the resulting tables *are* the definition of the result. Faster arithmetic is used
// only where all 256 entries were compared and found equal, so every path on every machine and
// device gives the same bits.
//
// Ops that sample between pixels, mix channels, draw a number for every value or look at neighbours
// are no tables: a chain with one of them works in float, row by row (patch_pass.h), with the same
// bits on every CPU and GPU (device_chain.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "ops/chain/chain_program.h"
#include "ops/chain/chain_rows.h"
#include "ops/chain/chain_stage.h"
#include "ops/chain/row_loops.h"
#include "ops/steps/op_program.h"
#include "runtime/core/box.h"
#include "runtime/core/channels.h"
#include "runtime/core/dtype.h"
#include "runtime/core/extent.h"  // wide: the one header of a chain, for callers
#include "runtime/core/random.h"
#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"
#include "runtime/format/json/json.h"
#include "runtime/model/ops/op_list.h"
#include "runtime/model/ops/stain_fit.h"

namespace patchbay::ops {

/// The input of Chain::Compile. The lists are those of plan::RunConfig: [{op: {...}}].
struct ChainOptions {
  Json preprocess = Json::array();
  Json augment = Json::array();
  /// The finished patch. Under plan::IsVolumeChain ops work on all axes; otherwise in the planes of
  /// the patch, in all planes alike.
  Extent patch;
  int channels = 3;
  /// With kResampled (plan::VolumeFacts::step) the chain is always one of volumes.
  plan::PatchKind kind = plan::PatchKind::kPlane;
  /// uint8, by tables where ops allow it, uint16, int16 or float32.
  DType source_dtype = DType::kUint8;
  DType dtype = DType::kFloat32;  ///< uint8, float16, bfloat16, float32
  PatchLayout layout = PatchLayout::kNchw;
  /// Lower means slower and the same bits; for tests and measurements.
  CpuLevel cpu_level = CpuLevel::kBest;
  /// The images have several slices: patches of one slice and several channels are volumes too,
  /// and not those of a slide.
  bool images_have_depth = false;
};

/// Immutable after Compile; safe to share between threads.
class Chain {
 public:
  /// InvalidArgument naming the op by its place in a config ("key 'augment[0].rotate90': ..."):
  /// errors of plan::CheckOps, and lists of wrong lengths for the channels.
  static StatusOr<Chain> Compile(const ChainOptions& options);

  /// Whether it is a chain of volumes, in which every patch reads a box of its own; the functions
  /// here that take facts are for it.
  bool is_volume() const { return is_volume_; }
  /// Whether a volume chain needs the facts of the patch's image.
  bool needs_facts() const { return needs_facts_; }
  /// For a volume chain: InvalidArgument when patches of an image with these facts cannot be made.
  Status CheckImage(const plan::VolumeFacts& facts) const;

  /// The box to read for a finished patch at `box`: larger where a crop wants to choose, and as far
  /// as the drawn geometry of a volume reaches.
  Box SourceBox(const Box& box, const DrawKey& key, const plan::VolumeFacts& facts = {}) const;
  /// The size of that box.
  Extent SourceExtent(const DrawKey& key, const plan::VolumeFacts& facts = {}) const;
  /// The size of the box for chains that read the same for every patch: all except chains of
  /// volumes.
  Extent source_extent() const {
    return {options_.patch.z, options_.patch.y + 2 * images().margin_y(),
            options_.patch.x + 2 * images().margin_x()};
  }
  /// Bytes of the finished patch.
  std::uint64_t patch_bytes() const;
  const ChainOptions& options() const { return options_; }

  /// The map from the pixels of one finished patch to its source box: a pure function of the key.
  PatchGeometry DrawGeometry(const DrawKey& key) const { return images().Draw(key); }
  WindowMap DrawWindow(const DrawKey& key) const { return images().Draw(key).window; }
  /// The moves of a volume chain, instead of both.
  VolumeGeometry DrawVolume(const DrawKey& key, const plan::VolumeFacts& facts) const {
    return program_->volumes().Draw(key, facts);
  }
  /// The steps of one patch between its gather and its slot: a pure function of its argument.
  /// `Program()` outlives them.
  std::vector<PatchStep> DrawSteps(const PatchDraw& draw) const { return program_->Draw(draw); }
  /// The program that all patches share.
  const ChainProgram& Program() const { return *program_; }
  /// Whether Run needs the stain fit of the patch's image.
  bool needs_fit() const { return program_->needs_fit(); }
  /// InvalidArgument when a needed fit is missing.
  Status CheckFit(const ImageColours& colours) const { return program_->CheckFit(colours); }

  /// The whole chain on the CPU, one pass: `source` is (depth, height, width, channels) of
  /// SourceExtent(), or without the depth of 1, in source_dtype with any strides; `out` receives
  /// exactly patch_bytes() in the declared layout, each byte written once. `scratch` belongs to the
  /// calling thread and is resized as needed. `colours` are those of the patch's image; without
  /// a fit where needs_fit is false. `facts` may be null where needs_facts is false.
  /// InvalidArgument when shapes or sizes do not fit, or a fit or facts are missing.
  Status Run(const ConstTensorView& source, const DrawKey& key, std::span<std::byte> out,
             std::vector<std::byte>& scratch, const ImageColours& colours = {},
             const plan::VolumeFacts* facts = nullptr) const;

  /// Whether Run does nothing to this patch but mirror its source, of uint8 and the same size.
  bool OnlyMirrors(const DrawKey& key) const;
  /// Run for such a patch, where it lies: `patch` is its source, contiguous, of patch_bytes().
  void RunInPlace(const DrawKey& key, std::span<std::byte> patch,
                  std::vector<std::byte>& scratch) const;

  /// The geometry of the patch alone, on labels of its source box: `labels` is (height, width, 1)
  /// uint8 of SourceExtent(), or (depth, height, width, 1), with pixels outside the image already
  /// filled in; `out` receives the patch's pixels, each the nearest label. InvalidArgument when
  /// they do not fit.
  Status RunLabels(const ConstTensorView& labels, const DrawKey& key, std::span<std::uint8_t> out,
                   std::vector<std::byte>& scratch, const plan::VolumeFacts& facts = {}) const;

  /// table()[c * 256 + v]: the finished value of channel c for input v, as bits of the output type
  /// in the low bytes. Empty for chains without tables.
  std::span<const std::uint32_t> table() const;
  /// How the CPU makes a row on this machine: "copy", "split", "avx512vbmi", "affine",
  /// "affine_pair", "table"; for other sources than uint8, "values"; "scalar", "avx2" or "avx512"
  /// in float.
  std::string_view cpu_path() const;

 private:
  Chain() = default;
  const ImageMoves& images() const { return program_->images(); }
  void RunSteps(const ConstTensorView& source, const PatchDraw& draw, std::byte* out,
                std::vector<std::byte>& scratch) const;
  void RunTable(const Strided& source, const WindowMap& window, std::byte* out,
                std::vector<std::byte>& scratch) const;

  ChainOptions options_;
  bool is_volume_ = false, needs_facts_ = false;
  std::shared_ptr<const ChainProgram> program_;
  const RowLoops* loops_ = nullptr;
  std::shared_ptr<const RowMaker> rows_;  ///< maker of the rows of a chain of tables, or null
};

}  // namespace patchbay::ops
