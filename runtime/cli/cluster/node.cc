// patchbay node list|drain|resume: nodes, and which of them get no work.
#include <algorithm>

#include "runtime/cli/cluster/node_view.h"
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

using protocol::NodeChange;

/// A node offers one core per GPU in addition to those of its CPU workers.
std::uint64_t CpuWorkers(const protocol::NodeRow& node) {
  return node.cpus - std::min<std::uint64_t>(node.cpus, node.gpus.size());
}

class NodeListCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override { return {}; }

  StatusOr<ExitCode> Run(Session& session) override {
    PB_ASSIGN_OR_RETURN(client::Cluster cluster, OpenCluster(session, nullptr));
    PB_ASSIGN_OR_RETURN(const protocol::ClusterDescribed state, cluster.client().DescribeCluster());
    for (const std::string& line : NodeTable(state.nodes)) session.terminal.Say(line);
    session.terminal.Result({{"nodes", NodesToJson(state.nodes)}});
    return ExitCode::kDone;
  }
};

class NodeChangeCommand final : public Command {
 public:
  explicit NodeChangeCommand(NodeChange change) : change_(change) {}

  std::vector<Argument> Arguments() override {
    std::vector<Argument> arguments = {{"NODE", "", "name of the node", &node_, true}};
    if (change_ == NodeChange::kDrain) {
      arguments.push_back({"--reason", "TEXT", "why, for other people", &reason_});
    }
    return arguments;
  }

  StatusOr<ExitCode> Run(Session& session) override {
    PB_ASSIGN_OR_RETURN(client::Cluster cluster, OpenCluster(session, nullptr));
    PB_RETURN_IF_ERROR(cluster.client().ChangeNode({node_, change_, reason_}));
    const bool drained = change_ == NodeChange::kDrain;
    session.terminal.Say(StrCat("node ", node_, drained ? " gets no more work" : " gets work"));
    session.terminal.Result({{"node", node_}, {"drained", drained}});
    return ExitCode::kDone;
  }

 private:
  const NodeChange change_;
  std::string node_, reason_;
};

}  // namespace

Json NodesToJson(const std::vector<protocol::NodeRow>& nodes) {
  Json list = Json::array();
  for (const protocol::NodeRow& node : nodes) {
    Json gpus = Json::array();
    for (const protocol::Gpu& gpu : node.gpus) gpus.push_back(gpu.name);
    Json row = {
        {"name", node.node}, {"cpus", CpuWorkers(node)}, {"gpus", gpus}, {"state", node.state}};
    if (!node.drained_by.empty()) {
      row["drained_by"] = node.drained_by;
      row["reason"] = node.drain_reason;
    }
    list.push_back(std::move(row));
  }
  return list;
}

std::vector<std::string> NodeTable(const std::vector<protocol::NodeRow>& nodes) {
  std::vector<std::vector<std::string>> rows = {{"node", "state", "cpus", "gpus", "workers"}};
  const bool any_drained = std::any_of(nodes.begin(), nodes.end(),
                                       [](const auto& node) { return !node.drained_by.empty(); });
  if (any_drained) rows[0].insert(rows[0].end(), {"drained by", "reason"});
  for (const protocol::NodeRow& node : nodes) {
    rows.push_back({node.node, node.state, StrCat(CpuWorkers(node)), StrCat(node.gpus.size()),
                    StrCat(node.workers)});
    if (any_drained) {
      rows.back().push_back(node.drained_by.empty() ? "-" : node.drained_by);
      rows.back().push_back(node.drain_reason);
    }
  }
  return FormatTable(rows);
}

std::unique_ptr<Command> MakeNodeList() { return std::make_unique<NodeListCommand>(); }
std::unique_ptr<Command> MakeNodeDrain() {
  return std::make_unique<NodeChangeCommand>(NodeChange::kDrain);
}
std::unique_ptr<Command> MakeNodeResume() {
  return std::make_unique<NodeChangeCommand>(NodeChange::kResume);
}

}  // namespace patchbay::cli
