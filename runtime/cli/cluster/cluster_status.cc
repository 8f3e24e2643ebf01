// patchbay status: nodes, workers and jobs of the clusters here, and peers that they turned away.
#include "runtime/cli/cluster/node_view.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/jobs/failed_sources.h"
#include "runtime/cli/jobs/job_view.h"
#include "runtime/cli/seen_clusters.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/wire/protocol/message_fields.h"

namespace patchbay::cli {
namespace {

constexpr JobId kScheduler = 0;  ///< in place of a job: peers refused at the scheduler's own port

Json DroppedToJson(const protocol::PeersDropped& trainer,
                   const protocol::PeersDropped::Item& peer) {
  const bool own = trainer.stream == kScheduler;
  Json row = JsonOf(peer);
  row["job"] = own ? Json() : Json(trainer.stream);
  row["rank"] = own ? Json() : Json(trainer.rank);
  return row;
}

/// Prints nothing when no peer was refused.
void SayDropped(Terminal& terminal, const std::vector<protocol::PeersDropped>& trainers) {
  std::vector<std::vector<std::string>> rows = {{"dropped peer", "job", "rank", "times", "reason"}};
  for (const protocol::PeersDropped& trainer : trainers) {
    for (const auto& peer : trainer.items) {
      const bool own = trainer.stream == kScheduler;
      rows.push_back({peer.address, own ? "-" : StrCat(trainer.stream),
                      own ? "-" : StrCat(trainer.rank), StrCat(peer.times), peer.reason});
    }
  }
  if (rows.size() == 1) return;
  terminal.Say("");
  for (const std::string& line : FormatTable(rows)) terminal.Say(line);
}

void SayCluster(Terminal& terminal, const protocol::ClusterDescribed& cluster) {
  std::vector<std::vector<std::string>> workers = {
      {"worker", "state", "pid", "leases", "tasks", "shards"}};
  for (const protocol::WorkerRow& worker : cluster.workers) {
    workers.push_back({StrCat(worker.node, "/", worker.index), worker.state, StrCat(worker.pid),
                       StrCat(worker.leases), StrCat(worker.tasks_done),
                       StrCat(worker.shards_done)});
  }
  for (const std::string& line : NodeTable(cluster.nodes)) terminal.Say(line);
  terminal.Say("");
  for (const std::string& line : FormatTable(workers)) terminal.Say(line);
  terminal.Say("");
  for (const std::string& line : JobTable(cluster.jobs)) terminal.Say(line);
  for (const protocol::JobRow& job : cluster.jobs) {
    if (!job.waits_for.empty()) terminal.Say(StrCat("job ", job.job, " waits for ", job.waits_for));
  }
  SayDropped(terminal, cluster.peers_dropped);
}

class StatusCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override { return {}; }

  StatusOr<ExitCode> Run(Session& session) override {
    Json result = ClusterToJson({}), embedded = Json::array();
    PB_RETURN_IF_ERROR(
        LookAtClusters(session, [&](client::Client& client, const std::string& key_file) -> Status {
          PB_ASSIGN_OR_RETURN(const protocol::ClusterDescribed state, client.DescribeCluster());
          SayEmbedded(session.terminal, key_file);
          SayCluster(session.terminal, state);
          AddCluster(ClusterToJson(state), key_file, result, embedded);
          return absl::OkStatus();
        }));
    result["embedded"] = embedded;
    session.terminal.Result(result);
    return ExitCode::kDone;
  }
};

}  // namespace

Json ClusterToJson(const protocol::ClusterDescribed& cluster) {
  Json jobs = Json::array(), dropped = Json::array();
  for (const protocol::JobRow& job : cluster.jobs) jobs.push_back(JobToJson(job));
  for (const protocol::PeersDropped& trainer : cluster.peers_dropped) {
    for (const auto& peer : trainer.items) dropped.push_back(DroppedToJson(trainer, peer));
  }
  Json failures = Json::array();
  for (const auto& failure : cluster.failures) {
    Json row = ReasonToJson(failure.outcome);
    row["job"] = failure.job;
    row["at"] = failure.at;
    row["did"] = failure.text;
    failures.push_back(std::move(row));
  }
  return {{"nodes", NodesToJson(cluster.nodes)},
          {"workers", JsonOf(cluster.workers)},
          {"jobs", jobs},
          {"dropped_peers", dropped},
          {"failures", failures},
          {"state_free_bytes", cluster.state_free_bytes}};
}

std::unique_ptr<Command> MakeStatus() { return std::make_unique<StatusCommand>(); }

}  // namespace patchbay::cli
