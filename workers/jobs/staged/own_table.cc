#include "workers/jobs/staged/own_table.h"

#include <map>
#include <span>

#include <fcntl.h>

#include "runtime/core/outcome.h"
#include "runtime/format/csv/csv.h"
#include "runtime/os/file.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxTableBytes = 256u << 20;

std::string_view WithoutLineEnd(std::string_view line) {
  return line.substr(0, line.find_first_of("\r\n"));
}

}  // namespace

Status CheckOwnTable(const StagedFolders& folders, const char* name, std::string_view header) {
  const std::string path = folders.InOut(name);
  // Non-blocking, so that a pipe without a writer cannot hang the job.
  const StatusOr<UniqueFd> fd = OpenFile(folders.allowed, path, O_RDONLY | O_NONBLOCK);
  if (absl::IsNotFound(fd.status())) return absl::OkStatus();
  PB_RETURN_IF_ERROR(fd.status());
  const std::string_view columns = WithoutLineEnd(header);
  std::string start(columns.size() + 1, '\0');
  const Status read = ReadAt(fd->get(), 0, std::as_writable_bytes(std::span(start)), path);
  if (read.ok() && WithoutLineEnd(start) == columns) return absl::OkStatus();
  return ErrorAbout(absl::StatusCode::kAlreadyExists, folders.job, path,
                    "exists and is not a table of Patchbay's: move it away, or give another --out");
}

Status MergeIntoTable(const StagedFolders& folders, const char* name, std::string_view header,
                      std::size_t key_columns, const std::vector<std::vector<std::string>>& rows) {
  const OutputLock lock(folders);
  std::map<std::vector<std::string>, std::string> by_key;
  const auto add = [&](std::vector<std::string> row) {
    std::vector<std::string> key(row.begin(),
                                 row.begin() + static_cast<std::ptrdiff_t>(key_columns));
    for (std::string& cell : row) cell = CsvField(cell);
    by_key[std::move(key)] = CsvRow(row);
  };
  const auto existing = ReadFile(folders.allowed, folders.InOut(name), kMaxTableBytes);
  if (!existing.ok() && !absl::IsNotFound(existing.status())) return existing.status();
  auto before = existing.ok() ? ParseCsv(*existing) : std::vector<std::vector<std::string>>();
  for (std::size_t i = 1; i < before.size(); ++i) {
    if (before[i].size() > key_columns) add(std::move(before[i]));
  }
  for (const std::vector<std::string>& row : rows) add(row);
  std::string text(header);
  for (const auto& [key, row] : by_key) text += row;
  return WriteFileDurably(folders.allowed, folders.InOut(name), AsBytes(text), 0600);
}

}  // namespace patchbay::workers
