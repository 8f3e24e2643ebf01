// The cluster that a program connects to: a named one, the one that runs on this machine, or an
// embedded one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/client/client.h"
#include "runtime/client/embedded_cluster.h"
#include "runtime/client/environment.h"
#include "runtime/core/status.h"

namespace patchbay::client {

struct ClusterOptions {
  Environment environment;
  std::string key_file;  ///< names the cluster; "" = the environment's
  /// Whether to start an embedded cluster where the environment names none and none runs here.
  bool may_start = false;
  std::optional<std::int64_t> cpus;  ///< CPU workers of one that is started; unset = usable cores
  std::string gpus = "auto";         ///< GPUs of one that is started: auto, none or UUIDs
  std::string share;                 ///< EmbeddedOptions::share
  std::string programs;              ///< EmbeddedOptions::programs
  /// Waits end with Cancelled once it returns false; may be empty.
  std::function<bool()> keep_waiting;
};

class Cluster {
 public:
  /// The key file, or PATCHBAY_CLUSTER; else the cluster that `patchbay up` runs from this
  /// PATCHBAY_HOME, once it is ready; else, where it may, an embedded one; else FailedPrecondition.
  static StatusOr<Cluster> Open(const ClusterOptions& options);

  Client& client() { return *client_; }
  /// Path of the key file, for callers that connect by themselves.
  const std::string& key_file() const { return key_file_; }
  bool embedded() const { return embedded_ != nullptr; }
  /// Not OK once an embedded cluster has ended by itself, so that waiting is of no use.
  Status Alive() const { return embedded() ? embedded_->Alive() : absl::OkStatus(); }
  /// The reason behind `status`: the end of the cluster, if that came.
  Status Explain(const Status& status) const;

 private:
  std::unique_ptr<EmbeddedCluster> embedded_;  ///< outlives client_
  std::string key_file_;
  std::unique_ptr<Client> client_;
};

/// The key files that `patchbay up` makes in its home: for its own node, and for the user who ran
/// it, whose key has this name too.
inline constexpr char kNodeKeyFile[] = "node", kOperatorKeyName[] = "operator";
/// The key name of the node that `up` runs: from its key file, else the host name; "node" where
/// that is not a valid key name.
std::string NodeKeyName(const Environment& environment);
/// The key file of the user who ran `patchbay up`.
std::string OperatorKeyPath(const Environment& environment);
/// The numerics of jobs that name none: "cuda" when the cluster has GPU workers, else "cpu".
StatusOr<std::string> ClusterNumerics(Client& client);
/// Refuses numerics cuda on a cluster without GPU workers before images are read: the job would
/// wait for one. The message begins with `job`.
Status CheckGpuWorkers(Client& client, std::string_view job);

}  // namespace patchbay::client
