#include "workers/jobs/task/result_file.h"

#include <span>

#include "runtime/core/hash.h"
#include "runtime/os/file.h"

namespace patchbay::workers {

StatusOr<std::string> InlineOrFile(const TaskContext& context, const std::string& folder,
                                   std::string result) {
  if (result.size() <= protocol::kMaxInlineResultBytes) return result;
  const std::string digest = Sha256Of(result).Hex();
  PB_ASSIGN_OR_RETURN(const std::string path,
                      context.MayWrite(StrCat(folder, "/", digest, ".result")));
  PB_RETURN_IF_ERROR(WriteFileDurably(context.allowed, path, AsBytes(result), 0600));
  return DumpJson({{"result_file", path}, {"sha256", digest}, {"bytes", result.size()}});
}

}  // namespace patchbay::workers
