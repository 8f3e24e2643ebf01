// What a user writes to describe a stream (run.yaml), checked and normalised.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/base/stream_geometry.h"
#include "runtime/config/key_table.h"

namespace patchbay::plan {

enum class Numerics : std::uint8_t { kCpu, kCuda, kStrict };
enum class Order : std::uint8_t { kShuffled, kSequential };
enum class Positions : std::uint8_t { kGrid, kRandom };
enum class Layout : std::uint8_t { kNchw, kNhwc };

inline constexpr std::uint32_t kMaxPatchSide = 16'384;
inline constexpr std::uint32_t kMaxGlobalBatch = 1u << 20;
inline constexpr std::uint32_t kMaxPrefetch = 64;
inline constexpr std::uint64_t kMaxPatchesPerEpoch = std::uint64_t{1} << 40;

/// A run.yaml with every default filled in.
struct RunConfig {
  std::vector<std::string> dataset;  ///< as written: stores, folders of stores, slides
  std::optional<Numerics> numerics;  ///< absent = what the cluster has; the planner fills it in
  std::uint64_t seed = 0;
  std::uint32_t patch_height = 0, patch_width = 0;  ///< pixels, as the trainer receives them
  std::uint32_t level = 0;
  std::uint8_t fill = 255;  ///< every channel of a pixel outside the image
  Order order = Order::kShuffled;
  Positions positions = Positions::kGrid;
  /// Random positions only, at most one of the two; both 0 = as many as the grid has.
  std::uint64_t patches_per_image = 0, patches_per_epoch = 0;
  std::uint32_t global_size = 0;  ///< patches of a batch, all ranks together
  DType dtype = DType::kFloat32;  ///< uint8, float16, bfloat16 or float32
  Layout layout = Layout::kNchw;
  std::uint32_t prefetch = 2;  ///< batches made ahead; no part of the plan
  Tail tail = Tail::kKeep;
  Json preprocess = Json::array();  ///< [{op: {option: value}}], every option present
  Json augment = Json::array();
};

/// The table of every key of a run config. `ops` are the ops that preprocess and augment may name:
/// one kMap key each (ops::OpKeys(), passed in because a plan knows no op).
config::Key RunConfigKeys(const std::vector<config::Key>& ops);

/// From a parsed file.
StatusOr<RunConfig> RunConfigFromYaml(const config::YamlNode& node,
                                      const std::vector<config::Key>& ops);
/// Parses and checks YAML text; `source` names it in messages.
StatusOr<RunConfig> ParseRunConfig(std::string_view yaml, std::string_view source,
                                   const std::vector<config::Key>& ops);
/// The same for a file.
StatusOr<RunConfig> ReadRunConfig(const std::string& path, const std::vector<config::Key>& ops);

/// The normalised config: nested as the file is, every key present (absent values left out),
/// canonical when dumped. RunConfigFromJson(ToJson(c)) is c.
Json ToJson(const RunConfig& config);
/// From a payload; checked like a file.
StatusOr<RunConfig> RunConfigFromJson(const Json& value, const std::vector<config::Key>& ops);

std::string_view NameOf(Numerics numerics);
std::string_view NameOf(Order order);
std::string_view NameOf(Positions positions);
std::string_view NameOf(Layout layout);
std::string_view NameOf(Tail tail);

}  // namespace patchbay::plan
