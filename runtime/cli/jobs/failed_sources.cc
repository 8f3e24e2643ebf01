#include "runtime/cli/jobs/failed_sources.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include <unistd.h>

#include "runtime/core/hash.h"
#include "runtime/core/outcome_pseudonym.h"
#include "runtime/core/strings.h"
#include "runtime/format/csv/csv.h"
#include "runtime/format/json/json_forms.h"
#include "runtime/os/file.h"

namespace patchbay::cli {
namespace {

constexpr std::size_t kMaxShown = 20;  ///< failures on the terminal; the list in the file is whole

/// Why a source failed, to stand behind its name.
std::string ReasonBehind(const FailedSource& failed) {
  Outcome outcome = failed.outcome;
  if (outcome.subject.part == failed.source) outcome.subject = {};
  return TextOf(outcome);
}

/// Why a store has no result, behind the file or store that it is about.
std::string ReasonOfStore(const FailedSource& failed) {
  const std::string& subject = failed.source.empty() ? failed.store : failed.source;
  const bool names_it = failed.outcome.subject.part.starts_with(subject);
  return names_it ? TextOf(failed.outcome) : StrCat(subject, ": ", TextOf(failed.outcome));
}

constexpr std::size_t kMaxManifestBytes = 256u << 20;

}  // namespace

std::string SourceName(const std::vector<std::string>& sources, std::int64_t slide) {
  if (slide >= 0 && static_cast<std::size_t>(slide) < sources.size()) {
    return sources[static_cast<std::size_t>(slide)];
  }
  return StrCat("slide ", slide);
}

Outcomes OutcomesOf(const protocol::JobRow& job) {
  Outcomes outcomes;
  for (const protocol::FailedTask& task : job.failed) {
    if (task.group != 0) outcomes.emplace(std::int64_t{task.group} - 1, task.outcome);
  }
  return outcomes;
}

Outcome WhyFailed(const Outcomes& outcomes, std::int64_t slide) {
  const auto known = outcomes.find(slide);
  if (known != outcomes.end()) return known->second;
  return OutcomeOf(absl::UnknownError("not finished"));
}

Json ReasonToJson(const Outcome& outcome) {
  Json json = JsonOf(outcome);
  json["reason"] = TextOf(outcome);
  const std::string pseudonym = PseudonymIn(outcome);
  if (!pseudonym.empty()) json["pseudonym"] = pseudonym;
  return json;
}

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

Json ToJson(const SlideReport& report) {
  Json failed = Json::array();
  for (const FailedSource& one : report.failed) {
    Json& row = failed.emplace_back(ReasonToJson(one.outcome));
    if (!one.store.empty()) row["store"] = one.store;
    if (!one.source.empty()) row[one.store.empty() ? "source" : "file"] = one.source;
  }
  Json json = report.own;
  json.update({{"job", report.job},
               {"failed", std::move(failed)},
               {"skipped_files", report.skipped_files}});
  if (!report.out.empty()) json.update({{"out", report.out}, {"seconds", report.seconds}});
  return json;
}

void SayFailed(Terminal& terminal, const SlideReport& report) {
  const std::vector<FailedSource>& failed = report.failed;
  if (report.out.empty()) {
    for (const FailedSource& each : failed) terminal.Error(ReasonOfStore(each));
    return;
  }
  // Without a file for the list all of it is here.
  const std::size_t shown = report.listed.ok() ? std::min(failed.size(), kMaxShown) : failed.size();
  for (std::size_t i = 0; i < shown; ++i) {
    terminal.Note(StrCat("failed: ", failed[i].source, ": ", ReasonBehind(failed[i])));
  }
  if (failed.size() > shown) terminal.Note(StrCat("... and ", failed.size() - shown, " more"));
  if (failed.empty()) return;
  terminal.Note(StrCat(failed.size(), " of ", report.sources, " failed; ",
                       report.listed.ok()
                           ? StrCat("the list is in ", report.out, "/failed.csv")
                           : StrCat("this list is in no file: ", MessageOf(report.listed))));
}

Status WriteFailedCsv(const std::string& out, const std::vector<FailedSource>& failed) {
  const std::string path = out + "/failed.csv";
  if (failed.empty()) {
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return FromErrno("remove", path, errno);
    return absl::OkStatus();
  }
  std::string text = "source,reason\r\n";
  for (const FailedSource& failure : failed) {
    text += CsvRow({CsvField(failure.source), CsvField(TextOf(failure.outcome))});
  }
  return WriteFileDurably(Folders::OfThisUser(), path, AsBytes(text), 0600);
}

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
