#include "scheduler/core/job_logs.h"

#include <utility>

#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {

void JobLogs::Add(JobId job, std::string text) {
  JobLog& log = logs_[job];
  if (text.size() > kMaxLogLineBytes) text.resize(kMaxLogLineBytes);
  log.lines.push_back({log.next_sequence++, turn_.wall, std::move(text)});
  if (log.lines.size() > kMaxLogLines) log.lines.pop_front();
}

std::vector<JobLogs::Line> JobLogs::After(JobId job, std::uint64_t after) const {
  std::vector<Line> lines;
  const auto log = logs_.find(job);
  if (log == logs_.end()) return lines;
  for (const Line& line : log->second.lines) {
    if (line.sequence > after) lines.push_back(line);
  }
  return lines;
}

Status JobLogs::CheckLines(const std::deque<Line>& lines, std::uint64_t next_sequence) {
  if (lines.size() > kMaxLogLines) return Broken("a job's log is too long");
  std::uint64_t expected = next_sequence - lines.size();
  for (const Line& line : lines) {
    if (line.sequence != expected++) return Broken("a job's log has a gap");
  }
  return absl::OkStatus();
}

}  // namespace patchbay::scheduler
