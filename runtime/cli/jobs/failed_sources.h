// Slides of a job that failed: which file each was, why, and the lists that stay.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/cli/terminal.h"
#include "runtime/core/outcome.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/jobs/job_manifest.h"
#include "runtime/wire/protocol/messages.h"

namespace patchbay::cli {

struct FailedSource {
  std::string source;
  Outcome outcome;
  std::string store =
      {};  ///< the store, where a job works on those that exist: they may have no source
};

/// The report of a staged job.
struct SlideReport {
  JobId job = 0;
  std::string out;                  ///< "" of a job into stores that are there
  double seconds = 0;               ///< from the command's start
  std::vector<std::string> slides;  ///< files in the order of slide numbers
  std::vector<LabelRow> rows;       ///< rows of a job into stores that are there
  std::vector<FailedSource> failed;
  Status listed;                          ///< whether OUT/failed.csv holds them
  std::size_t sources = 0;                ///< all sources, failed ones included
  FilesByKind skipped_files;              ///< files in the folders that are not sources
  bool has_pseudonyms = false;            ///< results are named by this home's key
  Json own;                               ///< the job's own members of the object for programs
  std::vector<std::string> lines, notes;  ///< the results for people: on stdout, on stderr
};

Json ToJson(const SlideReport& report);

/// The file of a slide number, or "slide N" when the list does not have it.
std::string SourceName(const std::vector<std::string>& sources, std::int64_t slide);

/// Slide number to why its first failed task failed.
using Outcomes = std::map<std::int64_t, Outcome>;
Outcomes OutcomesOf(const protocol::JobRow& job);
/// The reason of one slide; "not finished" where its row has no reason.
Outcome WhyFailed(const Outcomes& outcomes, std::int64_t slide);

/// {"reason", "code", "doing", "subject", "cause", "advice"}, "pseudonym" where it is known.
Json ReasonToJson(const Outcome& outcome);

/// The last part of a path.
std::string FileName(const std::string& path);

/// On stderr the first that failed, how many there are, and where the whole list is; of a job into
/// stores that are there each failure.
void SayFailed(Terminal& terminal, const SlideReport& report);

/// OUT/failed.csv, RFC 4180 with a heading; owner-only, because it names files. Removes the list of
/// an earlier run when nothing failed.
Status WriteFailedCsv(const std::string& out, const std::vector<FailedSource>& failed);

/// OUT/manifest.csv has the slide that each result was made from, owner-only. Column `key` to
/// column `value` of the manifest.csv (RFC 4180, with a heading) of a job's output folder; empty
/// when it cannot be read or lacks a column. A row that is too short is skipped.
std::map<std::string, std::string> ReadManifestCsv(const std::string& folder,
                                                   const std::string& key,
                                                   const std::string& value);

}  // namespace patchbay::cli
