// The cluster a command talks to: the one it was given, the one that runs on this machine, or one
// of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/status.h"
#include "runtime/cli/command.h"
#include "runtime/cli/embedded_cluster.h"
#include "runtime/client/client.h"

namespace patchbay::cli {

/// Arguments of commands that may start a cluster of their own.
struct OwnClusterArguments {
  std::optional<std::int64_t> cpus;
  std::string gpus = "auto";

  void AddTo(std::vector<Argument>& arguments);
};

class ClusterAccess {
 public:
  /// --cluster or PATCHBAY_CLUSTER; else the cluster that `patchbay up` runs from this
  /// PATCHBAY_HOME, once it is ready; else, with `own`, an embedded one; else FailedPrecondition.
  /// Call it under an InterruptScope.
  static StatusOr<ClusterAccess> Open(const Session& session, const OwnClusterArguments* own);

  client::Client& client() { return *client_; }
  /// Path of the key file, for those who connect by themselves.
  const std::string& key_file() const { return key_file_; }
  bool embedded() const { return embedded_ != nullptr; }
  /// Not OK once an embedded cluster has ended by itself: nothing that is waited for will come.
  Status Alive() { return embedded() ? embedded_->Alive() : absl::OkStatus(); }
  /// The reason behind `status`: the end of the cluster, if that came.
  Status Explain(const Status& status);

 private:
  std::unique_ptr<EmbeddedCluster> embedded_;  ///< outlives client_
  std::string key_file_;
  std::unique_ptr<client::Client> client_;
};

/// The keys that `patchbay up` makes for its own node and for the user who ran it.
inline constexpr char kNodeKeyName[] = "node", kOperatorKeyName[] = "operator";
/// The key file of the user who ran `patchbay up`.
std::string OperatorKeyPath(const Environment& environment);
/// "cuda" when the cluster has GPU workers, else "cpu": what a job that names no numerics gets.
StatusOr<std::string> ClusterNumerics(client::Client& client);

}  // namespace patchbay::cli
