#include "runtime/cli/jobs/job_view.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "runtime/cli/jobs/failed_sources.h"
#include "runtime/client/client.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

constexpr double kRateAfterSeconds = 0.5;     ///< a rate is meaningless before that
constexpr double kTimeLeftAfterShare = 0.01;  ///< the remaining time is meaningless before that
/// In a longer run only recent work counts, done within these limits. Larger means steadier,
/// smaller means sooner right when slides of another kind follow.
constexpr double kRecentSeconds = 60;
constexpr std::size_t kRecentSamples = 32;

/// Tasks that list slides or read headers add work without doing any on pixels: their speed does
/// not predict that of the work that follows.
bool IsPreparation(const protocol::JobRow& job, std::uint64_t total_before) {
  return job.progress_bytes == 0 && job.weight_total > total_before;
}

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

double CoresIn(std::uint32_t millis) { return millis / 1000.0; }

std::string Percent(double share) { return Fixed(std::floor(100 * share), 0) + " %"; }

}  // namespace

JobPace PaceOf(const protocol::JobRow& job, const protocol::JobRow& before, double elapsed_s) {
  JobPace pace;
  if (elapsed_s < kRateAfterSeconds || job.weight_done <= before.weight_done) return pace;
  pace.bytes_per_s = static_cast<double>(job.progress_bytes - before.progress_bytes) / elapsed_s;
  if (job.weight_done >= job.weight_total ||
      static_cast<double>(job.weight_done) <
          kTimeLeftAfterShare * static_cast<double>(job.weight_total)) {
    return pace;
  }
  const double weight_per_s = static_cast<double>(job.weight_done - before.weight_done) / elapsed_s;
  pace.seconds_left = static_cast<double>(job.weight_total - job.weight_done) / weight_per_s;
  return pace;
}

void JobPaceMeter::Add(const protocol::JobRow& job, double now_s) {
  if (!samples_.empty() && samples_.back().weight == job.weight_done &&
      samples_.back().bytes == job.progress_bytes) {
    return;
  }
  if (samples_.size() == 1 && IsPreparation(job, weight_total_)) samples_.clear();
  weight_total_ = job.weight_total;
  if (!samples_.empty()) longest_gap_s_ = std::max(longest_gap_s_, now_s - samples_.back().at_s);
  samples_.push_back({now_s, job.weight_done, job.progress_bytes});
  while (samples_.size() > kRecentSamples && now_s - samples_[1].at_s >= kRecentSeconds) {
    samples_.pop_front();
  }
}

JobPace JobPaceMeter::Look(const protocol::JobRow& job, double now_s) {
  Add(job, now_s);
  const Sample& first = samples_.front();
  const Sample& last = samples_.back();
  const double since_s = now_s - last.at_s;
  const double late_s = std::max(0.0, since_s - longest_gap_s_);
  protocol::JobRow before;
  before.weight_done = first.weight;
  before.progress_bytes = first.bytes;
  JobPace pace = PaceOf(job, before, last.at_s - first.at_s + late_s);
  if (pace.seconds_left >= 0) {
    pace.seconds_left = std::max(pace.seconds_left - (since_s - late_s), 0.0);
  }
  return pace;
}

double ShownShare::Look(const protocol::JobRow& job) {
  if (IsPreparation(job, weight_total_)) prepared_ = job.weight_done;
  weight_total_ = job.weight_total;
  if (job.state == protocol::JobState::kDone || job.state == protocol::JobState::kPartlyFailed) {
    return most_ = 1;
  }
  if (job.weight_total <= prepared_) return most_;
  const double share = static_cast<double>(job.weight_done - prepared_) /
                       static_cast<double>(job.weight_total - prepared_);
  return most_ = std::max(most_, std::min(share, kMostBeforeDone));
}

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

std::string StateText(const protocol::JobRow& job) {
  if (client::HasEnded(job.state)) return JobStateName(job.state);
  if (job.on_hold) return job.held_cpu_millis != 0 || job.tasks_running != 0 ? "draining" : "held";
  const bool plans =
      job.kind == "stream" && job.state == protocol::JobState::kRunning && job.patches_total == 0;
  return plans ? "planning" : JobStateName(job.state);
}

std::string CoresText(const protocol::JobRow& job) {
  return StrCat(Fixed(CoresIn(job.held_cpu_millis), 1), "/",
                Fixed(CoresIn(job.wanted_cpu_millis), 1));
}

/// Shares from 0 to 1.
Json CourseToJson(const protocol::StreamCourse& course) {
  const auto share = [](std::uint32_t thousandths) { return 1e-3 * thousandths; };
  Json hour;
  for (std::size_t i = 0; i < course.hour.size(); ++i) {
    hour[i < kStreamStages.size() ? std::string(kStreamStages[i].name) : "trainer"] =
        share(course.hour[i]);
  }
  return {{"patches_per_s", 1e-3 * static_cast<double>(course.patches_per_ks)},
          {"stalled", share(course.stalled)},
          {"stage", course.stage},
          {"node", course.node},
          {"hour", hour}};
}

