// The user's own functions in a run config: steps `python` of `augment`. They are no ops and no
// part of a chain: workers run them in a process of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"

namespace patchbay::plan {

/// The name of such a step.
inline constexpr char kOwnFunctionStep[] = "python";
/// Stands for the file of a step where paths do not go: it is in the manifest.
inline constexpr char kFunctionInManifest[] = "manifest";

/// Whether a step of `augment` is a function of the user's.
bool IsOwnFunction(const Json& step);

/// Patches as a function sees them.
enum class FunctionStage : std::uint8_t {
  kPixels,  ///< as they are read, in the images' type, after the ops that move pixels
  kValues,  ///< float32 after every op but `cast`
};
std::string_view NameOf(FunctionStage stage);

/// One step, with every key but the options that the function takes.
struct OwnFunction {
  std::string key = {};  ///< "augment[1].python"
  std::string file = {}, function = {};
  FunctionStage stage = FunctionStage::kPixels;
  double time_limit_s = 10;         ///< for one call
  std::uint64_t memory_mib = 2048;  ///< private memory of its process
  /// Digest of the file, and versions of Python and NumPy: what planning found, or what the config
  /// insists on; "" = any.
  std::string sha256 = {}, python = {}, numpy = {};
  Json options = Json::object();  ///< arguments by name
};

/// The key of the step; OwnFunctionsOf checks its value.
config::Key OwnFunctionKey();

/// The functions of a list, in its order. InvalidArgument, "key 'augment[1].python.at': ...", names
/// the first wrong key.
StatusOr<std::vector<OwnFunction>> OwnFunctionsOf(const Json& augment);

/// The first fault of a run config's functions.
struct FunctionFault {
  std::string key, cause;
};
/// nullopt where there is none; the config passed the key table. Own functions run on CPU workers,
/// on the one image of a patch.
std::optional<FunctionFault> FindFunctionFault(const Json& config);

/// Sets a member of the step of function `index` of the list.
void SetFunctionMember(Json& augment, std::size_t index, const char* member, const Json& value);

}  // namespace patchbay::plan
