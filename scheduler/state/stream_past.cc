#include "scheduler/state/stream_past.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace patchbay::scheduler {
namespace {

constexpr double kThousand = 1000;

/// `part` of `whole` in thousandths.
std::uint32_t ShareOf(double part, double whole) {
  return whole <= 0 ? 0 : static_cast<std::uint32_t>(std::lround(kThousand * part / whole));
}

}  // namespace

void StreamPast::AddShard(const std::string& node, const StageTimes& times, std::uint32_t patches) {
  stages_.Add(times, patches);
  nodes_[node].Add(times, patches);
}

void StreamPast::Look(TimeMs now, std::uint64_t patches_made, TimeMs stalled_ms) {
  if (!samples_.empty() && now - samples_.back().at < kSampleMs) return;
  samples_.push_back({now, patches_made, stalled_ms, stages_});
  if (samples_.size() > kPastSamples) samples_.pop_front();
  nodes_before_ = std::exchange(nodes_, {});
}

protocol::StreamCourse StreamPast::Course(TimeMs now, std::uint64_t patches_made,
                                          TimeMs stalled_ms) const {
  protocol::StreamCourse course;
  if (samples_.empty() || now == samples_.front().at) return course;
  const Sample& recent = samples_[samples_.size() - std::min<std::size_t>(samples_.size(), 2)];
  const auto recent_ms = static_cast<double>(now - recent.at);
  const auto made = static_cast<double>(patches_made - recent.patches_made);
  course.patches_per_ks = static_cast<std::uint64_t>(made * kThousand * kThousand / recent_ms);
  course.stalled = ShareOf(static_cast<double>(stalled_ms - recent.stalled_ms), recent_ms);
  NameSlowest(course);
  const Sample& first = samples_.front();
  const auto waited = static_cast<double>(stalled_ms - first.stalled_ms);
  const auto work = static_cast<double>(stages_.Sum() - first.stages.Sum());
  const auto past_ms = static_cast<double>(now - first.at);
  for (const Stage& stage : kStreamStages) {
    const auto us = static_cast<double>(stages_.*stage.us - first.stages.*stage.us);
    course.hour.push_back(work > 0 ? ShareOf(waited * us / work, past_ms) : 0);
  }
  course.hour.push_back(ShareOf(past_ms - waited, past_ms));
  return course;
}

void StreamPast::NameSlowest(protocol::StreamCourse& course) const {
  std::map<std::string, StageTotals> nodes(nodes_before_.begin(), nodes_before_.end());
  StageTotals all;
  for (const auto& [name, totals] : nodes_) nodes[name] += totals;
  for (const auto& [name, totals] : nodes) all += totals;
  if (all.Sum() == 0) return;
  const Stage& slowest = *std::max_element(
      kStreamStages.begin(), kStreamStages.end(),
      [&](const Stage& left, const Stage& right) { return all.*left.us < all.*right.us; });
  course.stage = slowest.name;
  double most = -1;
  for (const auto& [name, totals] : nodes) {
    const double us_of_patch =
        static_cast<double>(totals.*slowest.us) / static_cast<double>(totals.patches);
    if (us_of_patch <= most) continue;
    most = us_of_patch;
    course.node = name;
  }
}

}  // namespace patchbay::scheduler
