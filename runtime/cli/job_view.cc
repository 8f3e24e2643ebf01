#include "runtime/cli/job_view.h"

#include <algorithm>
#include <ctime>

#include "runtime/base/strings.h"

namespace patchbay::cli {
namespace {

constexpr std::int64_t kLineEveryNs = 10'000'000'000;
constexpr std::int64_t kRedrawEveryNs = 200'000'000;
constexpr double kRateAfterSeconds = 0.5;     ///< before that a rate says nothing
constexpr double kLeastTimeLeft = 0.1;        ///< seconds; below that it is the next line's
constexpr double kTimeLeftAfterShare = 0.01;  ///< before that the time left says nothing

std::string LocalTime(std::int64_t seconds) {
  if (seconds == 0) return "-";
  const auto at = static_cast<std::time_t>(seconds);
  std::tm parts{};
  char text[32];
  if (localtime_r(&at, &parts) == nullptr) return "-";
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

std::string Percent(double share) { return Fixed(100 * share, 0) + " %"; }

}  // namespace

double Share(const protocol::JobRow& job) {
  if (job.weight_total == 0) return 0;
  return static_cast<double>(job.weight_done) / static_cast<double>(job.weight_total);
}

const char* JobStateName(protocol::JobState state) {
  switch (state) {
    case protocol::JobState::kQueued:
      return "queued";
    case protocol::JobState::kRunning:
      return "running";
    case protocol::JobState::kDone:
      return "done";
    case protocol::JobState::kFailed:
      return "failed";
    case protocol::JobState::kPartlyFailed:
      return "partly failed";
    case protocol::JobState::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

Json JobToJson(const protocol::JobRow& job) {
  Json failed = Json::array();
  for (const protocol::FailedTask& task : job.failed) {
    failed.push_back({{"task", task.task.ToString()},
                      {"label", task.label},
                      {"code", task.outcome.code},
                      {"reason", task.outcome.message}});
  }
  return {{"job", job.job},
          {"kind", job.kind},
          {"name", job.name},
          {"submitter", job.submitter},
          {"state", JobStateName(job.state)},
          {"priority", job.priority},
          {"submitted_at", job.submitted_at},
          {"finished_at", job.finished_at},
          {"tasks",
           {{"total", job.tasks_total},
            {"done", job.tasks_done},
            {"failed", job.tasks_failed},
            {"running", job.tasks_running}}},
          {"progress", Share(job)},
          {"progress_bytes", job.progress_bytes},
          {"failed", failed}};
}

std::vector<std::string> JobTable(const std::vector<protocol::JobRow>& jobs) {
  std::vector<std::vector<std::string>> rows = {
      {"job", "kind", "state", "tasks", "done", "failed", "submitted", "by", "name"}};
  for (const protocol::JobRow& job : jobs) {
    rows.push_back({StrCat(job.job), job.kind, JobStateName(job.state), StrCat(job.tasks_total),
                    StrCat(job.tasks_done), StrCat(job.tasks_failed), LocalTime(job.submitted_at),
                    job.submitter, job.name});
  }
  return FormatTable(rows, {true, false, false, true, true, true});
}

ExitCode ExitOf(const protocol::JobRow& job) {
  switch (job.state) {
    case protocol::JobState::kDone:
      return ExitCode::kDone;
    case protocol::JobState::kPartlyFailed:
      return ExitCode::kSomeFailed;
    default:
      return ExitCode::kFailed;
  }
}

JobPace PaceOf(const protocol::JobRow& job, const protocol::JobRow& before, double elapsed_s) {
  JobPace pace;
  if (elapsed_s < kRateAfterSeconds || job.weight_done <= before.weight_done) return pace;
  pace.bytes_per_s = static_cast<double>(job.progress_bytes - before.progress_bytes) / elapsed_s;
  if (job.weight_done == job.weight_total || Share(job) < kTimeLeftAfterShare) return pace;
  const double weight_per_s = static_cast<double>(job.weight_done - before.weight_done) / elapsed_s;
  pace.seconds_left = static_cast<double>(job.weight_total - job.weight_done) / weight_per_s;
  return pace;
}

std::string ProgressText(const protocol::JobRow& job, double share, std::string done,
                         const JobPace& pace) {
  if (done.empty()) done = StrCat("tasks ", job.tasks_done, "/", job.tasks_total);
  std::string text = StrCat(job.kind, " ", Percent(share), "  ", done);
  if (job.tasks_failed > 0) text += StrCat("  failed ", job.tasks_failed);
  if (pace.bytes_per_s > 0)
    text += StrCat("  ", MegabytesPerSecond(pace.bytes_per_s), " of pixels");
  if (pace.seconds_left < kLeastTimeLeft) return text;
  return StrCat(text, "  ", HumanSeconds(pace.seconds_left), " left");
}

void JobProgress::Show(const protocol::JobRow& job, const std::function<std::string()>& done) {
  const std::int64_t now = SteadyNowNs();
  if (started_ns_ == 0) {
    started_ns_ = now;
    first_ = job;
  }
  most_share_ = std::max(most_share_, Share(job));
  const int tenth = static_cast<int>(most_share_ * 10);
  const std::int64_t every = terminal_.live() ? kRedrawEveryNs : kLineEveryNs;
  const bool new_tenth = !terminal_.live() && tenth != shown_tenth_;
  if (shown_ns_ != 0 && now - shown_ns_ < every && !new_tenth) return;
  shown_ns_ = now;
  shown_tenth_ = tenth;
  const JobPace pace = PaceOf(job, first_, static_cast<double>(now - started_ns_) * 1e-9);
  terminal_.Progress(ProgressText(job, most_share_, done ? done() : std::string(), pace));
}

}  // namespace patchbay::cli
