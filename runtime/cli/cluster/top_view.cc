#include "runtime/cli/cluster/top_view.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "runtime/cli/jobs/job_view.h"
#include "runtime/cli/terminal.h"
#include "runtime/client/client.h"
#include "runtime/core/outcome.h"
#include "runtime/core/printable.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

using protocol::JobRow;
using Rows = std::vector<std::vector<std::string>>;

constexpr std::uint32_t kAll = 1000, kStallToName = 100;  ///< thousandths
constexpr std::size_t kEndedShown = 10, kFailuresShown = 10;
constexpr std::int64_t kRecentSeconds = 3600;

bool IsOpenStream(const JobRow& job) {
  return job.kind == "stream" && job.patches_total != 0 && !client::HasEnded(job.state);
}

std::string Percent(std::uint32_t thousandths) { return StrCat((thousandths + 5) / 10, " %"); }

/// Thousandths of the last hour in which trainers waited.
std::uint32_t StalledInHour(const JobRow& job) {
  return job.course.hour.empty() ? 0 : kAll - std::min(kAll, job.course.hour.back());
}

/// The slowest stage and its node, or the reason that nothing is made.
std::string SlowestText(const JobRow& job) {
  if (job.on_hold) return "held";
  if (job.unattended_ms != 0) return "no trainer";
  if (!job.waits_for.empty()) return "waits for " + job.waits_for;
  if (!job.cause.empty()) return "waits: " + job.cause;
  if (job.course.stage.empty()) return "-";
  return StrCat(job.course.stage, " on ", job.course.node);
}

Rows StreamRows(std::vector<JobRow> streams) {
  std::sort(streams.begin(), streams.end(), [](const JobRow& left, const JobRow& right) {
    const auto rank = [](const JobRow& job) {
      return std::tuple(job.course.stalled, StalledInHour(job), job.job);
    };
    return rank(left) > rank(right);
  });
  Rows rows = {{"stream", "patches/s", "stalled", "in 1 h", "slowest", "name"}};
  for (const JobRow& job : streams) {
    rows.push_back(
        {StrCat(job.job), Fixed(1e-3 * static_cast<double>(job.course.patches_per_ks), 0),
         Percent(job.course.stalled), Percent(StalledInHour(job)), SlowestText(job), job.name});
  }
  return rows;
}

std::string LeftText(const JobRow& job, std::int64_t now) {
  if (client::HasEnded(job.state)) return "-";
  const double left = PaceOf(job, {}, static_cast<double>(now - job.submitted_at)).seconds_left;
  return left < 0 || job.kind == "stream" ? "-" : HumanSeconds(left);
}

/// Jobs that run, then jobs that wait, then the newest of those that ended.
Rows JobRows(std::vector<JobRow> jobs, std::int64_t now) {
  const auto rank = [](const JobRow& job) {
    return client::HasEnded(job.state) ? 2 : job.cause.empty() && !job.on_hold ? 0 : 1;
  };
  std::stable_sort(jobs.begin(), jobs.end(), [&](const JobRow& left, const JobRow& right) {
    return rank(left) < rank(right);
  });
  Rows rows = {{"job", "kind", "state", "cores", "done", "left", "failed", "waits", "name"}};
  std::size_t ended = 0;
  for (const JobRow& job : jobs) {
    if (client::HasEnded(job.state) && ++ended > kEndedShown) break;
    rows.push_back({StrCat(job.job), job.kind, StateText(job), CoresText(job),
                    Percent(static_cast<std::uint32_t>(kAll * Share(job))), LeftText(job, now),
                    StrCat(job.tasks_failed), job.cause, job.name});
  }
  return rows;
}

Rows NodeRows(const protocol::ClusterDescribed& cluster) {
  std::map<std::string, std::size_t> busy;
  for (const protocol::WorkerRow& worker : cluster.workers) {
    busy[worker.node] += worker.leases != 0 ? 1 : 0;
  }
  std::vector<protocol::NodeRow> nodes = cluster.nodes;
  std::stable_sort(nodes.begin(), nodes.end(), [](const auto& left, const auto& right) {
    return (left.state == "up") < (right.state == "up");
  });
  Rows rows = {{"node", "state", "cores", "workers", "busy", "GPUs"}};
  for (const protocol::NodeRow& node : nodes) {
    rows.push_back({node.node, node.state, StrCat(node.cpus), StrCat(node.workers),
                    StrCat(busy[node.node]), StrCat(node.gpus.size())});
  }
  return rows;
}

