// Jobs as people and programs see them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/cli/command.h"
#include "runtime/cli/jobs/job_pace.h"
#include "runtime/cli/progress_lines.h"
#include "runtime/cli/terminal.h"
#include "runtime/core/clock.h"
#include "runtime/format/json/json.h"
#include "runtime/wire/protocol/messages.h"

namespace patchbay::cli {

const char* JobStateName(protocol::JobState state);
/// Share of the job's work that is done, in [0, 1].
double Share(const protocol::JobRow& job);
Json JobToJson(const protocol::JobRow& job);
/// A job whose failures print with names.
protocol::JobRow Named(protocol::JobRow job, const SubjectNames& names);
/// Heading and one line a job.
std::vector<std::string> JobTable(const std::vector<protocol::JobRow>& jobs);
/// The positional ID of commands about one job; defined in job.cc.
Argument JobArgument(std::int64_t& job);
/// Exit code of a job that ended: 0, 1, or 3 when only some of it failed.
ExitCode ExitOf(const protocol::JobRow& job);

/// "ingest 42 %  slides 5/12  failed 1  3.1 GiB of pixels  120 MB/s  3:20 left". `share` of the
/// work, in [0, 1], rounded down; `done` says what is done of how much, "" = tasks.
std::string ProgressText(const protocol::JobRow& job, double share, std::string done,
                         const JobPace& pace);

/// Shows a job's progress, rate and time left: redrawn on a terminal, elsewhere a line when a tenth
/// of the work is done, and at least every ten seconds. How it ended is shown always.
class JobProgress {
 public:
  explicit JobProgress(Terminal& terminal)
      : terminal_(terminal), lines_(terminal.live(), kLineEveryNs) {}
  /// `done` says what is done of how much ("slides 3/12"); "" or silent: tasks.
  void Show(const protocol::JobRow& job, const std::function<std::string()>& done = {});

 private:
  static constexpr std::int64_t kLineEveryNs = 10'000'000'000;

  Terminal& terminal_;
  ProgressLines lines_;
  JobPaceMeter pace_;
  ShownShare share_;
};

}  // namespace patchbay::cli
