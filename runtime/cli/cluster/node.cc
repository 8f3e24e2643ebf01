// patchbay node list|drain|resume|label: nodes, which of them get no work, and marks of people.
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
      arguments.push_back({"--reason", "TEXT", "why, for other people", &text_});
    } else if (change_ == NodeChange::kLabel) {
      arguments.push_back(
          {"TEXT", "", "what people are to see with it; \"\" for nothing", &text_, true});
    }
    return arguments;
  }

  StatusOr<ExitCode> Run(Session& session) override {
    PB_ASSIGN_OR_RETURN(client::Cluster cluster, OpenCluster(session, nullptr));
    PB_RETURN_IF_ERROR(cluster.client().ChangeNode({node_, change_, text_}));
    if (change_ == NodeChange::kLabel) {
      session.terminal.Say(StrCat("node ", node_, ": ", text_.empty() ? "no label" : text_));
      session.terminal.Result({{"node", node_}, {"label", text_}});
      return ExitCode::kDone;
    }
    const bool drained = change_ == NodeChange::kDrain;
    session.terminal.Say(StrCat("node ", node_, drained ? " gets no more work" : " gets work"));
    session.terminal.Result({{"node", node_}, {"drained", drained}});
    return ExitCode::kDone;
  }

 private:
  const NodeChange change_;
  std::string node_, text_;
};

}  // namespace

Json NodesToJson(const std::vector<protocol::NodeRow>& nodes) {
  Json list = Json::array();
  for (const protocol::NodeRow& node : nodes) {
    Json gpus = Json::array();
    for (const protocol::Gpu& gpu : node.gpus) gpus.push_back(gpu.name);
    Json row = {
        {"name", node.node}, {"cpus", CpuWorkers(node)}, {"gpus", gpus}, {"state", node.state}};
    if (!node.label.empty()) row["label"] = node.label;
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
  const auto any = [&](const auto& text) {
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](const auto& node) { return !(node.*text).empty(); });
  };
  const bool any_label = any(&protocol::NodeRow::label);
  const bool any_drained = any(&protocol::NodeRow::drained_by);
  if (any_label) rows[0].push_back("label");
  if (any_drained) rows[0].insert(rows[0].end(), {"drained by", "reason"});
  for (const protocol::NodeRow& node : nodes) {
    rows.push_back({node.node, node.state, StrCat(CpuWorkers(node)), StrCat(node.gpus.size()),
                    StrCat(node.workers)});
    if (any_label) rows.back().push_back(node.label);
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
std::unique_ptr<Command> MakeNodeLabel() {
  return std::make_unique<NodeChangeCommand>(NodeChange::kLabel);
}

}  // namespace patchbay::cli
