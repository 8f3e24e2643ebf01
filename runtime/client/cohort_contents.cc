#include "runtime/client/cohort_contents.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <unordered_map>

#include "runtime/core/strings.h"
#include "runtime/format/zarr/store_root.h"

namespace patchbay::client {
namespace {

Status SameContent(const plan::CohortTable& table, const plan::CohortRow& row,
                   const plan::CohortRow& first, const std::string& split_column) {
  const std::string split = split_column.empty() ? "" : table.Cell(row, split_column);
  const std::string other = split_column.empty() ? "" : table.Cell(first, split_column);
  if (split.empty() || other.empty() || split == other) {
    return table.Wrong(
        row, "path",
        StrCat("the content is that of line ", first.line, " too; a slide has one row"));
  }
  return table.Wrong(
      row, "path",
      StrCat("the content is in the split '", split, "' here and in '", other, "' in line ",
             first.line, ", so that one split knows the other; keep one of the rows"));
}

/// Threads that read stores: most of the time goes by until a file system over the network answers.
constexpr std::size_t kReaders = 16;
/// Stores below which another thread is not worth its start.
constexpr std::size_t kStoresAThread = 64;

/// The content of each path that is a store.
std::vector<StoreContent> ContentsOf(const std::vector<std::string>& paths) {
  std::vector<StoreContent> contents(paths.size());
  std::atomic<std::size_t> next = 0;
  const auto read = [&] {
    for (std::size_t i = next++; i < paths.size(); i = next++) {
      if (zarr::IsStore(Folders::OfThisUser(), paths[i])) contents[i] = ContentOfStore(paths[i]);
    }
  };
  std::vector<std::future<void>> readers;
  const std::size_t threads = std::min(kReaders, paths.size() / kStoresAThread);
  for (std::size_t i = 1; i < threads; ++i) {
    readers.push_back(std::async(std::launch::async | std::launch::deferred, read));
  }
  read();
  for (std::future<void>& reader : readers) reader.get();
  return contents;
}

}  // namespace

StoreContent ContentOfStore(const std::string& path) {
  const Json own = zarr::OwnAttributes(Folders::OfThisUser(), path);
  const auto member = [&](const char* key) {
    const Json value = own.value(key, Json());
    return value.is_string() ? value.get<std::string>() : std::string();
  };
  return {member("source_sha256"), member("pixel_digest")};
}

const plan::CohortRow* CohortContents::Enter(const plan::CohortTable& table, std::size_t row,
                                             const std::string& content) {
  const auto split = [&](std::size_t number) -> const std::string& {
    return table.Cell(table.rows[number], split_column_);
  };
  if (!split(row).empty()) compared_.insert(row);
  const auto [at, is_new] = rows_.emplace(content, row);
  if (is_new || at->second == row) return nullptr;
  const plan::CohortRow* first = &table.rows[at->second];
  if (split(at->second).empty()) at->second = row;
  return first;
}

StatusOr<CohortContents> CohortContents::Of(const plan::CohortTable& table,
                                            const plan::CohortRows& rows,
                                            const std::string& split_column,
                                            const std::string& folder) {
  CohortContents contents;
  contents.split_column_ = split_column;
  std::vector<std::string> paths;
  for (const std::size_t number : rows) {
    const std::string& listed = table.Cell(table.rows[number], "path");
    paths.push_back(listed.front() == '/' ? listed : folder + listed);
  }
  std::vector<StoreContent> recorded = ContentsOf(paths);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::size_t number = rows[i];
    const plan::CohortRow& row = table.rows[number];
    StoreContent& content = recorded[i];
    if (content.source.empty()) content.source = table.Cell(row, "content_hash");
    for (const std::string& key : {content.source, content.pixels}) {
      if (key.empty()) continue;
      const plan::CohortRow* const first = contents.Enter(table, number, key);
      if (first != nullptr) return SameContent(table, row, *first, split_column);
    }
  }
  return contents;
}

Status CohortContents::Add(const plan::CohortTable& table, std::size_t row, const Digest& digest,
                           const std::string& store) {
  if (split_column_.empty()) return absl::OkStatus();
  const std::string& split = table.Cell(table.rows[row], split_column_);
  const StoreContent content = store.empty() ? StoreContent() : ContentOfStore(store);
  for (const std::string& key : {digest.Hex(), content.source, content.pixels}) {
    if (key.empty()) continue;
    const plan::CohortRow* const first = Enter(table, row, key);
    if (first == nullptr || split.empty()) continue;
    const std::string& other = table.Cell(*first, split_column_);
    if (!other.empty() && other != split) {
      return SameContent(table, table.rows[row], *first, split_column_);
    }
  }
  return absl::OkStatus();
}

}  // namespace patchbay::client
