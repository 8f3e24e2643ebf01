#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "runtime/cli/labels/labels_job.h"
#include "runtime/client/cohort_contents.h"
#include "runtime/client/paths.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/model/plan/cohort_table.h"
#include "runtime/os/file.h"

namespace patchbay::cli {
namespace {

namespace fs = std::filesystem;

StatusOr<std::map<std::string, std::string>> StoresBySource(const std::string& folder) {
  std::map<std::string, std::string> stores;
  if (folder.empty()) return stores;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string source = client::ContentOfStore(it->path().string()).source;
    if (!source.empty()) stores[source] = it->path().string();
  }
  if (!error) return stores;
  return ErrorAbout(absl::StatusCode::kNotFound, "labels", folder, error.message());
}

Status NoSuch(std::string_view what, std::string_view more = "") {
  return ErrorAbout(absl::StatusCode::kNotFound, "labels", what,
                    StrCat("no such file or folder", more));
}

StatusOr<std::string> StoreOf(const plan::CohortTable& table, const plan::CohortRow& row,
                              const fs::path& folder,
                              const std::map<std::string, std::string>& stores) {
  const fs::path own = folder / table.Cell(row, "path");
  if (zarr::IsStore(Folders::OfThisUser(), own.string())) return own.string();
  const std::string& content = table.Cell(row, "content_hash");
  if (content.empty()) {
    return table.Wrong(
        row, "content_hash",
        "empty, and the row's path is not a store: `patchbay scan --hash` fills it in");
  }
  const auto found = stores.find(content);
  if (found != stores.end()) return found->second;
  return table.Wrong(row, "path",
                     StrCat("'", row.slide_id,
                            "' has no store in --stores: "
                            "`patchbay ingest` makes it"));
}

StatusOr<std::vector<std::string>> StoresOfTable(const std::string& path,
                                                 const std::string& stores_folder) {
  const StatusOr<std::string> text = ReadFile(Folders::OfThisUser(), path, plan::kMaxCohortBytes);
  if (!text.ok()) return text.status();
  PB_ASSIGN_OR_RETURN(const plan::CohortTable table, plan::ParseCohortTable(*text, path));
  PB_ASSIGN_OR_RETURN(const std::string absolute, client::AbsolutePath(path));
  PB_ASSIGN_OR_RETURN(const auto stores, StoresBySource(stores_folder));
  std::vector<std::string> found;
  for (const plan::CohortRow& row : table.rows) {
    PB_ASSIGN_OR_RETURN(std::string store,
                        StoreOf(table, row, fs::path(absolute).parent_path(), stores));
    found.push_back(std::move(store));
  }
  return found;
}

/// Stores below a folder, at any depth; hidden folders are skipped, and other files counted.
StatusOr<std::vector<std::string>> StoresBelow(const std::string& folder,
                                               FilesByKind& skipped_files) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    const bool is_hidden = name.starts_with('.');
    const bool is_store = !is_hidden && zarr::IsStore(Folders::OfThisUser(), it->path().string());
    if (is_store) found.push_back(it->path().string());
    if (is_hidden || is_store) it.disable_recursion_pending();
    std::error_code ignored;
    const bool is_other = !is_hidden && !it->is_directory(ignored) && !IsTableOfJobs(name);
    if (is_other) ++skipped_files[KindOfFile(name)];
  }
  if (error) return ErrorAbout(absl::StatusCode::kNotFound, "labels", folder, error.message());
  if (found.empty()) {
    return ErrorAbout(absl::StatusCode::kNotFound, "labels", folder,
                      "no store (`patchbay ingest` makes one from a slide)");
  }
  std::sort(found.begin(), found.end());
  return found;
}

StatusOr<std::vector<std::string>> StoresAt(const std::string& path, const std::string& folder,
                                            FilesByKind& skipped_files) {
  if (plan::NamesTable(path)) return StoresOfTable(path, folder);
  std::error_code error;
  if (!fs::exists(path, error)) return NoSuch(path);
  if (fs::is_directory(path, error) && !zarr::IsStore(Folders::OfThisUser(), path)) {
    return StoresBelow(path, skipped_files);
  }
  return std::vector<std::string>{path};
}

}  // namespace

StatusOr<LabelRows> StoreRowsOf(const std::vector<std::string>& paths,
                                const std::string& stores_folder) {
  LabelRows rows;
  std::set<std::string> seen;
  for (const std::string& path : paths) {
    PB_ASSIGN_OR_RETURN(const auto stores, StoresAt(path, stores_folder, rows.skipped_files));
    for (const std::string& store : stores) {
      PB_ASSIGN_OR_RETURN(std::string whole, client::AbsolutePath(store));
      if (seen.insert(whole).second) rows.rows.push_back({std::move(whole)});
    }
  }
  return rows;
}

StatusOr<LabelRows> LabelRowsOfTable(const std::string& path, const std::string& stores_folder) {
  const StatusOr<std::string> text = ReadFile(Folders::OfThisUser(), path, plan::kMaxCohortBytes);
  if (!text.ok()) return text.status();
  PB_ASSIGN_OR_RETURN(const plan::CohortTable table, plan::ParseCohortTable(*text, path));
  if (!table.Column("annotation")) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "labels", path,
                      "no column 'annotation' with the rows' files");
  }
  PB_ASSIGN_OR_RETURN(const std::string absolute, client::AbsolutePath(path));
  const fs::path folder = fs::path(absolute).parent_path();
  PB_ASSIGN_OR_RETURN(const auto stores, StoresBySource(stores_folder));
  LabelRows rows;
  for (const plan::CohortRow& row : table.rows) {
    const std::string& annotation = table.Cell(row, "annotation");
    if (annotation.empty()) continue;
    const fs::path file = folder / annotation;
    std::error_code error;
    if (!fs::exists(file, error)) {
      return table.Wrong(row, "annotation", StrCat(file.string(), ": no such file"));
    }
    PB_ASSIGN_OR_RETURN(const std::string store, StoreOf(table, row, folder, stores));
    PB_ASSIGN_OR_RETURN(std::string whole, client::AbsolutePath(store));
    rows.rows.push_back({std::move(whole), file.string(), table.Cell(row, "site")});
  }
  if (!rows.rows.empty()) return rows;
  return ErrorAbout(absl::StatusCode::kInvalidArgument, "labels", path, "no row has an annotation");
}

StatusOr<LabelRows> LabelRowOf(const std::string& store, const std::string& file,
                               const std::string& site) {
  PB_ASSIGN_OR_RETURN(const std::string at, client::AbsolutePath(store));
  PB_ASSIGN_OR_RETURN(const std::string from, client::AbsolutePath(file));
  std::error_code error;
  if (!fs::exists(at, error)) {
    return NoSuch(store, " (`patchbay ingest` makes a store from a slide)");
  }
  if (!fs::exists(from, error)) return NoSuch(file);
  return LabelRows{{{at, from, site}}};
}

}  // namespace patchbay::cli
