#include "workers/jobs/plan/settle_functions.h"

#include <string>
#include <utility>
#include <vector>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/memory/host_buffer.h"
#include "runtime/model/jobs/stream_request.h"
#include "runtime/model/ops/own_functions.h"
#include "workers/functions/function_host.h"

namespace patchbay::workers {
namespace {

Status AtFunctionKey(const plan::OwnFunction& function, std::string_view member,
                     const Status& status) {
  return Annotate(status, StrCat("plan stream: key '", function.key, ".", member, "'"));
}

Status CheckStated(const plan::OwnFunction& function, const char* member, const std::string& stated,
                   const std::string& found) {
  if (stated.empty() || stated == found) return absl::OkStatus();
  return AtFunctionKey(function, member, InvalidArgument("this is ", found));
}

/// Loaded alone: a process of several would not say whose memory or imports were at fault.
StatusOr<FunctionVersions> VersionsOf(TaskContext& context, FunctionSource source) {
  constexpr std::uint64_t kPageBytes = 4096;
  PB_ASSIGN_OR_RETURN(const memory::MemfdBlock nothing,
                      memory::MemfdBlock::Create("patchbay-functions", kPageBytes));
  const SharedPatches patches{.shape = {1, 1, 1}, .capacity = 1, .pixels_at = 0, .values_at = 64};
  PB_ASSIGN_OR_RETURN(const auto process,
                      FunctionHost::Start(context.functions, {std::move(source)}, patches, nothing,
                                          ProgressOf(context)));
  return process->versions();
}

}  // namespace

StatusOr<std::vector<std::string>> FunctionPathsOf(const TaskContext& context) {
  PB_ASSIGN_OR_RETURN(auto manifest,
                      FromJson<plan::StreamManifest>(context.manifest, "stream manifest"));
  return std::move(manifest.functions);
}

Status SettleFunctions(TaskContext& context, plan::RunConfig& config) {
  PB_ASSIGN_OR_RETURN(const auto functions, plan::OwnFunctionsOf(config.augment));
  if (functions.empty()) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> paths, FunctionPathsOf(context));
  if (paths.size() != functions.size()) {
    return InvalidArgument(
        "plan stream: the manifest does not have the file of every own function");
  }
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const plan::OwnFunction& function = functions[i];
    context.subjects.Add(paths[i], {SubjectKind::kNone, 0, "the file"});
    StatusOr<FunctionFile> file = ReadFunctionFile(context.functions, context.rights, paths[i]);
    if (!file.ok()) {
      return AtFunctionKey(function, "file",
                           WithCode(file.status(), absl::StatusCode::kInvalidArgument));
    }
    const std::string sha256 = file->digest.Hex();
    PB_RETURN_IF_ERROR(CheckStated(function, "sha256", function.sha256, sha256));
    StatusOr<FunctionVersions> here = VersionsOf(context, {function, *std::move(file)});
    if (!here.ok()) return Annotate(here.status(), "plan stream");
    PB_RETURN_IF_ERROR(CheckStated(function, "python", function.python, here->python));
    PB_RETURN_IF_ERROR(CheckStated(function, "numpy", function.numpy, here->numpy));
    plan::SetFunctionMember(config.augment, i, "sha256", sha256);
    plan::SetFunctionMember(config.augment, i, "python", here->python);
    plan::SetFunctionMember(config.augment, i, "numpy", here->numpy);
  }
  return absl::OkStatus();
}

}  // namespace patchbay::workers
