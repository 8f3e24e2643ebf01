// Jobs as people and programs see them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/cli/command.h"
#include "runtime/cli/terminal.h"
#include "runtime/protocol/messages.h"

namespace patchbay::cli {

const char* JobStateName(protocol::JobState state);
/// Of the job's work, in [0, 1].
double Share(const protocol::JobRow& job);
Json JobToJson(const protocol::JobRow& job);
/// Heading and one line a job.
std::vector<std::string> JobTable(const std::vector<protocol::JobRow>& jobs);
/// The positional ID of commands about one job; defined in job.cc.
Argument JobArgument(std::int64_t& job);
/// What ended how: 0, 1, or 3 when only some of it failed.
ExitCode ExitOf(const protocol::JobRow& job);

/// What a job has done since it was seen as `before`, `elapsed_s` ago.
struct JobPace {
  double bytes_per_s = 0;    ///< of raw pixels; 0: not known yet
  double seconds_left = -1;  ///< negative: not known
};
JobPace PaceOf(const protocol::JobRow& job, const protocol::JobRow& before, double elapsed_s);

/// "ingest 42 %  slides 5/12  failed 1  120 MB/s of pixels  3:20 left". `share` of the work, in
/// [0, 1]; `done` says what is done of how much, "" = tasks.
std::string ProgressText(const protocol::JobRow& job, double share, std::string done,
                         const JobPace& pace);

/// Shows a job's progress, rate and time left: redrawn on a terminal, elsewhere a line when a tenth
/// of the work is done, and at least every ten seconds. The share that is done never falls: it
/// stands while a job finds more to do.
class JobProgress {
 public:
  explicit JobProgress(Terminal& terminal) : terminal_(terminal) {}
  /// `done` says what is done of how much ("slides 3/12"); "" or silent: tasks.
  void Show(const protocol::JobRow& job, const std::function<std::string()>& done = {});

 private:
  Terminal& terminal_;
  std::int64_t started_ns_ = 0, shown_ns_ = 0;
  protocol::JobRow first_;  ///< as it was shown first
  double most_share_ = 0;   ///< of the work that was done
  int shown_tenth_ = -1;
};

}  // namespace patchbay::cli
