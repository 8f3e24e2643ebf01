// The shared part of `up` and `join`: their arguments, and running a node until it is stopped.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "runtime/cli/command.h"
#include "runtime/client/node_settings.h"
#include "runtime/core/status.h"
#include "runtime/os/file.h"

namespace patchbay::cli {

using client::NodeSettings;
using client::SchedulerSettings;

/// A running supervisor. If this process dies, so do all of its.
class NodeProcesses {
 public:
  /// Starts the node and waits until every program is ready. Unavailable when one cannot start (the
  /// reason is on stderr or in the log), Aborted when a signal stopped its processes, Cancelled
  /// when `keep_waiting` returns false; no process is left then.
  static StatusOr<NodeProcesses> Start(const NodeSettings& settings,
                                       const std::function<bool()>& keep_waiting);
  NodeProcesses(NodeProcesses&& other) noexcept;
  NodeProcesses& operator=(NodeProcesses&&) = delete;
  /// Stop(0) unless it has ended.
  ~NodeProcesses();

  pid_t pid() const { return pid_; }
  /// The scheduler's address, with its actual port; "" on a further node.
  const std::string& address() const { return address_; }

  /// Looks whether the supervisor has ended; its exit code then. One that a signal keeps stopped
  /// for 10 s of looks is killed: nothing watches the node without it.
  std::optional<int> PollExit();
  /// Asks for an orderly stop, after `kill_after_ms` kills; returns when all is gone. A supervisor
  /// that does not even do that is killed, and the rest dies by itself.
  void Stop(long kill_after_ms);

 private:
  NodeProcesses() = default;
  pid_t pid_ = -1;
  std::string address_;
  int stopped_looks_ = 0;  ///< since the supervisor was stopped; 0 = it is not
};

struct NodeArguments {
  std::optional<std::int64_t> cpus;
  std::string gpus = "auto";
  std::string memory;
  std::string state;
  std::string data_policy;
  std::optional<std::int64_t> grace_s;

  std::vector<Argument> Arguments();
  /// The settings of a node with an agent of the cluster at `address`, and its site's rights of
  /// files.
  StatusOr<NodeSettings> Settings(const client::Environment& environment,
                                  const std::string& agent_state, const std::string& key,
                                  const std::string& address) const;
};

/// Starts the node, calls `ready`, and waits until it ends or the command is interrupted; then
/// stops it in order: kStopped for a further node, kDone for a first one. Needs an InterruptScope.
StatusOr<ExitCode> RunNode(Session& session, const NodeSettings& settings,
                           const std::function<void(const NodeProcesses&)>& ready);

}  // namespace patchbay::cli
