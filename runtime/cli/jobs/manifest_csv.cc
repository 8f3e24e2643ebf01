#include "runtime/cli/jobs/manifest_csv.h"

#include <algorithm>
#include <vector>

#include "runtime/core/strings.h"
#include "runtime/format/csv/csv.h"
#include "runtime/os/file.h"

namespace patchbay::cli {
namespace {

constexpr std::size_t kMaxManifestBytes = 256u << 20;

}  // namespace

std::map<std::string, std::string> ReadManifestCsv(const std::string& folder,
                                                   const std::string& key,
                                                   const std::string& value) {
  std::map<std::string, std::string> found;
  const auto text =
      ReadFile(Folders::OfThisUser(), StrCat(folder, "/manifest.csv"), kMaxManifestBytes);
  if (!text.ok()) return found;
  const std::vector<std::vector<std::string>> rows = ParseCsv(*text);
  if (rows.empty()) return found;
  const auto place = [&](const std::string& column) {
    return static_cast<std::size_t>(std::find(rows[0].begin(), rows[0].end(), column) -
                                    rows[0].begin());
  };
  const std::size_t from = place(key), to = place(value);
  if (std::max(from, to) >= rows[0].size()) return found;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].size() > std::max(from, to)) found[rows[i][from]] = rows[i][to];
  }
  return found;
}

}  // namespace patchbay::cli
