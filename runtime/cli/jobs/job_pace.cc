#include "runtime/cli/jobs/job_pace.h"

#include <algorithm>

namespace patchbay::cli {
namespace {

constexpr double kRateAfterSeconds = 0.5;     ///< before that a rate says nothing
constexpr double kTimeLeftAfterShare = 0.01;  ///< before that the time left says nothing
/// In a run that is longer than both, only work done within them counts. Larger means steadier,
/// smaller means sooner right when slides of another kind come.
constexpr double kRecentSeconds = 60;
constexpr std::size_t kRecentSamples = 32;

/// Tasks that list slides or look at headers end and leave more to do, but no pixels: they say
/// nothing of the work that follows.
bool IsPreparation(const protocol::JobRow& job, std::uint64_t total_before) {
  return job.progress_bytes == 0 && job.weight_total > total_before;
}

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

}  // namespace patchbay::cli
