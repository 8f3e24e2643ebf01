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
#include "runtime/model/jobs/tissue_options.h"
#include "runtime/model/plan/cohort_table.h"
#include "runtime/model/results/map_results.h"
#include "runtime/model/source/channel_names.h"
#include "runtime/os/file.h"

namespace patchbay::cli {
namespace {

namespace fs = std::filesystem;

/// By the digest of their source or of each channel's, and by that of their pixels.
StatusOr<std::map<std::string, std::string>> StoresByContent(const std::string& folder) {
  std::map<std::string, std::string> stores;
  if (folder.empty()) return stores;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const client::StoreContent content = client::ContentOfStore(it->path().string());
    for (const std::string& digest : {content.source, content.pixels}) {
      if (!digest.empty()) stores[digest] = it->path().string();
    }
    const Json own = zarr::OwnAttributes(Folders::OfThisUser(), it->path().string());
    for (const Json& channel : own.value(kChannelsKey, Json::array())) {
      const Json source = channel.is_object() ? channel.value("source_sha256", Json()) : Json();
      if (source.is_string()) stores.emplace(source.get<std::string>(), it->path().string());
    }
  }
  if (!error) return stores;
  return ErrorAbout(absl::StatusCode::kNotFound, "labels", folder, error.message());
}

/// A store, and the settings of its tissue that a table states.
struct NamedStore {
  std::string store;
  std::string tissue_options = {};
};

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

StatusOr<std::vector<NamedStore>> StoresOfTable(const std::string& path,
                                                const std::string& stores_folder) {
  const StatusOr<std::string> text = ReadFile(Folders::OfThisUser(), path, plan::kMaxCohortBytes);
  if (!text.ok()) return text.status();
  PB_ASSIGN_OR_RETURN(const plan::CohortTable table, plan::ParseCohortTable(*text, path));
  PB_ASSIGN_OR_RETURN(const std::string absolute, client::AbsolutePath(path));
  PB_ASSIGN_OR_RETURN(const auto stores, StoresByContent(stores_folder));
  std::vector<NamedStore> found;
  for (const plan::CohortRow& row : table.rows) {
    PB_ASSIGN_OR_RETURN(std::string store,
                        StoreOf(table, row, fs::path(absolute).parent_path(), stores));
    found.push_back({.store = std::move(store)});
    if (!table.Column(kTissueOptionsColumn)) continue;
    const std::string& options = table.Cell(row, kTissueOptionsColumn);
    const Status allowed = ParseTissueOptions(SplitTissueOptions(options)).status();
    if (!allowed.ok()) return table.Wrong(row, kTissueOptionsColumn, MessageOf(allowed));
    found.back().tissue_options = options;
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

StatusOr<std::vector<NamedStore>> StoresAt(const std::string& path, const std::string& folder,
                                           FilesByKind& skipped_files) {
  if (plan::NamesTable(path)) return StoresOfTable(path, folder);
  std::error_code error;
  if (!fs::exists(path, error)) return NoSuch(path);
  std::vector<std::string> stores{path};
  if (fs::is_directory(path, error) && !zarr::IsStore(Folders::OfThisUser(), path)) {
    PB_ASSIGN_OR_RETURN(stores, StoresBelow(path, skipped_files));
  }
  std::vector<NamedStore> rows;
  for (std::string& store : stores) rows.push_back({.store = std::move(store)});
  return rows;
}

/// Folders of images: their names begin with six digits or more, and "-".
StatusOr<std::vector<std::string>> ImagesBelow(const std::string& results) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator it(results, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const std::size_t digits = name.find_first_not_of("0123456789");
    if (digits >= 6 && digits < name.size() && name[digits] == '-') {
      found.push_back(it->path().string());
    }
  }
  if (error) return ErrorAbout(absl::StatusCode::kNotFound, "labels", results, error.message());
  std::sort(found.begin(), found.end());
  if (!found.empty()) return found;
  return ErrorAbout(absl::StatusCode::kNotFound, "labels", results,
                    "no image is complete: run `patchbay map` again");
}

/// Where the image was mapped, or a store of its pixels in `stores`. Where neither has its pixels,
/// a store at the former place, which a worker refuses by name.
StatusOr<std::string> StoreOfImage(const std::string& image, const std::string& folder,
                                   const std::map<std::string, std::string>& stores) {
  PB_ASSIGN_OR_RETURN(const results::MapImage seen,
                      results::ReadMapImage(Folders::OfThisUser(), image));
  const bool is_store = zarr::IsStore(Folders::OfThisUser(), seen.path);
  const std::string digest = seen.pixel_digest.value_or("");
  const auto found = stores.find(digest);
  const bool is_same = is_store && client::ContentOfStore(seen.path).pixels == digest;
  if (!is_same && found != stores.end()) return found->second;
  if (is_store) return seen.path;
  return ErrorAbout(absl::StatusCode::kNotFound, "labels", image,
                    StrCat(seen.path, " is no store",
                           folder.empty() ? "; --stores DIR finds stores by their pixels"
                                          : StrCat(", and ", folder, " has none of its pixels")));
}

}  // namespace

StatusOr<LabelRows> StoreRowsOf(const std::vector<std::string>& paths,
                                const std::string& stores_folder) {
  LabelRows rows;
  std::set<std::string> seen;
  for (const std::string& path : paths) {
    PB_ASSIGN_OR_RETURN(const auto stores, StoresAt(path, stores_folder, rows.skipped_files));
    for (const NamedStore& named : stores) {
      PB_ASSIGN_OR_RETURN(std::string whole, client::AbsolutePath(named.store));
      if (!seen.insert(whole).second) continue;
      const std::string& options = named.tissue_options;
      if (!options.empty()) rows.tissue_options[options].push_back(rows.rows.size());
      rows.rows.push_back({std::move(whole)});
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
  PB_ASSIGN_OR_RETURN(const auto stores, StoresByContent(stores_folder));
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

bool NamesResults(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error) && !zarr::IsStore(Folders::OfThisUser(), path);
}

StatusOr<ResultRows> LabelRowsOfResults(const std::string& path, const std::string& output,
                                        const std::string& stores_folder) {
  PB_ASSIGN_OR_RETURN(const std::string whole, client::AbsolutePath(path));
  std::error_code error;
  const bool is_image = fs::exists(StrCat(whole, "/", results::kMapImageFile), error);
  const std::string folder = is_image ? fs::path(whole).parent_path().string() : whole;
  PB_ASSIGN_OR_RETURN(const results::MapResults found,
                      results::ReadMapResults(Folders::OfThisUser(), folder));
  ResultRows out;
  out.is_image = is_image;
  PB_ASSIGN_OR_RETURN(out.output, results::OutputWithClasses(found, output));
  out.classes = results::ClassTableOf(found.outputs.at(out.output));
  const auto images = is_image ? StatusOr<std::vector<std::string>>({whole}) : ImagesBelow(whole);
  if (!images.ok()) return images.status();
  PB_ASSIGN_OR_RETURN(const auto stores, StoresByContent(stores_folder));
  Status first;
  for (const std::string& image : *images) {
    const std::string file = StrCat(image, "/", out.output, results::kClassMapEnding);
    const auto store = StoreOfImage(image, stores_folder, stores);
    if (store.ok()) {
      PB_ASSIGN_OR_RETURN(std::string at, client::AbsolutePath(*store));
      out.rows.push_back({std::move(at), file});
    } else {
      first.Update(store.status());
      out.failed.push_back({file, OutcomeOf(store.status())});
    }
  }
  if (out.rows.empty()) return first;
  return out;
}

}  // namespace patchbay::cli
