#include "workers/jobs/plan/table_rows.h"

#include <set>
#include <utility>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/model/plan/planned_manifest.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/task/find_images.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kStreamTable = "stream.plan: table";

/// The stores that lie in `folder` itself, by content; of a content that has two, the name of the
/// other is in `doubles`.
StatusOr<StoresByContent> StoresIn(TaskContext& context, const std::string& named,
                                   std::set<std::string>& doubles) {
  context.subjects.AddFolder(named, {SubjectKind::kNone, 0, "the folder of stores"});
  PB_ASSIGN_OR_RETURN(const std::string folder, context.MayRead(named));
  const auto names = ListFolder(context.allowed, folder);
  if (!names.ok()) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "key 'stores'", named,
                      OutcomeOf(names.status()).cause);
  }
  StoresByContent stores;
  for (const std::string& name : *names) {
    context.AddProgress();
    const std::string path = StrCat(folder, "/", name);
    if (name.front() == '.' || !zarr::IsStore(context.allowed, path)) continue;
    const std::string content =
        zarr::SourceDigestOf(context.allowed, path).substr(0, plan::kContentDigits);
    if (content.size() == plan::kContentDigits && !stores.emplace(content, path).second) {
      doubles.insert(content);
    }
    PB_RETURN_IF_ERROR(StepOf(context));
  }
  return stores;
}

Status TwoStores(std::size_t image) {
  Outcome outcome = OutcomeOf(InvalidArgument(""));
  outcome.doing = "key 'stores'";
  outcome.cause = StrCat("the folder has two stores of the content of ", kOtherSubject);
  outcome.advice = "leave one there, or name the store in the table and drop its content_hash";
  outcome.others = {{SubjectKind::kImage, image, ""}};
  return StatusOf(outcome);
}

StatusOr<ImageList> ListRows(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const auto manifest,
                      FromJson<plan::StreamManifest>(context.manifest, "stream manifest"));
  const std::vector<plan::PlannedRow>& rows = manifest.table->rows;
  if (manifest.images.size() != 1 || rows.empty() || rows.size() > kMaxDatasetImages) {
    return InvalidArgument(kStreamTable, ": not the rows of a table");
  }
  StoresByContent stores;
  std::set<std::string> doubles;
  const bool has_stores = !manifest.table->stores.empty();
  if (has_stores) {
    PB_ASSIGN_OR_RETURN(stores, StoresIn(context, manifest.table->stores, doubles));
  }
  bool all_known = true;
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    PB_RETURN_IF_ERROR(StepOf(context));
    const std::string& content = rows[i].content;
    all_known = all_known && !content.empty();
    if (doubles.contains(content)) return TwoStores(i);
    const auto store = stores.find(content);
    std::string& path = paths.emplace_back(
        store != stores.end() ? store->second : manifest.images[0] + rows[i].path);
    const auto canonical = context.MayRead(path);
    if (canonical.ok()) path = *canonical;
  }
  ImageList list = ImageList::Of(paths);
  list.has_stores = has_stores;
  if (!all_known) list.stores = std::move(stores);
  return list;
}

}  // namespace

ImageList ImageList::Of(const std::vector<std::string>& paths) {
  const std::string root = plan::SharedFolder(paths);
  return {.root = root, .images = plan::PathsBelow(root, paths)};
}

std::vector<std::string> ImageList::Paths() const {
  std::vector<std::string> paths = images;
  for (std::string& path : paths) path.insert(0, root);
  return paths;
}

bool IsTable(const Json& manifest) { return manifest.is_object() && manifest.contains("table"); }

StatusOr<std::vector<plan::PlannedRow>> RowsOf(const Json& manifest, std::size_t images,
                                               std::size_t first, std::size_t count) {
  std::vector<plan::PlannedRow> rows;
  if (!IsTable(manifest)) return rows;
  PB_ASSIGN_OR_RETURN(const Json* list, JsonMember(manifest["table"], "rows", kStreamTable));
  if (!list->is_array() || list->size() != images) {
    return InvalidArgument(kStreamTable, ": expected one row per image");
  }
  const JsonPlace place(kStreamTable);
  for (std::size_t i = first; i < first + count; ++i) {
    PB_RETURN_IF_ERROR(ReadJson((*list)[i], JsonPlace(place, i), rows.emplace_back()));
  }
  return rows;
}

StatusOr<ImageList> ListImages(TaskContext& context) {
  if (IsTable(context.manifest)) return ListRows(context);
  PB_ASSIGN_OR_RETURN(const auto manifest,
                      FromJson<plan::StreamManifest>(context.manifest, "stream manifest"));
  FilesByKind skipped_files;
  PB_ASSIGN_OR_RETURN(
      const std::vector<std::string> paths,
      FindImages(context, manifest.images,
                 {.masks = false, .keep_unreadable = true, .skipped_files = &skipped_files}));
  ImageList list = ImageList::Of(paths);
  list.skipped_files = std::move(skipped_files);
  return list;
}

}  // namespace patchbay::workers
