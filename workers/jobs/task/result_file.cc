#include "workers/jobs/task/result_file.h"

#include <span>

#include "runtime/core/hash.h"
#include "runtime/core/outcome.h"
#include "runtime/os/file.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxResultFileBytes = std::size_t{1} << 30;

}  // namespace

StatusOr<std::string> InlineOrFile(const TaskContext& context, const std::string& folder,
                                   std::string result) {
  if (result.size() <= protocol::kMaxInlineResultBytes) return result;
  const std::string digest = Sha256Of(result).Hex();
  PB_ASSIGN_OR_RETURN(const std::string path,
                      context.MayWrite(StrCat(folder, "/", digest, ".result")));
  PB_RETURN_IF_ERROR(WriteFileDurably(context.allowed, path, AsBytes(result), 0600));
  return DumpJson({{"result_file", path}, {"sha256", digest}, {"bytes", result.size()}});
}

StatusOr<std::string> ResolveResult(const TaskContext& context, const std::string& result) {
  if (result.rfind("{\"bytes\":", 0) != 0) return result;
  PB_ASSIGN_OR_RETURN(const Json reference, ParseJson(result, "result reference"));
  if (!reference.contains("result_file")) return result;
  PB_ASSIGN_OR_RETURN(const std::string named, JsonString(reference, "result_file", "result"));
  PB_ASSIGN_OR_RETURN(const std::string digest, JsonString(reference, "sha256", "result"));
  PB_ASSIGN_OR_RETURN(const std::string path, context.MayWrite(named));
  PB_ASSIGN_OR_RETURN(std::string text, ReadFile(context.allowed, path, kMaxResultFileBytes));
  if (Sha256Of(text).Hex() != digest) {
    return FileError(absl::StatusCode::kDataLoss, "read result", path,
                     "its bytes do not match its name");
  }
  return text;
}

}  // namespace patchbay::workers
