#include "scheduler/state/job_logs.h"

#include <utility>

#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {

void JobLogs::Add(JobId job, std::string text, Outcome why) {
  JobLog& log = logs_[job];
  if (text.size() > kMaxLogLineBytes) text.resize(kMaxLogLineBytes);
  Cut(why, kMaxLogLineBytes - text.size());
  log.lines.push_back({log.next_sequence++, wall_, std::move(text), std::move(why)});
  bytes_ += BytesOf(log.lines.back());
  if (log.lines.size() > kMaxLogLines) DropFirst(log);
  for (auto oldest = logs_.begin(); bytes_ > kMaxLogBytes; ++oldest) {
    while (!oldest->second.lines.empty()) DropFirst(oldest->second);
  }
}

void JobLogs::DropFirst(JobLog& log) {
  bytes_ -= BytesOf(log.lines.front());
  log.lines.pop_front();
}

void JobLogs::Forget(JobId job) {
  const auto log = logs_.find(job);
  if (log == logs_.end()) return;
  while (!log->second.lines.empty()) DropFirst(log->second);
  logs_.erase(log);
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

Status JobLogs::CheckBytes() const {
  std::size_t bytes = 0;
  for (const auto& [job, log] : logs_) {
    for (const Line& line : log.lines) bytes += BytesOf(line);
  }
  return bytes == bytes_ && bytes <= kMaxLogBytes
             ? absl::OkStatus()
             : Internal("check logs: their bytes are counted wrongly");
}

Status JobLogs::CheckLines(const std::deque<Line>& lines, std::uint64_t next_sequence) {
  if (lines.size() > kMaxLogLines) return Internal("check logs: a job's is too long");
  std::uint64_t expected = next_sequence - lines.size();
  for (const Line& line : lines) {
    if (line.sequence != expected++) return Internal("check logs: a job's has a gap");
  }
  return absl::OkStatus();
}

}  // namespace patchbay::scheduler
