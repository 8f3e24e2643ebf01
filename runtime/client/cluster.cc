#include "runtime/client/cluster.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <poll.h>
#include <unistd.h>

#include "runtime/client/up_lock.h"
#include "runtime/core/clock.h"
#include "runtime/core/strings.h"
#include "runtime/os/host_identity.h"
#include "runtime/os/usable_cores.h"
#include "runtime/wire/control/keys.h"

namespace patchbay::client {
namespace {

/// For `patchbay up` to be seen at all, when it was started in the line before.
constexpr TimeMs kSeenLimitMs = 1'000;
constexpr TimeMs kReadyLimitMs = 60'000;
constexpr int kClusterLookMs = 20;

/// Whether a cluster runs here. Waits for a cluster that is starting, and briefly for one to
/// appear.
StatusOr<bool> AwaitClusterHere(const ClusterOptions& options, TimeMs seen_limit_ms) {
  const SteadyClock clock;
  const TimeMs start = clock.NowMs();
  while (true) {
    const ClusterState state = ClusterHere(options.environment);
    if (state == ClusterState::kReady) return true;
    const TimeMs waited = clock.NowMs() - start;
    if (state == ClusterState::kNone && waited >= seen_limit_ms) return false;
    if (waited > kReadyLimitMs) {
      return DeadlineExceeded("find cluster: `patchbay up` runs here, but is not ready after ",
                              kReadyLimitMs / 1000, " s");
    }
    if (options.keep_waiting && !options.keep_waiting()) {
      return Cancelled("find cluster: interrupted");
    }
    poll(nullptr, 0, kClusterLookMs);
  }
}

/// For the key file of a cluster that runs here.
Status CheckIsThere(const std::string& key_file) {
  if (access(key_file.c_str(), F_OK) == 0) return absl::OkStatus();
  return FailedPrecondition(
      "find cluster: ", key_file,
      " is gone: end `patchbay up` with Ctrl-C and start it again, which makes another");
}

EmbeddedOptions EmbeddedOf(const ClusterOptions& options) {
  EmbeddedOptions embedded;
  embedded.temporary = options.environment.temporary;
  embedded.programs = options.programs;
  embedded.cpus = options.cpus.value_or(UsableCores());
  embedded.gpus = options.gpus;
  embedded.python = options.environment.python;
  embedded.share = options.share;
  embedded.keep_waiting = options.keep_waiting;
  return embedded;
}

}  // namespace

std::string NodeKeyName(const Environment& environment) {
  const auto key = control::ReadKeyFile(StrCat(environment.home, "/", kNodeKeyFile, ".key"));
  if (key.ok()) return key->name;
  std::string host = HostName();
  const bool is_good = control::CheckKeyName(host).ok() && host != kOperatorKeyName;
  return is_good ? host : kNodeKeyFile;
}

std::string OperatorKeyPath(const Environment& environment) {
  return StrCat(environment.home, "/", kOperatorKeyName, ".key");
}

StatusOr<Cluster> Cluster::Open(const ClusterOptions& options) {
  Cluster cluster;
  cluster.key_file_ =
      options.key_file.empty() ? options.environment.cluster_file : options.key_file;
  bool here = false;
  if (cluster.key_file_.empty()) {
    PB_ASSIGN_OR_RETURN(here,
                        AwaitClusterHere(options, options.may_start ? TimeMs{0} : kSeenLimitMs));
  }
  if (here) {
    cluster.key_file_ = OperatorKeyPath(options.environment);
    PB_RETURN_IF_ERROR(CheckIsThere(cluster.key_file_));
  } else if (cluster.key_file_.empty() && options.may_start) {
    PB_ASSIGN_OR_RETURN(cluster.embedded_, EmbeddedCluster::Start(EmbeddedOf(options)));
    cluster.key_file_ = cluster.embedded_->key_file();
  } else if (cluster.key_file_.empty()) {
    return FailedPrecondition(
        "no cluster is running here: start one with `patchbay up`, or name one with --cluster");
  }
  const auto keep_waiting = [embedded = cluster.embedded_.get(), ask = options.keep_waiting] {
    return (embedded == nullptr || embedded->Alive().ok()) && (!ask || ask());
  };
  if (!here && !cluster.embedded() && access(cluster.key_file_.c_str(), F_OK) != 0) {
    return FromErrno("find cluster", StrCat(cluster.key_file_, " (--cluster or PATCHBAY_CLUSTER)"),
                     errno);
  }
  PB_ASSIGN_OR_RETURN(Client client, Client::Connect(cluster.key_file_, keep_waiting));
  cluster.client_ = std::make_unique<Client>(std::move(client));
  return cluster;
}

Status Cluster::Explain(const Status& status) const {
  const Status alive = Alive();
  return status.ok() || alive.ok() ? status : alive;
}

StatusOr<std::string> ClusterNumerics(Client& client) {
  PB_ASSIGN_OR_RETURN(const protocol::ClusterDescribed cluster, client.DescribeCluster());
  for (const protocol::NodeRow& node : cluster.nodes) {
    if (!node.gpus.empty()) return std::string("cuda");
  }
  return std::string("cpu");
}

Status CheckGpuWorkers(Client& client, std::string_view job) {
  PB_ASSIGN_OR_RETURN(const protocol::ClusterDescribed cluster, client.DescribeCluster());
  const auto has_gpu = [](const protocol::NodeRow& node) { return !node.gpus.empty(); };
  // A scheduler that has just started may not know its nodes yet: it is left to it.
  if (cluster.nodes.empty() || std::any_of(cluster.nodes.begin(), cluster.nodes.end(), has_gpu)) {
    return absl::OkStatus();
  }
  return FailedPrecondition(
      job,
      ": numerics cuda: no node of the cluster has a GPU worker; run it where one has (patchbay "
      "doctor says what this machine offers), or ask for numerics cpu");
}

}  // namespace patchbay::client
