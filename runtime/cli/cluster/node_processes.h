// The processes of a node as `patchbay up` and `join` start them: children of the command. See
// workers/agent/README.md.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "runtime/client/node_settings.h"
#include "runtime/core/status.h"
#include "runtime/os/file.h"

namespace patchbay::cli {

using client::NodeSettings;
using client::SchedulerSettings;

/// A running supervisor. If this process dies, so do all of its.
class NodeProcesses {
 public:
  /// Starts it and waits until every program is ready. Unavailable when one cannot start (it said
  /// why on stderr or in the log), Cancelled when `keep_waiting` says so; nothing is left then.
  static StatusOr<NodeProcesses> Start(const NodeSettings& settings,
                                       const std::function<bool()>& keep_waiting);
  NodeProcesses(NodeProcesses&& other) noexcept;
  NodeProcesses& operator=(NodeProcesses&&) = delete;
  /// Stop(0) unless it has ended.
  ~NodeProcesses();

  pid_t pid() const { return pid_; }
  /// Where the scheduler listens, with the port it got; "" on a further node.
  const std::string& address() const { return address_; }

  /// Looks whether the supervisor has ended; its exit code then.
  std::optional<int> PollExit();
  /// Asks for an orderly stop, after `kill_after_ms` kills; returns when all is gone. A supervisor
  /// that does not even do that is killed, and the rest dies by itself.
  void Stop(long kill_after_ms);
  /// SIGTERM, without waiting.
  void AskToStop();

 private:
  NodeProcesses() = default;
  pid_t pid_ = -1;
  std::string address_;
};

}  // namespace patchbay::cli
