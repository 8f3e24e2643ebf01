// The scheduler's log of each job, for people.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/core/status.h"
#include "runtime/wire/protocol/messages.h"
#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {

/// Invariants: at most kMaxLogLines lines per job, of at most kMaxLogLineBytes each, numbered
/// without a gap; at most kMaxLogBytes in all; no lines of a job that the table has forgotten.
class JobLogs {
 public:
  using Line = protocol::LogsFetched::Line;

  /// `wall`: time of the event that is handled, in seconds since 1970; it outlives this.
  explicit JobLogs(const std::int64_t& wall) : wall_(wall) {}

  /// Readers of the line print `why` after the text.
  void Add(JobId job, std::string text, Outcome why = {});
  /// Lines with a sequence above `after`, oldest first.
  std::vector<Line> After(JobId job, std::uint64_t after) const;
  /// Lines since that second that say why something failed, of jobs for which `shows` is true:
  /// newest first, at most kMaxFailuresShown.
  template <typename Shows>
  std::vector<protocol::ClusterDescribed::Failure> Failures(std::int64_t since,
                                                            const Shows& shows) const {
    std::vector<protocol::ClusterDescribed::Failure> failures;
    for (const auto& [job, log] : logs_) {
      if (log.lines.empty() || log.lines.back().at < since || !shows(job)) continue;
      for (const Line& line : log.lines) {
        if (line.outcome.code == 0 || line.at < since) continue;
        failures.push_back({job, line.at, line.text, line.outcome});
      }
    }
    std::stable_sort(failures.begin(), failures.end(),
                     [](const auto& left, const auto& right) { return left.at > right.at; });
    if (failures.size() > kMaxFailuresShown) failures.resize(kMaxFailuresShown);
    return failures;
  }
  void Forget(JobId job);

  /// `is_known` tells whether the table has the job.
  template <typename IsKnown>
  Status Check(const IsKnown& is_known) const {
    PB_RETURN_IF_ERROR(CheckBytes());
    for (const auto& [job, log] : logs_) {
      if (!is_known(job)) return Internal("check logs: there are lines of job ", job, ", not it");
      PB_RETURN_IF_ERROR(CheckLines(log.lines, log.next_sequence));
    }
    return absl::OkStatus();
  }

 private:
  struct JobLog {
    std::deque<Line> lines;
    std::uint64_t next_sequence = 1;
  };
  static Status CheckLines(const std::deque<Line>& lines, std::uint64_t next_sequence);
  Status CheckBytes() const;
  static std::size_t BytesOf(const Line& line) {
    return sizeof(Line) + line.text.size() + patchbay::BytesOf(line.outcome);
  }
  void DropFirst(JobLog& log);

  const std::int64_t& wall_;
  std::map<JobId, JobLog> logs_;
  std::size_t bytes_ = 0;  ///< bytes of all lines
};

}  // namespace patchbay::scheduler
