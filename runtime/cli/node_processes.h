// The processes of a node as `patchbay up`, `join` and embedded clusters start them: a supervisor
// with an agent, and on the first node the scheduler. See workers/agent/README.md.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "runtime/base/file.h"
#include "runtime/base/status.h"
#include "runtime/data/network_policy.h"

namespace patchbay::cli {

/// The scheduler of a cluster's first node.
struct SchedulerSettings {
  std::string home;           ///< folder with server key and key table
  std::string state;          ///< folder of the journal
  std::string listen;         ///< control address
  bool allow_public = false;  ///< the user named it: it may be public or a wildcard
};

struct NodeSettings {
  std::optional<SchedulerSettings> scheduler;  ///< absent: a further node
  std::string node_key;                        ///< path of the agent's key file
  std::string state;                           ///< folder of the agent
  std::int64_t cpus = 1;                       ///< CPU workers
  std::string gpus = "auto";                   ///< auto | none | UUID,...
  data::Network network;                       ///< over which batches may come from here
  /// How long workers get to finish what they run at an orderly stop.
  long stop_ms = 30'000;
  /// Lines of the processes go here instead of the caller's stderr, when not empty.
  std::string log_file;
};

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
