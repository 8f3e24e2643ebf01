#include "runtime/cli/jobs/channel_rows.h"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/core/strings.h"
#include "runtime/model/source/channel_names.h"

namespace patchbay::cli {
namespace {

using plan::CohortRow;
using plan::CohortTable;
using RowsByName = std::map<std::string, const CohortRow*>;

/// The names of all channels, in the order of their first rows.
StatusOr<std::vector<std::string>> NamesOf(const CohortTable& table,
                                           const std::vector<const CohortRow*>& rows) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const CohortRow* row : rows) {
    const std::string& name = table.Cell(*row, kChannelColumn);
    if (name.empty() || !seen.insert(name).second) continue;
    names.push_back(name);
    if (const Status named = CheckChannelNames(names); !named.ok()) {
      return table.Wrong(*row, kChannelColumn, MessageOf(named));
    }
  }
  return names;
}

/// Each image has a row for each name.
Status CheckComplete(const CohortTable& table, const std::vector<std::string>& names,
                     const std::string& image, const RowsByName& own, const CohortRow& first,
                     const RowsByName& elsewhere) {
  if (names.size() == 1) {
    return table.Wrong(first, kChannelColumn,
                       StrCat("'", names[0], "' is the only channel of the table: leave it empty"));
  }
  for (const std::string& name : names) {
    if (own.contains(name)) continue;
    return table.Wrong(first, kChannelColumn,
                       StrCat("image '", image, "' has no channel '", name, "', which line ",
                              elsewhere.at(name)->line, " has: leave the image out with `use`"));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::vector<ChannelRows>> ChannelsOf(const CohortTable& table,
                                              const std::vector<const CohortRow*>& rows) {
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesOf(table, rows));
  std::vector<std::string> images;
  std::map<std::string, RowsByName> by_image;
  std::map<std::string, const CohortRow*> whole, first;
  RowsByName first_of_name;
  for (const CohortRow* row : rows) {
    const std::string& name = table.Cell(*row, kChannelColumn);
    const std::string& image = table.Cell(*row, kImageColumn);
    if (name.empty()) {
      if (!image.empty()) whole.emplace(image, row);
      continue;
    }
    if (image.empty()) {
      return table.Wrong(*row, kImageColumn,
                         "empty or no such column: rows with a channel share the image_id of "
                         "their image");
    }
    if (first.emplace(image, row).second) images.push_back(image);
    first_of_name.emplace(name, row);
    const auto [at, is_new] = by_image[image].emplace(name, row);
    if (is_new) continue;
    return table.Wrong(*row, kChannelColumn,
                       StrCat("image '", image, "' has a channel '", name, "' in line ",
                              at->second->line, " too"));
  }
  std::vector<ChannelRows> found;
  for (const std::string& image : images) {
    if (const auto row = whole.find(image); row != whole.end()) {
      return table.Wrong(
          *row->second, kChannelColumn,
          StrCat("empty, and image '", image, "' has channels in line ", first.at(image)->line));
    }
    const RowsByName& own = by_image.at(image);
    PB_RETURN_IF_ERROR(CheckComplete(table, names, image, own, *first.at(image), first_of_name));
    ChannelRows& channels = found.emplace_back(ChannelRows{names, {}});
    for (const std::string& name : names) channels.rows.push_back(own.at(name));
  }
  return found;
}

}  // namespace patchbay::cli
