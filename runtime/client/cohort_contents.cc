#include "runtime/client/cohort_contents.h"

#include <unordered_map>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/strings.h"
#include "runtime/client/paths.h"

namespace patchbay::client {
namespace {

constexpr std::size_t kMaxRootBytes = std::size_t{16} << 20;

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
             first.line, ", so that one split knows the other; put both rows into one"));
}

}  // namespace

StoreContent ContentOfStore(const std::string& path) {
  const auto text = ReadFile(path + "/zarr.json", kMaxRootBytes);
  if (!text.ok()) return {};
  const auto root = ParseJson(*text, "zarr.json");
  if (!root.ok() || !root->is_object()) return {};
  const Json attributes = root->value("attributes", Json());
  if (!attributes.is_object()) return {};
  const Json ours = attributes.value("patchbay", Json());
  const auto member = [&](const char* key) {
    const Json value = ours.is_object() ? ours.value(key, Json()) : Json();
    return value.is_string() ? value.get<std::string>() : std::string();
  };
  return {member("source_sha256"), member("pixel_digest")};
}

Status CheckContentsApart(const plan::CohortTable& table, const plan::CohortRows& rows,
                          const std::string& split_column, const std::string& folder) {
  std::unordered_map<std::string, const plan::CohortRow*> seen;
  for (const std::size_t number : rows) {
    const plan::CohortRow& row = table.rows[number];
    const std::string& listed = table.Cell(row, "path");
    const std::string path = listed.front() == '/' ? listed : folder + listed;
    StoreContent content;
    if (IsStore(path)) content = ContentOfStore(path);
    if (content.source.empty()) content.source = table.Cell(row, "content_hash");
    for (const std::string& key : {content.source, content.pixels}) {
      if (key.empty()) continue;
      const auto [first, is_new] = seen.emplace(key, &row);
      if (!is_new && first->second != &row) {
        return SameContent(table, row, *first->second, split_column);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace patchbay::client
