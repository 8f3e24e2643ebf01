// The ops a run config may name, and what its two lists mean: which op comes when, and which random
// numbers it draws. Both decide bytes, and neither depends on the order in which a list names them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/extent.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"

namespace patchbay::plan {

inline constexpr std::size_t kMaxOps = 64;  ///< of both lists together

/// Part of the key of every number an op draws. A number is never given to another op.
enum class OpNumber : std::uint8_t {
  kCrop = 1,
  kFlip = 2,
  kRotate90 = 3,
  kNormalize = 4,
  kCast = 5,
  kAffine = 6,
  kElastic = 7,
  kIccToSrgb = 8,
  kStainNormalize = 9,
  kStainJitter = 10,
  kHedJitter = 11,
  kColorJitter = 12,
  kGaussianBlur = 13,
  kGaussianNoise = 14,
  kWindow = 15,
  kCtNormalize = 16,
  kZscore = 17,
  kBrightness = 18,
  kContrast = 19,
  kLowResolution = 20,
  kGamma = 21,
};

/// Needs of an op from the chain that runs it.
struct OpNeeds {
  bool moves = false;       ///< pixels go elsewhere: masks of the patch follow
  bool between = false;     ///< samples between pixels
  bool rgb = false;         ///< red, green and blue together
  bool neighbours = false;  ///< finished pixels around its own: a pass of its own
  bool statistics = false;  ///< of the whole patch: a pass of its own
  bool random = false;      ///< draws numbers for each patch
  bool once = false;        ///< may be named once
  bool volume = false;      ///< of volumes alone
};
OpNeeds NeedsOf(OpNumber op);

/// One op of a config at its place of the chain.
struct OpStep {
  OpNumber op = OpNumber::kCrop;
  std::uint32_t use = 0;  ///< how many of the same op come before it
  std::string key;        ///< where the config has it: "augment[0].flip"
  Json options;           ///< checked, every one present
};

/// How patches lie in their images, by the config alone.
enum class PatchKind : std::uint8_t {
  kPlane,      ///< patch.size is [y, x]
  kVolume,     ///< [z, y, x]: of volumes, one slice or several
  kResampled,  ///< the same, brought to patch.spacing
};

/// DrawKey::op_occurrence of a step.
std::uint32_t Occurrence(const OpStep& step);

/// The option tables of every op, one kMap key each, in the order in which ops are applied.
std::vector<config::Key> OpKeys();

/// Both lists ([{op: {...}}]) as one chain, in the fixed order; uses of the same op keep the order
/// in which they are named. InvalidArgument names the step by its place ("key 'augment[0].flip':
/// ...").
StatusOr<std::vector<OpStep>> SortOps(const Json& preprocess, const Json& augment);

/// One list in the fixed order. Requires a list that passed its key table.
Json InFixedOrder(const Json& steps);

/// Checks the ops whatever the images are. Refused are lists of different lengths, rotate90 on a
/// patch that is not square, an elastic that folds, two uses of an op that may be named once,
/// borders that differ, ops of slides beside ops of volumes. Errors as SortOps.
Status CheckOps(const Json& preprocess, const Json& augment, const Extent& patch,
                PatchKind kind = PatchKind::kPlane);

/// "check ops: key 'augment[0].flip': <cause>".
Status WrongOp(std::string_view key, std::string_view cause);

}  // namespace patchbay::plan
