#include "workers/jobs/task/own_table.h"

#include <span>

#include <fcntl.h>

#include "runtime/core/strings.h"
#include "runtime/os/file.h"

namespace patchbay::workers {
namespace {

std::string_view WithoutLineEnd(std::string_view line) {
  return line.substr(0, line.find_first_of("\r\n"));
}

}  // namespace

Status CheckOwnTable(const Folders& allowed, std::string_view kind, const std::string& path,
                     std::string_view header) {
  // Non-blocking, so that a pipe nobody writes into cannot hang the job.
  const StatusOr<UniqueFd> fd = OpenFile(allowed, path, O_RDONLY | O_NONBLOCK);
  if (absl::IsNotFound(fd.status())) return absl::OkStatus();
  PB_RETURN_IF_ERROR(fd.status());
  const std::string_view columns = WithoutLineEnd(header);
  std::string start(columns.size() + 1, '\0');
  const Status read = ReadAt(fd->get(), 0, std::as_writable_bytes(std::span(start)), path);
  if (read.ok() && WithoutLineEnd(start) == columns) return absl::OkStatus();
  return absl::AlreadyExistsError(StrCat(kind, ": ", path,
                                         ": exists and is not a table of Patchbay's: move it away, "
                                         "or give another --out"));
}

}  // namespace patchbay::workers
