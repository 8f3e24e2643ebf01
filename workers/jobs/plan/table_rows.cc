#include "workers/jobs/plan/table_rows.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "workers/access/planned_images.h"
#include "workers/jobs/task/find_images.h"
#include "workers/jobs/task/progress.h"
#include "workers/jobs/task/store_attributes.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWhat = "stream.plan: table";

/// The stores that lie in `folder` itself, by content; of a content that has two, the name of the
/// other is in `doubles`.
StatusOr<StoresByContent> StoresIn(TaskContext& context, const std::string& named,
                                   std::set<std::string>& doubles) {
  context.subjects.AddFolder(named, {SubjectKind::kNone, 0, "the folder of stores"});
  PB_ASSIGN_OR_RETURN(const std::string folder, context.MayRead(named));
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    context.AddProgress();
    names.push_back(it->path().filename().string());
  }
  if (error) {
    return FileError(absl::StatusCode::kInvalidArgument, "key 'stores'", named, error.message());
  }
  std::sort(names.begin(), names.end());
  StoresByContent stores;
  for (const std::string& name : names) {
    const std::string path = StrCat(folder, "/", name);
    if (name.front() == '.' || !IsStore(path)) continue;
    const std::string content = SourceDigestOf(context.allowed, path).substr(0, kContentDigits);
    if (content.size() == kContentDigits && !stores.emplace(content, path).second) {
      doubles.insert(content);
    }
    PB_RETURN_IF_ERROR(StepOf(context));
  }
  return stores;
}

Status TwoStores(std::size_t image) {
  Outcome outcome = OutcomeOf(absl::InvalidArgumentError(""));
  outcome.doing = "key 'stores'";
  outcome.cause = StrCat("the folder has two stores of the content of ", kOtherSubject);
  outcome.advice = "leave one there, or name the store in the table and drop its content_hash";
  outcome.others = {{SubjectKind::kImage, image, ""}};
  return StatusOf(outcome);
}

}  // namespace

bool IsTable(const Json& manifest) { return manifest.is_object() && manifest.contains("table"); }

StatusOr<std::vector<std::string>> ListRows(TaskContext& context, ListedRows& listed) {
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> roots,
                      ManifestPaths(context.manifest, "images"));
  PB_ASSIGN_OR_RETURN(const Json* table, JsonMember(context.manifest, "table", kWhat));
  PB_ASSIGN_OR_RETURN(std::vector<std::string> paths, ManifestPaths(*table, "paths"));
  PB_ASSIGN_OR_RETURN(listed.contents, ManifestPaths(*table, "contents"));
  PB_ASSIGN_OR_RETURN(const std::string folder, JsonString(*table, "stores", kWhat));
  if (roots.size() != 1 || paths.empty() || paths.size() > kMaxDatasetImages ||
      listed.contents.size() != paths.size()) {
    return absl::InvalidArgumentError(StrCat(kWhat, ": not the rows of a table"));
  }
  StoresByContent stores;
  std::set<std::string> doubles;
  listed.has_stores = !folder.empty();
  if (listed.has_stores) {
    PB_ASSIGN_OR_RETURN(stores, StoresIn(context, folder, doubles));
  }
  bool all_known = true;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    PB_RETURN_IF_ERROR(StepOf(context));
    const std::string& content = listed.contents[i];
    all_known = all_known && !content.empty();
    const auto store = stores.find(content);
    if (doubles.contains(content)) return TwoStores(i);
    paths[i].insert(0, roots[0]);
    if (store != stores.end()) paths[i] = store->second;
    const auto canonical = context.MayRead(paths[i]);
    if (canonical.ok()) paths[i] = *canonical;
  }
  if (!all_known) listed.stores = std::move(stores);
  return paths;
}

Json ToJson(const ListedRows& listed) {
  return {
      {"contents", listed.contents}, {"stores", listed.stores}, {"has_stores", listed.has_stores}};
}

StatusOr<ListedRows> ListedRowsFromJson(const Json& value) {
  ListedRows listed;
  PB_ASSIGN_OR_RETURN(listed.contents, ManifestPaths(value, "contents"));
  PB_ASSIGN_OR_RETURN(listed.has_stores, JsonBool(value, "has_stores", kWhat));
  PB_ASSIGN_OR_RETURN(const Json* stores, JsonMember(value, "stores", kWhat));
  if (!stores->is_object()) return absl::InvalidArgumentError(StrCat(kWhat, ": no stores"));
  for (const auto& [content, path] : stores->items()) {
    if (!path.is_string()) return absl::InvalidArgumentError(StrCat(kWhat, ": no stores"));
    listed.stores[content] = path.get<std::string>();
  }
  return listed;
}

}  // namespace patchbay::workers
