// Slides of a job that failed: which file each was, why, and the list that stays.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/cli/terminal.h"
#include "runtime/core/outcome.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/wire/protocol/messages.h"

namespace patchbay::cli {

struct FailedSource {
  std::string source;
  Outcome outcome;
};

/// The common part of the reports of jobs over slides.
struct SlideReport {
  JobId job = 0;
  std::string out;
  double seconds = 0;  ///< from the command's start
  std::vector<FailedSource> failed;
  Status listed;  ///< whether OUT/failed.csv holds them
};

/// The file of a slide number, or "slide N" when the list does not have it.
std::string SourceName(const std::vector<std::string>& sources, std::int64_t slide);

/// Slide number to why its first failed task failed.
using Outcomes = std::map<std::int64_t, Outcome>;
Outcomes OutcomesOf(const protocol::JobRow& job);
/// The reason of one slide; "not finished" where its row does not say.
Outcome WhyFailed(const Outcomes& outcomes, std::int64_t slide);

/// {"reason", "code", "doing", "subject", "cause", "advice"}, of a failed source with "source".
Json ReasonToJson(const Outcome& outcome);
Json FailureToJson(const FailedSource& failed);

/// The first that failed of `slides` on stderr, how many there are, and where the whole list is.
void SayFailed(Terminal& terminal, const SlideReport& report, std::size_t slides);

/// OUT/failed.csv, RFC 4180 with a heading; owner-only, because it names files. Removes the list of
/// an earlier run when nothing failed.
Status WriteFailedCsv(const std::string& out, const std::vector<FailedSource>& failed);

}  // namespace patchbay::cli
