// A run's ops compiled into one pass over memory: geometry gathers once, colour becomes one table
// per channel, and the result is stored into the slot in its final type and layout.
//
// Every op whose input is uint8 and that looks at one channel of one pixel is a function of 256
// values. The chain evaluates those functions once, in double, rounds once to float and once to the
// output type; the tables that come out *are* the definition of the result. Faster arithmetic is
// used only where all 256 entries were compared and found equal, so every path on every machine and
// device gives the same bits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "ops/chain_rows.h"
#include "ops/chain_stage.h"
#include "ops/crop.h"
#include "ops/flip.h"
#include "ops/rotate90.h"
#include "runtime/base/box.h"
#include "runtime/base/dtype.h"
#include "runtime/base/json.h"
#include "runtime/base/random.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"
#include "runtime/config/key_table.h"
#include "runtime/memory/device_block.h"
#include "runtime/memory/gpu.h"

namespace patchbay::ops {

inline constexpr int kMaxChannels = 16;
inline constexpr std::size_t kMaxOps = 64;

enum class OutputLayout : std::uint8_t { kNchw, kNhwc };

/// The option tables of every op a config may name: one kMap key each.
std::vector<config::Key> OpKeys();

/// What a chain is compiled from. The lists are as plan::RunConfig holds them: [{op: {...}}].
struct ChainOptions {
  Json preprocess = Json::array();
  Json augment = Json::array();
  std::int64_t patch_height = 0, patch_width = 0;  ///< of the finished patch
  int channels = 3;
  DType source_dtype = DType::kUint8;  ///< the only one so far
  DType dtype = DType::kFloat32;       ///< uint8, float16, bfloat16, float32
  OutputLayout layout = OutputLayout::kNchw;
  /// Lower means slower and the same bits; for tests and measurements.
  CpuLevel cpu_level = CpuLevel::kBest;
};

/// Immutable after Compile; safe to share between threads.
class Chain {
 public:
  /// InvalidArgument naming the op by its place in a config ("key 'augment[0].rotate90': ..."):
  /// unknown op, wrong lengths for the channels, zero std, rotate90 on a patch that is not square.
  static StatusOr<Chain> Compile(const ChainOptions& options);

  /// What Compile would refuse whatever the image is: before one is open, when `channels` and
  /// `source_dtype` are not known.
  static Status CheckConfig(const ChainOptions& options);

  /// The box to read for a finished patch at `box`: larger where a crop wants to choose.
  Box SourceBox(const Box& box) const;
  std::int64_t source_height() const { return options_.patch_height + 2 * margin_y_; }
  std::int64_t source_width() const { return options_.patch_width + 2 * margin_x_; }
  /// Of the finished patch.
  std::uint64_t patch_bytes() const;
  const ChainOptions& options() const { return options_; }

  /// Where the pixels of one finished patch come from in its source box: a pure function of the
  /// key.
  WindowMap DrawWindow(const DrawKey& key) const;

  /// The whole chain on the CPU, one pass: `source` is (source_height, source_width, channels)
  /// uint8 with any strides, `out` receives exactly patch_bytes() in the declared layout, each byte
  /// written once. `scratch` belongs to the calling thread and is resized as needed.
  /// InvalidArgument when shapes or sizes do not fit.
  Status Run(const ConstTensorView& source, const DrawKey& key, std::span<std::byte> out,
             std::vector<std::byte>& scratch) const;

  /// table()[c * 256 + v]: the finished value of channel c for input v, as bits of the output type
  /// in the low bytes.
  std::span<const std::uint32_t> table() const { return rows_->table(); }

  /// How the CPU makes a row on this machine: "copy", "split", "avx512vbmi", "affine", "affine64"
  /// or "table".
  std::string_view cpu_path() const { return rows_->PathName(); }

 private:
  /// A geometric op and the image it works on.
  struct GeometryStep {
    std::uint32_t occurrence = 0;  ///< place in preprocess + augment: part of its draw key
    std::variant<FlipOptions, Rotate90Options, CropOptions> op;
  };

  Chain() = default;
  Status AddOp(const Json& step, std::uint32_t occurrence,
               std::vector<std::vector<double>>& values);
  Status CheckShapes() const;

  ChainOptions options_;
  std::int64_t margin_y_ = 0, margin_x_ = 0;
  std::vector<GeometryStep> steps_;
  std::shared_ptr<const RowMaker> rows_;
};

/// One patch of a batch on the GPU.
struct DevicePatch {
  const std::uint8_t* d_source = nullptr;  ///< (source_height, source_width, channels), contiguous
  std::byte* d_out = nullptr;              ///< patch_bytes(), aligned to the element
  DrawKey key;
};

/// A chain's tables on one GPU. Move-only. Unimplemented without CUDA.
class DeviceChain {
 public:
  /// Uploads to the calling thread's GPU in the order of `stream`; keeps what it needs of `chain`.
  static StatusOr<DeviceChain> Create(const Chain& chain, memory::GpuStream stream);

  /// Queues the kernels that make `patches`; does not synchronise. Same bits as Chain::Run.
  Status Launch(std::span<const DevicePatch> patches, memory::GpuStream stream) const;

 private:
  std::unique_ptr<const Chain> chain_;
  memory::DeviceBlock table_;
};

}  // namespace patchbay::ops
