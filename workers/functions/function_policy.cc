#include "workers/functions/function_policy.h"

#include <algorithm>

#include "runtime/core/outcome.h"
#include "runtime/format/json/json.h"
#include "runtime/os/file.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kWhat = "own functions of workers";

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

/// The operator's file behind `path`, or "".
std::string FindListed(const FunctionPolicy& policy, const std::string& path) {
  const StatusOr<std::string> wanted = CanonicalPath(path);
  if (!wanted.ok()) return "";
  for (const std::string& file : policy.files) {
    const StatusOr<std::string> listed = CanonicalPath(file);
    if (listed.ok() && *listed == *wanted) return *listed;
  }
  return "";
}

}  // namespace

StatusOr<FunctionPolicy> FunctionPolicy::FromText(const std::string& text) {
  FunctionPolicy policy;
  if (text.empty()) return policy;
  PB_ASSIGN_OR_RETURN(const Json value, ParseJson(text, kWhat));
  PB_ASSIGN_OR_RETURN(policy.interpreter, JsonString(value, "python", kWhat));
  if (policy.interpreter.empty()) return InvalidArgument(kWhat, ": no interpreter");
  policy.is_users_own = !value.contains("files");
  if (policy.is_users_own) return policy;
  for (const Json& file : value["files"]) {
    if (!file.is_string()) return InvalidArgument(kWhat, ": files: expected paths");
    policy.files.push_back(file.get<std::string>());
  }
  return policy;
}

StatusOr<FunctionFile> ReadFunctionFile(const FunctionPolicy& policy, const PathRights& rights,
                                        const std::string& path) {
  FunctionFile file;
  Folders allowed = AllowedFoldersOf(rights);
  if (policy.interpreter.empty()) {
    return InvalidArgument(
        "the workers of this cluster run no functions of users: stream without --cluster, which "
        "starts a cluster of your own, or ask its operator to list the file (`functions` in "
        "site.yaml)");
  }
  if (policy.is_users_own) {
    PB_ASSIGN_OR_RETURN(file.path, PathAllowed(rights, Access::kRead, path));
  } else {
    file.path = FindListed(policy, path);
    if (file.path.empty()) {
      return InvalidArgument(
          "the operator of this cluster does not list the file (`functions.files` in site.yaml): "
          "stream without --cluster, or ask for it");
    }
    allowed = AllowedFoldersOf({{FolderOf(file.path)}, {}});
  }
  const StatusOr<std::string> bytes = ReadFile(allowed, file.path, kMaxFunctionFileBytes);
  if (!bytes.ok()) return WithCode(bytes.status(), absl::StatusCode::kInvalidArgument);
  file.bytes = *bytes;
  file.digest = Sha256Of(file.bytes);
  return file;
}

}  // namespace patchbay::workers
