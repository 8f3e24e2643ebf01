#include "runtime/cli/stream/split_report.h"

#include <string>
#include <vector>

#include "runtime/core/counted.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

/// Splits in a line; the JSON has them all.
constexpr std::size_t kMostSaid = 12;

void SaySplits(Terminal& terminal, const plan::SplitCensus& census) {
  std::vector<std::string> said;
  for (const auto& [name, split] : census.splits) {
    if (said.size() == kMostSaid) {
      said.push_back("...");
      break;
    }
    said.push_back(StrCat(name, " ", Counted(split.rows, "row"),
                          split.role ? StrCat(" (", NameOf(*split.role), ")") : ""));
  }
  terminal.Say(StrCat(
      "splits             ", StrJoin(said, ", "),
      census.without_split == 0 ? "" : StrCat("; in none ", Counted(census.without_split, "row"))));
}

}  // namespace

Json ReportSplits(Terminal& terminal, const client::RunFile& run) {
  if (!run.census) return nullptr;
  const plan::SplitCensus& census = *run.census;
  std::vector<std::string> notices = run.LeakNotices();
  for (const std::string& notice : notices) terminal.Note(notice);
  SaySplits(terminal, census);
  const std::size_t contents = run.known_contents.compared();
  terminal.Say(StrCat("compared for leaks ", "patient_id of ", census.with_patient,
                      " and content of ", contents, " of ", Counted(census.rows, "row")));
  Json rows = Json::object(), roles = Json::object();
  for (const auto& [name, split] : census.splits) {
    rows[name] = split.rows;
    if (split.role) roles[name] = NameOf(*split.role);
  }
  return {{"rows", std::move(rows)},
          {"roles", std::move(roles)},
          {"without_split", census.without_split},
          {"compared",
           {{"rows", census.rows}, {"patient_id", census.with_patient}, {"content", contents}}},
          {"notices", std::move(notices)}};
}

}  // namespace patchbay::cli
