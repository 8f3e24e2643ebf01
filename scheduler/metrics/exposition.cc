#include "scheduler/metrics/exposition.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include "runtime/core/strings.h"
#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {
namespace {

using prometheus::MetricType;

constexpr std::array<std::string_view, 6> kJobStates = {"queued", "running",       "done",
                                                        "failed", "partly_failed", "cancelled"};
constexpr std::array<std::string_view, 4> kSlotStates = {"free", "filling", "full", "resting"};
constexpr std::array<std::string_view, 5> kNodeStates = {"up", "suspect", "draining", "drained",
                                                         "away"};

/// A sample with the jobs that have a label of their own.
struct Scene {
  explicit Scene(const Sample& from);

  const Sample& sample;
  const ClusterMeasures& cluster;
  std::vector<const JobMeasures*> jobs;
  JobMeasures other;  ///< the sum of the jobs that are left
  std::size_t folded = 0;
};

/// Jobs that hold cores come first, then the newest.
Scene::Scene(const Sample& from) : sample(from), cluster(from.cluster) {
  for (const JobMeasures& job : cluster.open_jobs) jobs.push_back(&job);
  const std::size_t shown = std::min(jobs.size(), kMostJobs);
  const auto rank = [](const JobMeasures* job) {
    return std::pair(job->held_cpu_millis != 0, job->job);
  };
  std::nth_element(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(shown), jobs.end(),
                   [&](const auto* a, const auto* b) { return rank(a) > rank(b); });
  folded = jobs.size() - shown;
  for (std::size_t i = shown; i < jobs.size(); ++i) {
    const JobMeasures& job = *jobs[i];
    other.tasks_done += job.tasks_done;
    other.tasks_failed += job.tasks_failed;
    other.tasks_running += job.tasks_running;
    other.tasks_waiting += job.tasks_waiting;
    other.weight_done += job.weight_done;
    other.weight_total += job.weight_total;
    other.held_cpu_millis += job.held_cpu_millis;
    other.wanted_cpu_millis += job.wanted_cpu_millis;
  }
  jobs.resize(shown);
}

class Series;

/// One row of the table. `labels`: names, separated by spaces.
struct Metric {
  std::string_view name;
  MetricType type;
  std::string_view unit, labels, meaning;
  void (*write)(const Scene& scene, Series& out);
};

/// The series of one metric.
class Series {
 public:
  explicit Series(const Metric& metric) {
    family_.name = metric.name;
    family_.help = metric.meaning;
    family_.type = metric.type;
    for (std::string_view rest = metric.labels; !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      labels_.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }

  /// One series with the values of its labels, in their order.
  template <typename Number>
  void Add(Number value, std::initializer_list<std::string_view> labels = {}) {
    prometheus::ClientMetric& series = Next(labels);
    const bool counts = family_.type == MetricType::Counter;
    (counts ? series.counter.value : series.gauge.value) = static_cast<double>(value);
  }
  template <std::int64_t... BoundsUs>
  void Add(const Durations<BoundsUs...>& times) {
    prometheus::ClientMetric::Histogram& histogram = Next({}).histogram;
    for (std::size_t i = 0; i < times.counts.size(); ++i) {
      histogram.sample_count += times.counts[i];
      if (i == times.kBoundsUs.size()) continue;
      const double bound_s = static_cast<double>(times.kBoundsUs[i]) / 1e6;
      histogram.bucket.push_back({histogram.sample_count, bound_s});
    }
    histogram.sample_sum = static_cast<double>(times.sum_ns) * 1e-9;
  }
  prometheus::MetricFamily Take() { return std::move(family_); }

 private:
  prometheus::ClientMetric& Next(std::initializer_list<std::string_view> labels) {
    PB_CHECK(labels.size() == labels_.size());
    prometheus::ClientMetric& series = family_.metric.emplace_back();
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      series.label.push_back({labels_[i], std::string(labels.begin()[i])});
    }
    return series;
  }

