// Jobs as people and programs see them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "runtime/cli/command.h"
#include "runtime/cli/progress_lines.h"
#include "runtime/cli/terminal.h"
#include "runtime/client/client.h"
#include "runtime/core/clock.h"
#include "runtime/format/json/json.h"
#include "runtime/wire/protocol/messages.h"

namespace patchbay::cli {

struct JobPace {
  double bytes_per_s = 0;    ///< rate of raw pixels; 0: not known yet
  double seconds_left = -1;  ///< negative: not known
};

/// Largest share of a job's work that is shown as done while it has not ended.
inline constexpr double kMostBeforeDone = 0.999;

/// The pace of a job since it was seen as `before`, `elapsed_s` ago.
JobPace PaceOf(const protocol::JobRow& job, const protocol::JobRow& before, double elapsed_s);

/// Follows one job. Work is counted when a task ends, so a rate up to now would fall between two
/// ends and jump at each: rates are up to the newest end, and the time left is counted down from
/// there. Work that takes longer than ever before to end counts against them.
class JobPaceMeter {
 public:
  /// The pace known now, after this row too. `now_s` is of a steady clock and does not fall.
  JobPace Look(const protocol::JobRow& job, double now_s);

 private:
  struct Sample {
    double at_s = 0;
    std::uint64_t weight = 0, bytes = 0;
  };

  void Add(const protocol::JobRow& job, double now_s);

  std::deque<Sample> samples_;  ///< different rows, of the whole run or of its recent part
  std::uint64_t weight_total_ = 0;
  double longest_gap_s_ = 0;  ///< between two rows that differ
};

/// The share of a job's work to be shown: it never falls, stands while a job finds more to do, and
/// is 1 once the job is done, not before.
class ShownShare {
 public:
  double Look(const protocol::JobRow& job);

 private:
  std::uint64_t weight_total_ = 0;
  std::uint64_t prepared_ = 0;  ///< weight of tasks that only spawned others
  double most_ = 0;
};

const char* JobStateName(protocol::JobState state);
/// "held", "draining" (held, and some of it runs) and "planning" too, of a job that has not ended.
std::string StateText(const protocol::JobRow& job);
/// Share of the job's work that is done, in [0, 1].
double Share(const protocol::JobRow& job);
/// "1.0/2.0": held of those wanted.
std::string CoresText(const protocol::JobRow& job);
Json JobToJson(const protocol::JobRow& job);
/// A job whose failures print with names.
protocol::JobRow Named(protocol::JobRow job, const SubjectNames& names);
/// Heading and one line per job.
std::vector<std::string> JobTable(const std::vector<protocol::JobRow>& jobs);
/// The positional ID of commands about one job; defined in job.cc.
Argument JobArgument(std::int64_t& job);
/// Exit code of a job that ended: 0, 1, or 3 when only some of it failed.
ExitCode ExitOf(const protocol::JobRow& job);

/// "ingest 42 %  slides 5/12  failed 1  3.1 GiB of pixels  120 MB/s  3:20 left". `share`: of the
/// work, in [0, 1], rounded down; `done`: finished items out of all, "" = tasks.
std::string ProgressText(const protocol::JobRow& job, double share, std::string done,
                         const JobPace& pace);

/// "streaming: 12000 patches made, 20000 at the end of this epoch, 574 patches/s, stalled for 3 s,
/// now 42 % of the time, most work in storage on node b", or what the stream waits for.
/// `patches_per_s`: negative = not known.
std::string StreamText(const protocol::JobRow& job, double patches_per_s);
/// The rate of a stream since `before`, after half a second; defined in job.cc.
StatusOr<double> PatchesPerSecond(client::Client& client, const protocol::JobRow& before);

/// Shows a job's progress, rate and time left: redrawn on a terminal, elsewhere a line when a tenth
/// of the work is done, and at least every ten seconds. How it ended is shown always.
class JobProgress {
 public:
  explicit JobProgress(Terminal& terminal)
      : terminal_(terminal), lines_(terminal.live(), kLineEveryNs) {}
  /// `done` returns the finished items out of all ("slides 3/12"); "" or empty: tasks.
  void Show(const protocol::JobRow& job, const std::function<std::string()>& done = {});

 private:
  static constexpr std::int64_t kLineEveryNs = 10'000'000'000;

  Terminal& terminal_;
  ProgressLines lines_;
  void ShowStream(const protocol::JobRow& job, std::int64_t now);

  JobPaceMeter pace_;
  ShownShare share_;
  protocol::JobRow before_;  ///< a stream's, when it was shown last
  std::int64_t before_ns_ = 0;
};

}  // namespace patchbay::cli