std::string FailureText(const protocol::ClusterDescribed::Failure& failure, std::int64_t now) {
  return StrCat(HumanSeconds(static_cast<double>(now - failure.at)), " ago, job ", failure.job,
                ": ", failure.text, ": ", TextOf(failure.outcome));
}

/// A part of the screen: its heading first.
using Part = std::vector<std::string>;

/// Takes lines from the parts that have more than their equal share, until they fit.
void Fit(std::vector<Part>& parts, std::size_t rows) {
  std::size_t left = rows, parts_left = parts.size();
  std::vector<Part*> by_size;
  for (Part& part : parts) by_size.push_back(&part);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const Part* a, const Part* b) { return a->size() < b->size(); });
  for (Part* part : by_size) {
    const std::size_t share = std::max<std::size_t>(left / parts_left--, 1);
    const std::size_t all = part->size();
    if (all > share) {
      part->resize(share);
      part->back() = StrCat("... and ", all - share + 1, " more");
    }
    left -= std::min(left, part->size());
  }
}

/// Two lines that answer the questions of an operator's day.
Part Totals(const protocol::ClusterDescribed& cluster, std::int64_t now) {
  std::size_t up = 0, busy = 0, streams = 0, stalled = 0, running = 0, waiting = 0, failed = 0;
  for (const protocol::NodeRow& node : cluster.nodes) up += node.state == "up" ? 1 : 0;
  for (const protocol::WorkerRow& worker : cluster.workers) busy += worker.leases != 0 ? 1 : 0;
  for (const JobRow& job : cluster.jobs) {
    const bool ended = client::HasEnded(job.state);
    const bool bad = ended && job.state != protocol::JobState::kDone &&
                     job.state != protocol::JobState::kCancelled;
    failed += bad && job.finished_at >= now - kRecentSeconds ? 1 : 0;
    streams += IsOpenStream(job) ? 1 : 0;
    stalled += IsOpenStream(job) && job.course.stalled >= kStallToName ? 1 : 0;
    running += !ended && job.cause.empty() && !IsOpenStream(job) ? 1 : 0;
    waiting += !ended && !job.cause.empty() ? 1 : 0;
  }
  std::string full = StrCat("nodes ", up, "/", cluster.nodes.size(), " up   workers ", busy, "/",
                            cluster.workers.size(), " busy");
  if (cluster.state_free_bytes != 0) {
    full += StrCat("   journal's disk ", HumanBytes(cluster.state_free_bytes), " free");
  }
  return {full, StrCat("streams ", streams, ", ", stalled, " stalled   jobs ", running,
                       " running, ", waiting, " waiting, ", failed, " failed in the last hour")};
}

}  // namespace

std::vector<std::string> TopLines(const protocol::ClusterDescribed& cluster, ScreenSize size,
                                  std::int64_t now) {
  std::vector<JobRow> streams, others;
  for (const JobRow& job : cluster.jobs) (IsOpenStream(job) ? streams : others).push_back(job);
  std::vector<Part> parts;
  const std::vector<bool> figures = {true, true, true, true};
  if (!streams.empty()) parts.push_back(FormatTable(StreamRows(std::move(streams)), figures));
  if (!others.empty()) {
    parts.push_back(
        FormatTable(JobRows(std::move(others), now), {true, false, false, true, true, true, true}));
  }
  parts.push_back(FormatTable(NodeRows(cluster), {false, false, true, true, true, true}));
  if (!cluster.failures.empty()) {
    Part& part = parts.emplace_back(Part{"failures of the last hour"});
    for (const auto& failure : cluster.failures) {
      if (part.size() > kFailuresShown) break;
      part.push_back(Printable(FailureText(failure, now)));
    }
  }
  Part lines = Totals(cluster, now);
  const std::size_t taken = lines.size() + parts.size();  // one empty line before each part
  if (size.rows != 0) Fit(parts, size.rows - std::min(size.rows, taken));
  for (const Part& part : parts) {
    lines.emplace_back();
    lines.insert(lines.end(), part.begin(), part.end());
  }
  if (size.rows != 0 && lines.size() > size.rows) lines.resize(size.rows);
  for (std::string& line : lines) line = FirstColumns(line, size.columns);
  return lines;
}

}  // namespace patchbay::cli
