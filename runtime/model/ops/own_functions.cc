#include "runtime/model/ops/own_functions.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "runtime/core/hash.h"
#include "runtime/core/names.h"
#include "runtime/core/strings.h"

namespace patchbay::plan {
namespace {

constexpr auto kStages = NamesInOrder<FunctionStage>("pixels", "values");
constexpr std::size_t kMaxOptionBytes = 32u << 10;
constexpr std::size_t kMaxTextBytes = 4096;
constexpr double kLeastTimeS = 0.05, kMostTimeS = 600;
constexpr double kLeastMemoryMib = 64, kMostMemoryMib = 1 << 20;
/// Names of the arguments that every function gets.
constexpr std::array<std::string_view, 3> kArguments = {"image", "mask", "rng"};

bool IsIdentifier(std::string_view name) {
  const auto is_part = [](char c) {
    return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0;
  };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::all_of(name.begin(), name.end(), is_part);
}

Status WrongKey(std::string_view key, std::string_view cause) {
  return InvalidArgument("key '", key, "': ", cause);
}

Status ReadText(const Json& step, const std::string& key, const char* member, std::string& out) {
  const auto value = step.find(member);
  if (value == step.end()) return absl::OkStatus();
  const std::string at = StrCat(key, ".", member);
  if (!value->is_string()) return WrongKey(at, "expected text");
  out = value->get<std::string>();
  if (!out.empty() && out.size() <= kMaxTextBytes && out.find('\0') == std::string::npos) {
    return absl::OkStatus();
  }
  return WrongKey(at, "empty, longer than 4096 bytes or with a zero byte");
}

StatusOr<double> ReadNumber(const Json& step, const std::string& key, const char* member,
                            double fallback, double least, double most) {
  const auto value = step.find(member);
  if (value == step.end()) return fallback;
  const std::string at = StrCat(key, ".", member);
  if (!value->is_number()) return WrongKey(at, "expected a number");
  const auto number = value->get<double>();
  if (number >= least && number <= most) return number;
  return WrongKey(at, StrCat(number, " is out of range (", least, "..", most, ")"));
}

Status ReadOptions(const Json& step, const std::string& key, Json& options) {
  constexpr std::array<std::string_view, 8> kKeys = {
      "file", "function", "at", "time_limit_s", "memory_mib", "sha256", "python", "numpy"};
  for (const auto& [name, value] : step.items()) {
    if (std::find(kKeys.begin(), kKeys.end(), name) != kKeys.end()) continue;
    const std::string at = StrCat(key, ".", name);
    if (!IsIdentifier(name)) return WrongKey(at, "not the name of an argument");
    if (std::find(kArguments.begin(), kArguments.end(), name) != kArguments.end()) {
      return WrongKey(at, "the function gets this argument from the worker");
    }
    options[name] = value;
  }
  if (DumpJson(options).size() <= kMaxOptionBytes) return absl::OkStatus();
  return WrongKey(key, "its options take more than 32 KiB: read them from a file");
}

StatusOr<OwnFunction> OwnFunctionOf(const Json& step, const std::string& key) {
  OwnFunction read;
  read.key = key;
  if (!step.is_object()) return WrongKey(key, "expected a map of keys");
  for (const char* member : {"file", "function"}) {
    if (!step.contains(member)) return WrongKey(StrCat(key, ".", member), "is missing");
  }
  PB_RETURN_IF_ERROR(ReadText(step, key, "file", read.file));
  PB_RETURN_IF_ERROR(ReadText(step, key, "function", read.function));
  if (!IsIdentifier(read.function)) {
    return WrongKey(StrCat(key, ".function"), "not the name of a function");
  }
  std::string stage(NameOf(FunctionStage::kPixels));
  PB_RETURN_IF_ERROR(ReadText(step, key, "at", stage));
  const auto found = kStages.Find(stage);
  if (!found) return WrongKey(StrCat(key, ".at"), "expected one of pixels, values");
  read.stage = *found;
  PB_ASSIGN_OR_RETURN(read.time_limit_s, ReadNumber(step, key, "time_limit_s", read.time_limit_s,
                                                    kLeastTimeS, kMostTimeS));
  PB_ASSIGN_OR_RETURN(const double memory_mib,
                      ReadNumber(step, key, "memory_mib", static_cast<double>(read.memory_mib),
                                 kLeastMemoryMib, kMostMemoryMib));
  read.memory_mib = static_cast<std::uint64_t>(memory_mib);
  PB_RETURN_IF_ERROR(ReadText(step, key, "sha256", read.sha256));
  PB_RETURN_IF_ERROR(ReadText(step, key, "python", read.python));
  PB_RETURN_IF_ERROR(ReadText(step, key, "numpy", read.numpy));
  if (!read.sha256.empty() && !Digest::FromHex(read.sha256).ok()) {
    return WrongKey(StrCat(key, ".sha256"), "expected 64 hex digits");
  }
  PB_RETURN_IF_ERROR(ReadOptions(step, key, read.options));
  return read;
}

}  // namespace

bool IsOwnFunction(const Json& step) {
  return step.is_object() && step.size() == 1 && step.begin().key() == kOwnFunctionStep;
}

std::string_view NameOf(FunctionStage stage) { return kStages.Of(stage); }

config::Key OwnFunctionKey() {
  return {.name = kOwnFunctionStep,
          .type = config::KeyType::kOptions,
          .help = "a function of your own: configs/own_functions.md"};
}

StatusOr<std::vector<OwnFunction>> OwnFunctionsOf(const Json& augment) {
  std::vector<OwnFunction> functions;
  for (std::size_t i = 0; i < augment.size(); ++i) {
    if (!IsOwnFunction(augment[i])) continue;
    const std::string key = StrCat("augment[", i, "].", kOwnFunctionStep);
    PB_ASSIGN_OR_RETURN(functions.emplace_back(), OwnFunctionOf(*augment[i].begin(), key));
  }
  return functions;
}

std::optional<FunctionFault> FindFunctionFault(const Json& config) {
  const StatusOr<std::vector<OwnFunction>> functions = OwnFunctionsOf(config["augment"]);
  if (!functions.ok()) {
    // "key 'NAME': cause"
    const std::string_view text = MessageOf(functions.status());
    const std::size_t begin = text.find('\'') + 1, end = text.find("': ", begin);
    return FunctionFault{std::string(text.substr(begin, end - begin)),
                         std::string(text.substr(end + 3))};
  }
  if (functions->empty()) return std::nullopt;
  const std::string& key = functions->front().key;
  if (config.contains("numerics") && config["numerics"] != "cpu") {
    return FunctionFault{key, StrCat("own functions run on CPU workers: numerics: cpu, not ",
                                     config["numerics"].get_ref<const std::string&>())};
  }
  if (config["patch"]["mpp"].size() > 1) {
    return FunctionFault{key, "own functions take patches of one image: one patch.mpp, no context"};
  }
  const Json sets = config.value("labels", Json::object()).value("set", Json::array());
  if (sets.size() > 1) {
    return FunctionFault{key, "own functions take the mask of one set: one labels.set, no list"};
  }
  return std::nullopt;
}

void SetFunctionMember(Json& augment, std::size_t index, const char* member, const Json& value) {
  for (Json& step : augment) {
    if (!IsOwnFunction(step)) continue;
    if (index-- == 0) (*step.begin())[member] = value;
  }
}

}  // namespace patchbay::plan
