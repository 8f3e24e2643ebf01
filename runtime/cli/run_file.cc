#include "runtime/cli/run_file.h"

#include "ops/chain.h"
#include "runtime/cli/command.h"
#include "runtime/cli/paths.h"

namespace patchbay::cli {
namespace {

/// Stands for the dataset where a payload must have one: paths travel in the manifest.
constexpr char kInManifest[] = "manifest";

}  // namespace

Json RunFile::Payload() const {
  plan::RunConfig without_paths = config;
  without_paths.dataset = {kInManifest};
  return plan::ToJson(without_paths);
}

StatusOr<RunFile> ReadRunFile(const std::string& path) {
  RunFile run;
  StatusOr<plan::RunConfig> config = plan::ReadRunConfig(path, ops::OpKeys());
  if (absl::IsInvalidArgument(config.status())) return AsUsageError(config.status());
  PB_RETURN_IF_ERROR(config.status());
  run.config = *std::move(config);
  for (const std::string& entry : run.config.dataset) {
    PB_ASSIGN_OR_RETURN(run.images.emplace_back(), AbsolutePath(entry));
  }
  return run;
}

}  // namespace patchbay::cli