  prometheus::MetricFamily family_;
  std::vector<std::string> labels_;
};

/// Calls `write` with the label and figures of every job.
template <typename Write>
void EachJob(const Scene& scene, const Write& write) {
  for (const JobMeasures* job : scene.jobs) write(StrCat(job->job), *job);
  if (scene.folded != 0) write("other", scene.other);
}

/// The sum of two streams' figures; the longer of their waits.
StreamMeasures Sum(StreamMeasures sum, const StreamMeasures& stream) {
  sum.patches_made += stream.patches_made;
  sum.stalled_ms += stream.stalled_ms;
  sum.trainers += stream.trainers;
  for (std::size_t i = 0; i < sum.slots.size(); ++i) sum.slots[i] += stream.slots[i];
  for (const Stage& stage : kStreamStages) sum.stages.*stage.us += stream.stages.*stage.us;
  sum.wait_p50_us = std::max(sum.wait_p50_us, stream.wait_p50_us);
  sum.wait_p99_us = std::max(sum.wait_p99_us, stream.wait_p99_us);
  sum.memory_bytes += stream.memory_bytes;
  return sum;
}

/// Calls `write` with the label and figures of every stream, the oldest first.
template <typename Write>
void EachStream(const Scene& scene, const Write& write) {
  const std::vector<StreamMeasures>& streams = scene.cluster.streams;
  const std::size_t shown = std::min(streams.size(), kMostStreams);
  for (std::size_t i = 0; i < shown; ++i) write(StrCat(streams[i].job), streams[i]);
  if (shown == streams.size()) return;
  write("other", std::accumulate(streams.begin() + static_cast<std::ptrdiff_t>(shown),
                                 streams.end(), StreamMeasures(), Sum));
}

void WriteJobTasks(const Scene& scene, Series& out) {
  EachJob(scene, [&](const std::string& label, const JobMeasures& job) {
    out.Add(job.tasks_waiting, {label, "waiting"});
    out.Add(job.tasks_running, {label, "running"});
    out.Add(job.tasks_done, {label, "done"});
    out.Add(job.tasks_failed, {label, "failed"});
  });
}

void WriteProgress(const Scene& scene, Series& out) {
  EachJob(scene, [&](const std::string& label, const JobMeasures& job) {
    if (job.weight_total == 0) return;
    const auto done = static_cast<double>(job.weight_done);
    out.Add(done / static_cast<double>(job.weight_total), {label});
  });
}

void WriteSlots(const Scene& scene, Series& out) {
  EachStream(scene, [&](const std::string& label, const StreamMeasures& stream) {
    for (std::size_t i = 0; i < kSlotStates.size(); ++i) {
      out.Add(stream.slots[i], {label, kSlotStates[i]});
    }
  });
}

void WriteStages(const Scene& scene, Series& out) {
  EachStream(scene, [&](const std::string& label, const StreamMeasures& stream) {
    for (const Stage& stage : kStreamStages) {
      out.Add(1e-6 * static_cast<double>(stream.stages.*stage.us), {label, stage.name});
    }
  });
}

/// Calls `write` with the label and figures of every team.
template <typename Write>
void EachTeam(const Scene& scene, const Write& write) {
  TeamMeasures other;
  std::size_t shown = 0;
  for (const auto& [name, team] : scene.cluster.teams) {
    if (shown++ < kMostTeams) {
      write(name, team);
      continue;
    }
    other.held_cpu_millis += team.held_cpu_millis;
    other.wanted_cpu_millis += team.wanted_cpu_millis;
    other.lending.guaranteed_millis += team.lending.guaranteed_millis;
    other.lending.lent_millis += team.lending.lent_millis;
    other.lending.borrowed_millis += team.lending.borrowed_millis;
    other.lending.reclaims += team.lending.reclaims;
    for (const auto& [cause, jobs] : team.waiting) other.waiting[cause] += jobs;
  }
  if (shown > kMostTeams) write("other", other);
}

void WriteTeamCores(const Scene& scene, Series& out) {
  EachTeam(scene, [&](const std::string& label, const TeamMeasures& team) {
    out.Add(1e-3 * static_cast<double>(team.held_cpu_millis), {label, "held"});
    out.Add(1e-3 * static_cast<double>(team.wanted_cpu_millis), {label, "wanted"});
    out.Add(1e-3 * static_cast<double>(team.lending.guaranteed_millis), {label, "guaranteed"});
    out.Add(1e-3 * static_cast<double>(team.lending.lent_millis), {label, "lent"});
    out.Add(1e-3 * static_cast<double>(team.lending.borrowed_millis), {label, "borrowed"});
  });
}

void WriteWaiting(const Scene& scene, Series& out) {
  EachTeam(scene, [&](const std::string& label, const TeamMeasures& team) {
    for (const auto& [cause, jobs] : team.waiting) out.Add(jobs, {label, cause});
  });
}

void WriteDelivered(const Scene& scene, Series& out) {
  out.Add(scene.cluster.delivered.mapped, {"mapped"});
  out.Add(scene.cluster.delivered.tls, {"tls"});
  out.Add(scene.cluster.delivered.ucx, {"ucx"});
}

void WriteNodeStates(const Scene& scene, Series& out) {
  for (const std::string_view state : kNodeStates) {
    out.Add(std::count_if(scene.cluster.nodes.begin(), scene.cluster.nodes.end(),
                          [&](const NodeMeasures& node) { return node.state == state; }),
            {state});
  }
}

template <typename Value>
void EachNode(const Scene& scene, Series& out, const Value& value) {
  const std::size_t shown = std::min(scene.cluster.nodes.size(), kMaxNodes);
  for (std::size_t i = 0; i < shown; ++i) {
    const NodeMeasures& node = scene.cluster.nodes[i];
    out.Add(value(node), {node.node});
  }
}

template <typename Value>
void WriteUsage(const Scene& scene, Series& out, const Value& value) {
  out.Add(value(scene.cluster.usage.counted), {"counted"});
  out.Add(value(scene.cluster.usage.wasted), {"wasted"});
}

using enum MetricType;
using protocol::WorkCost;

const Metric kMetrics[] = {
    {"patchbay_scheduler_build_info", Gauge, "", "version", "1; the label names the version",
     [](const Scene&, Series& out) { out.Add(1, {PATCHBAY_VERSION}); }},
    {"patchbay_scheduler_clock_seconds", Gauge, "seconds", "",
     "time since 1970 by the clock of the scheduler, read once a second",
     [](const Scene& scene, Series& out) { out.Add(scene.sample.clock_seconds); }},
    {"patchbay_scheduler_memory_bytes", Gauge, "bytes", "", "resident memory of the scheduler",
     [](const Scene& scene, Series& out) { out.Add(scene.sample.memory_bytes); }},
    {"patchbay_scheduler_state_free_bytes", Gauge, "bytes", "", "free space where the journal is",
     [](const Scene& scene, Series& out) { out.Add(scene.sample.state_free_bytes); }},
    {"patchbay_scheduler_journal_waiting_records", Gauge, "records", "",
     "records that are not on disk yet; answers wait for them",
     [](const Scene& scene, Series& out) { out.Add(scene.cluster.gauges.undurable_records); }},
    {"patchbay_scheduler_journal_waiting_bytes", Gauge, "bytes", "",
     "bytes of records that are not written yet",
     [](const Scene& scene, Series& out) { out.Add(scene.sample.journal_bytes); }},
    {"patchbay_scheduler_turn_seconds", Histogram, "seconds", "",
     "time that the core took for one message, tick or report of the journal",
     [](const Scene& scene, Series& out) { out.Add(scene.sample.turns); }},
    {"patchbay_scheduler_jobs", Gauge, "jobs", "state",
     "jobs that are known: queued, running, done, failed, partly_failed, cancelled",
     [](const Scene& scene, Series& out) {
       for (std::size_t i = 0; i < kJobStates.size(); ++i) {
         out.Add(scene.cluster.jobs[i], {kJobStates[i]});
       }
     }},
    {"patchbay_scheduler_jobs_folded", Gauge, "jobs", "",
     "open jobs whose figures are summed up under job=other",
     [](const Scene& scene, Series& out) { out.Add(scene.folded); }},
    {"patchbay_scheduler_tasks_ready", Gauge, "tasks", "", "tasks that wait for a worker alone",
     [](const Scene& scene, Series& out) { out.Add(scene.cluster.gauges.tasks_ready); }},
    {"patchbay_scheduler_tasks_committed_total", Counter, "tasks", "", "tasks that are done",
     [](const Scene& scene, Series& out) { out.Add(scene.cluster.gauges.tasks_committed); }},
    {"patchbay_scheduler_tasks_failed_total", Counter, "tasks", "",
     "tasks that failed for good: an ingest has one for each slide that failed",
     [](const Scene& scene, Series& out) { out.Add(scene.cluster.tasks_failed); }},
    {"patchbay_scheduler_slides_total", Counter, "slides", "outcome",
     "slides and volumes of ingests and other batch jobs that are done, and that failed",
     [](const Scene& scene, Series& out) {
       out.Add(scene.cluster.groups_done, {"done"});
       out.Add(scene.cluster.groups_failed, {"failed"});
     }},
    {"patchbay_scheduler_task_retries_total", Counter, "tasks", "",
     "attempts of tasks that failed and are tried again",
     [](const Scene& scene, Series& out) { out.Add(scene.cluster.task_retries); }},
    {"patchbay_scheduler_tasks_returned_total", Counter, "tasks", "",
     "tasks that were taken back from a lent core after reclaim_after, and start over",
     [](const Scene& scene, Series& out) { out.Add(scene.cluster.tasks_returned); }},
    {"patchbay_scheduler_leases", Gauge, "leases", "", "leases of tasks and shards that are held",
     [](const Scene& scene, Series& out) { out.Add(scene.cluster.gauges.leases); }},
    {"patchbay_scheduler_leases_granted_total", Counter, "leases", "", "leases that were granted",
     [](const Scene& scene, Series& out) { out.Add(scene.cluster.leases_granted); }},
    {"patchbay_scheduler_leases_expired_total", Counter, "leases", "",
     "leases whose worker showed no progress in time",
     [](const Scene& scene, Series& out) { out.Add(scene.cluster.gauges.leases_expired); }},
    {"patchbay_scheduler_stale_reports_total", Counter, "reports", "",
     "reports on tasks whose lease was no longer held",
     [](const Scene& scene, Series& out) { out.Add(scene.cluster.gauges.stale_reports); }},
    {"patchbay_scheduler_shards_counted_total", Counter, "shards", "",
     "shards that a trainer counted",
     [](const Scene& scene, Series& out) { out.Add(scene.cluster.gauges.shards_counted); }},
    {"patchbay_scheduler_shard_fences_total", Counter, "shards", "",
     "leases of shards that were voided at the trainer",
     [](const Scene& scene, Series& out) { out.Add(scene.cluster.shard_fences); }},
    {"patchbay_scheduler_streams", Gauge, "streams", "", "streams that are open",
     [](const Scene& scene, Series& out) { out.Add(scene.cluster.gauges.streams); }},
    {"patchbay_scheduler_workers", Gauge, "workers", "",
     "places of workers, with or without a process",
     [](const Scene& scene, Series& out) { out.Add(scene.cluster.gauges.workers); }},
    {"patchbay_scheduler_nodes", Gauge, "nodes", "state",
     "nodes that are up, suspect (silent), draining, drained, away",
     [](const Scene& scene, Series& out) { WriteNodeStates(scene, out); }},
    {"patchbay_scheduler_cpu_seconds_total", Counter, "seconds", "outcome",
     "processor time of work that counted, and that was wasted",
     [](const Scene& scene, Series& out) {
       WriteUsage(scene, out,
                  [](const WorkCost& cost) { return 1e-6 * static_cast<double>(cost.cpu_us); });
     }},
    {"patchbay_scheduler_gpu_seconds_total", Counter, "seconds", "outcome",
     "time of GPUs, likewise",
     [](const Scene& scene, Series& out) {
       WriteUsage(scene, out,
                  [](const WorkCost& cost) { return 1e-6 * static_cast<double>(cost.gpu_us); });
     }},
    {"patchbay_scheduler_read_bytes_total", Counter, "bytes", "outcome",
     "bytes that workers read, likewise",
     [](const Scene& scene, Series& out) {
       WriteUsage(scene, out, [](const WorkCost& cost) { return cost.bytes_read; });
     }},
    {"patchbay_scheduler_delivered_bytes_total", Counter, "bytes", "outcome",
     "bytes that workers delivered to trainers, likewise",
     [](const Scene& scene, Series& out) {
       WriteUsage(scene, out, [](const WorkCost& cost) { return cost.bytes_delivered; });
     }},
    {"patchbay_scheduler_path_bytes_total", Counter, "bytes", "path",
     "bytes that reached trainers in mapped memory, by tls, by ucx",
     [](const Scene& scene, Series& out) { WriteDelivered(scene, out); }},
    {"patchbay_scheduler_team_cores", Gauge, "cores", "team state",
     "cores of a team: held by its open jobs, wanted, guaranteed; lent: of its guarantee, to "
     "others; "
     "borrowed: of others' guarantees",
     [](const Scene& scene, Series& out) { WriteTeamCores(scene, out); }},
    {"patchbay_scheduler_team_reclaims_total", Counter, "cores", "team",
     "cores of its guarantee that a team waited for while others had them, and has back",
     [](const Scene& scene, Series& out) {
       EachTeam(scene, [&](const std::string& label, const TeamMeasures& team) {
         out.Add(team.lending.reclaims, {label});
       });
     }},
    {"patchbay_scheduler_reclaim_seconds", Histogram, "seconds", "",
     "waits for these cores, each from the begin of the team's wait",
     [](const Scene& scene, Series& out) { out.Add(scene.cluster.reclaim_times); }},
    {"patchbay_scheduler_team_jobs_waiting", Gauge, "jobs", "team cause",
     "jobs of a team that wait, by the cause that patchbay why says",
     [](const Scene& scene, Series& out) { WriteWaiting(scene, out); }},
    {"patchbay_scheduler_job_tasks", Gauge, "tasks", "job state",
     "tasks of an open job that are waiting, running, done, failed",
     [](const Scene& scene, Series& out) { WriteJobTasks(scene, out); }},
    {"patchbay_scheduler_job_progress_ratio", Gauge, "", "job",
     "share of an open job that is done, 0 to 1; not of streams",
     [](const Scene& scene, Series& out) { WriteProgress(scene, out); }},
    {"patchbay_scheduler_job_held_cores", Gauge, "cores", "job", "cores that work for an open job",
     [](const Scene& scene, Series& out) {
       EachJob(scene, [&](const std::string& label, const JobMeasures& job) {
         out.Add(1e-3 * job.held_cpu_millis, {label});
       });
     }},
    {"patchbay_scheduler_job_wanted_cores", Gauge, "cores", "job",
     "cores that would work for it if there were enough",
     [](const Scene& scene, Series& out) {
       EachJob(scene, [&](const std::string& label, const JobMeasures& job) {
         out.Add(1e-3 * job.wanted_cpu_millis, {label});
       });
     }},
    {"patchbay_scheduler_stream_patches_total", Counter, "patches", "job",
     "patches of an open stream that were made",
     [](const Scene& scene, Series& out) {
       EachStream(scene, [&](const std::string& label, const StreamMeasures& stream) {
         out.Add(stream.patches_made, {label});
       });
     }},
    {"patchbay_scheduler_stream_stalled_seconds_total", Counter, "seconds", "job",
     "time in which a trainer of the stream had no full slot to take next",
     [](const Scene& scene, Series& out) {
       EachStream(scene, [&](const std::string& label, const StreamMeasures& stream) {
         out.Add(1e-3 * static_cast<double>(stream.stalled_ms), {label});
       });
     }},
    {"patchbay_scheduler_stream_stage_seconds_total", Counter, "seconds", "job stage",
     "time of workers in storage, decode, transform, transfer of an open stream",
     [](const Scene& scene, Series& out) { WriteStages(scene, out); }},
    {"patchbay_scheduler_stream_wait_p50_seconds", Gauge, "seconds", "job",
     "median of a trainer's waits for a batch, of the trainer that waits longest",
     [](const Scene& scene, Series& out) {
       EachStream(scene, [&](const std::string& label, const StreamMeasures& stream) {
         out.Add(1e-6 * static_cast<double>(stream.wait_p50_us), {label});
       });
     }},
    {"patchbay_scheduler_stream_wait_p99_seconds", Gauge, "seconds", "job",
     "wait that 99 of 100 batches do not exceed, likewise",
     [](const Scene& scene, Series& out) {
       EachStream(scene, [&](const std::string& label, const StreamMeasures& stream) {
         out.Add(1e-6 * static_cast<double>(stream.wait_p99_us), {label});
       });
     }},
    {"patchbay_scheduler_stream_trainers", Gauge, "trainers", "job",
     "trainers that are attached and heard",
     [](const Scene& scene, Series& out) {
       EachStream(scene, [&](const std::string& label, const StreamMeasures& stream) {
         out.Add(stream.trainers, {label});
       });
     }},
    {"patchbay_scheduler_stream_memory_bytes", Gauge, "bytes", "job",
     "resident memory of the processes of its trainers",
     [](const Scene& scene, Series& out) {
       EachStream(scene, [&](const std::string& label, const StreamMeasures& stream) {
         out.Add(stream.memory_bytes, {label});
       });
     }},
    {"patchbay_scheduler_stream_slots", Gauge, "slots", "job state",
     "slots of its trainers that are free, filling, full, resting",
     [](const Scene& scene, Series& out) { WriteSlots(scene, out); }},
    {"patchbay_scheduler_node_up", Gauge, "", "node",
     "0: the node is silent, or waited for; else 1",
     [](const Scene& scene, Series& out) {
       EachNode(scene, out, [](const NodeMeasures& node) {
         return node.state != "suspect" && node.state != "away";
       });
     }},
    {"patchbay_scheduler_node_cores", Gauge, "cores", "node", "cores that the node offers",
     [](const Scene& scene, Series& out) {
       EachNode(scene, out, [](const NodeMeasures& node) { return node.cpus; });
     }},
    {"patchbay_scheduler_node_workers", Gauge, "workers", "node", "processes of workers on it",
     [](const Scene& scene, Series& out) {
       EachNode(scene, out, [](const NodeMeasures& node) { return node.workers; });
     }},
    {"patchbay_scheduler_node_busy_workers", Gauge, "workers", "node",
     "workers on it that hold a lease",
     [](const Scene& scene, Series& out) {
       EachNode(scene, out, [](const NodeMeasures& node) { return node.busy; });
     }},
    {"patchbay_scheduler_node_memory_bytes", Gauge, "bytes", "node",
     "resident memory of the workers on it; slots that several map count for each",
     [](const Scene& scene, Series& out) {
       EachNode(scene, out, [](const NodeMeasures& node) { return node.memory_bytes; });
     }},
};

}  // namespace

std::string Render(const Sample& sample) {
  const Scene scene(sample);
  std::vector<prometheus::MetricFamily> families;
  for (const Metric& metric : kMetrics) {
    Series series(metric);
    metric.write(scene, series);
    families.push_back(series.Take());
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace patchbay::scheduler
