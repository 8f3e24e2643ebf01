// The core's figures for operators, out of its tables.
#include "scheduler/core/parts.h"
#include "scheduler/state/measures.h"

namespace patchbay::scheduler {
namespace {

StreamMeasures MeasuresOf(const Stream& stream) {
  StreamMeasures measures{stream.job, stream.patches_made, stream.stalled_ms};
  for (const auto& [rank, trainer] : stream.trainers) {
    measures.trainers += trainer.state == TrainerState::kAttached ? 1 : 0;
    for (const auto& [number, slot] : trainer.slots) {
      ++measures.slots[static_cast<std::size_t>(slot.state)];
    }
    measures.wait_p50_us = std::max(measures.wait_p50_us, trainer.heard.wait_p50_us);
    measures.wait_p99_us = std::max(measures.wait_p99_us, trainer.heard.wait_p99_us);
    measures.memory_bytes +=
        trainer.state == TrainerState::kForgotten ? 0 : trainer.heard.memory_bytes;
  }
  measures.stages = stream.past.stages();
  return measures;
}

JobMeasures MeasuresOf(const Job& job, const CoreShares::Share& share) {
  JobMeasures measures;
  measures.job = job.id;
  measures.tasks_done = job.tasks_done;
  measures.tasks_failed = job.tasks_failed;
  measures.tasks_running = job.tasks_running;
  measures.tasks_waiting = job.OpenTasks() - job.tasks_running;
  if (!job.IsStream()) {  // a stream's tasks only plan it
    measures.weight_done = job.weight_done;
    measures.weight_total = job.weight_total;
  }
  measures.held_cpu_millis = share.held;
  measures.wanted_cpu_millis = share.wanted;
  return measures;
}

}  // namespace

ClusterMeasures Core::Measure() { return parts_->Measure(); }

ClusterMeasures Core::Parts::Measure() {
  ClusterMeasures measures;
  measures.gauges = Gauges();
  measures.leases_granted = book.LastNumber().counter;
  measures.tasks_failed = batch.counts().failed;
  measures.task_retries = batch.counts().retried;
  measures.tasks_returned = batch.counts().returned;
  measures.groups_done = batch.counts().groups_done;
  measures.groups_failed = batch.counts().groups_failed;
  measures.shard_fences = shards.fences();
  measures.delivered = shards.delivered();
  measures.usage = barrier.table().usage().taken();
  measures.reclaim_times = fair.reclaim_times();
  for (const auto& [name, lending] : fair.Lending()) measures.teams[name].lending = lending;
  for (const auto& [id, job] : barrier.table().jobs()) {
    ++measures.jobs[static_cast<std::size_t>(job.state)];
    if (IsEnded(job.state)) continue;
    const CoreShares::Share share = shares.Of(job, streams.Find(id));
    measures.open_jobs.push_back(MeasuresOf(job, share));
    TeamMeasures& team = measures.teams[job.team.empty() ? model::kDefaultTeam : job.team];
    team.held_cpu_millis += share.held;
    team.wanted_cpu_millis += share.wanted;
    if (measures.open_jobs.size() > kMaxCausesAsked) {
      team.waiting["other"] += share.held == 0 ? 1 : 0;
    } else if (const auto cause = causes.Of(job); cause.has_value()) {
      ++team.waiting[cause->code];
    }
  }
  for (const auto& [id, stream] : streams.streams()) measures.streams.push_back(MeasuresOf(stream));
  for (const auto& [name, node] : worker_table.nodes()) {
    if (!node.registered) continue;
    NodeMeasures& row = measures.nodes.emplace_back(name, job_handler.StateOf(node), node.cpus);
    row.memory_bytes = node.memory_bytes;
    for (const auto& [index, id] : node.workers) {
      const Worker& worker = worker_table.at(id);
      row.workers += worker.state == WorkerState::kGone ? 0 : 1;
      row.busy += worker.tasks.empty() && worker.shards.empty() ? 0 : 1;
    }
  }
  for (const std::string& name : job_handler.AwayNodes()) measures.nodes.emplace_back(name, "away");
  return measures;
}

}  // namespace patchbay::scheduler
