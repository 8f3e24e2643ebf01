#include "runtime/cli/jobs/job_view.h"

#include <cmath>
#include <ctime>

#include "runtime/cli/jobs/failed_sources.h"
#include "runtime/client/client.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

constexpr double kLeastTimeLeft = 0.1;  ///< seconds; below that it is the next line's

std::string LocalTime(std::int64_t seconds) {
  if (seconds == 0) return "-";
  const auto at = static_cast<std::time_t>(seconds);
  std::tm parts{};
  char text[32];
  if (localtime_r(&at, &parts) == nullptr) return "-";
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

std::string Percent(double share) { return Fixed(std::floor(100 * share), 0) + " %"; }

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
    Json row = ReasonToJson(task.outcome);
    row["task"] = task.task.ToString();
    row["label"] = task.label;
    failed.push_back(std::move(row));
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
          {"waits_for", job.waits_for},
          {"failed", failed}};
}

protocol::JobRow Named(protocol::JobRow job, const SubjectNames& names) {
  for (protocol::FailedTask& task : job.failed) {
    task.outcome = patchbay::Named(std::move(task.outcome), names);
  }
  return job;
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

std::string ProgressText(const protocol::JobRow& job, double share, std::string done,
                         const JobPace& pace) {
  if (done.empty()) done = StrCat("tasks ", job.tasks_done, "/", job.tasks_total);
  std::string text = StrCat(job.kind, " ", Percent(share), "  ", done);
  if (job.tasks_failed > 0) text += StrCat("  failed ", job.tasks_failed);
  if (job.progress_bytes > 0) text += StrCat("  ", HumanBytes(job.progress_bytes), " of pixels");
  if (pace.bytes_per_s > 0) text += "  " + MegabytesPerSecond(pace.bytes_per_s);
  if (pace.seconds_left < kLeastTimeLeft) return text;
  return StrCat(text, "  ", HumanSeconds(pace.seconds_left), " left");
}

void JobProgress::Show(const protocol::JobRow& job, const std::function<std::string()>& done) {
  const std::int64_t now = SteadyNowNs();
  const double share = share_.Look(job);
  const JobPace pace = pace_.Look(job, static_cast<double>(now) * 1e-9);
  if (!lines_.Due(share, now) && !client::HasEnded(job.state)) return;
  terminal_.Progress(ProgressText(job, share, done ? done() : std::string(), pace));
}

}  // namespace patchbay::cli
