#include "runtime/cli/run_file.h"

#include <algorithm>

#include "ops/chain.h"
#include "runtime/base/strings.h"
#include "runtime/cli/command.h"
#include "runtime/cli/paths.h"

namespace patchbay::cli {
namespace {

/// Stands for the dataset where a payload must have one: paths travel in the manifest.
constexpr char kInManifest[] = "manifest";

/// What of the ops is wrong for every image.
Status CheckOps(const plan::RunConfig& config) {
  ops::ChainOptions options;
  options.preprocess = config.preprocess;
  options.augment = config.augment;
  options.patch_height = config.patch_height;
  options.patch_width = config.patch_width;
  options.dtype = config.dtype;
  return ops::Chain::CheckConfig(options);
}

}  // namespace

Json RunFile::Payload() const {
  plan::RunConfig without_paths = config;
  without_paths.dataset = {kInManifest};
  return plan::ToJson(without_paths);
}

Status RunFile::Locate(const Status& status) const {
  constexpr std::string_view kMark = "key '";
  if (!absl::IsInvalidArgument(status) || IsUsageError(status)) return status;
  const std::string text(MessageOf(status));
  const std::size_t mark = text.find(kMark);
  if (mark == std::string::npos) return status;
  const std::size_t begin = mark + kMark.size();
  const std::string key = text.substr(begin, text.find('\'', begin) - begin);
  const std::string first = key.substr(0, key.find_first_of(".["));
  const std::vector<config::Key> known = plan::RunConfigKeys({}).members;
  if (std::none_of(known.begin(), known.end(), [&](const auto& k) { return k.name == first; })) {
    return status;
  }
  const int line = config::LineOf(yaml, key);
  return UsageError(StrCat(path, line > 0 ? StrCat(":", line) : "", ": ", text));
}

StatusOr<RunFile> ReadRunFile(const std::string& path) {
  RunFile run;
  run.path = path;
  StatusOr<config::YamlNode> yaml = config::ReadYamlFile(path);
  if (absl::IsInvalidArgument(yaml.status())) return AsUsageError(yaml.status());
  PB_RETURN_IF_ERROR(yaml.status());
  run.yaml = *std::move(yaml);
  StatusOr<plan::RunConfig> config = plan::RunConfigFromYaml(run.yaml, ops::OpKeys());
  if (!config.ok()) return AsUsageError(config.status());
  run.config = *std::move(config);
  if (const Status ops = CheckOps(run.config); !ops.ok()) return run.Locate(ops);
  for (const std::string& entry : run.config.dataset) {
    PB_ASSIGN_OR_RETURN(run.images.emplace_back(), AbsolutePath(entry));
  }
  return run;
}

}  // namespace patchbay::cli