Json JobToJson(const protocol::JobRow& job) {
  Json failed = Json::array();
  for (const protocol::FailedTask& task : job.failed) {
    Json row = ReasonToJson(task.outcome);
    row["task"] = task.task.ToString();
    row["label"] = task.label;
    failed.push_back(std::move(row));
  }
  Json row = {
      {"job", job.job},
      {"kind", job.kind},
      {"name", job.name},
      {"submitter", job.submitter},
      {"team", job.team},
      {"state", StateText(job)},
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
      {"cores",
       {{"wanted", CoresIn(job.wanted_cpu_millis)}, {"held", CoresIn(job.held_cpu_millis)}}},
      {"cause", job.cause},
      {"waits_for", job.waits_for},
      {"failed", failed}};
  if (job.patches_total != 0) {
    row["patches"] = {{"made", job.patches_made}, {"total", job.patches_total}};
    row["stalled_s"] = static_cast<double>(job.stalled_ms) / 1000;
    if (!job.course.hour.empty()) row["course"] = CourseToJson(job.course);
  }
  return row;
}

protocol::JobRow Named(protocol::JobRow job, const SubjectNames& names) {
  for (protocol::FailedTask& task : job.failed) {
    task.outcome = patchbay::Named(std::move(task.outcome), names);
  }
  return job;
}

std::vector<std::string> JobTable(const std::vector<protocol::JobRow>& jobs) {
  std::vector<std::vector<std::string>> rows = {
      {"job", "kind", "state", "cores", "tasks", "done", "failed", "submitted", "by", "name"}};
  const bool teams =
      std::any_of(jobs.begin(), jobs.end(), [](const auto& job) { return !job.team.empty(); });
  const bool waits =
      std::any_of(jobs.begin(), jobs.end(), [](const auto& job) { return !job.cause.empty(); });
  if (teams) rows[0].push_back("team");
  if (waits) rows[0].push_back("waits: why");
  for (const protocol::JobRow& job : jobs) {
    const std::string cores = client::HasEnded(job.state) ? "-" : CoresText(job);
    rows.push_back({StrCat(job.job), job.kind, StateText(job), cores, StrCat(job.tasks_total),
                    StrCat(job.tasks_done), StrCat(job.tasks_failed), LocalTime(job.submitted_at),
                    job.submitter, job.name});
    if (teams) rows.back().push_back(job.team);
    if (waits) rows.back().push_back(job.cause);
  }
  return FormatTable(rows, {true, false, false, true, true, true, true});
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
  const bool of_tasks = done.empty();  // else of slides, which have several tasks
  if (of_tasks) done = StrCat("tasks ", job.tasks_done, "/", job.tasks_total);
  std::string text = StrCat(job.kind, " ", Percent(share), "  ", done);
  if (job.tasks_failed > 0) text += StrCat("  failed ", of_tasks ? "" : "tasks ", job.tasks_failed);
  if (job.progress_bytes > 0) text += StrCat("  ", HumanBytes(job.progress_bytes), " of pixels");
  if (pace.bytes_per_s > 0) text += "  " + MegabytesPerSecond(pace.bytes_per_s);
  if (pace.seconds_left < kLeastTimeLeft) return text;
  return StrCat(text, "  ", HumanSeconds(pace.seconds_left), " left");
}

std::string StreamText(const protocol::JobRow& job, double patches_per_s) {
  const std::string state = StateText(job);
  if (state == "planning") return StrCat("planning: tasks ", job.tasks_done, "/", job.tasks_total);
  if (state == "queued") return "queued: it is not planned yet";
  std::string text = job.on_hold ? StrCat("held: patchbay release ", job.job, " lets it go on")
                     : job.unattended_ms != 0
                         ? StrCat("without a trainer for ",
                                  HumanSeconds(static_cast<double>(job.unattended_ms) / 1000))
                     : job.waits_for.empty() ? "streaming"
                                             : "waits for " + job.waits_for;
  text += StrCat(": ", job.patches_made, " patches made, ", job.patches_total,
                 " at the end of this epoch");
  if (patches_per_s >= 0) text += StrCat(", ", Fixed(patches_per_s, 0), " patches/s");
  text += StrCat(", stalled for ", HumanSeconds(static_cast<double>(job.stalled_ms) / 1000));
  const protocol::StreamCourse& course = job.course;
  if (course.hour.empty()) return text;
  text += StrCat(", now ", Percent(1e-3 * course.stalled), " of the time");
  if (course.stage.empty()) return text;
  return StrCat(text, ", most work in ", course.stage, " on node ", course.node);
}

void JobProgress::ShowStream(const protocol::JobRow& job, std::int64_t now) {
  const double seconds = static_cast<double>(now - before_ns_) * 1e-9;
  const bool known = before_.patches_total != 0 && seconds > 0;
  const double rate =
      known ? static_cast<double>(job.patches_made - before_.patches_made) / seconds : -1;
  before_ = job;
  before_ns_ = now;
  terminal_.Progress(StreamText(job, rate));
}

void JobProgress::Show(const protocol::JobRow& job, const std::function<std::string()>& done) {
  const std::int64_t now = SteadyNowNs();
  const double share = share_.Look(job);
  const JobPace pace = pace_.Look(job, static_cast<double>(now) * 1e-9);
  if (!lines_.Due(share, now) && !client::HasEnded(job.state)) return;
  if (job.kind == "stream" && !client::HasEnded(job.state)) return ShowStream(job, now);
  terminal_.Progress(ProgressText(job, share, done ? done() : std::string(), pace));
}

}  // namespace patchbay::cli
