#include "runtime/cli/cluster_access.h"

#include <functional>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/cli/machine_checks.h"

namespace patchbay::cli {

void OwnClusterArguments::AddTo(std::vector<Argument>& arguments) {
  Argument count{"--cpus", "N", "CPU workers of its own cluster (default: cores)", &cpus};
  count.min = 1;
  count.max = kMaxCpuWorkers;
  arguments.push_back(count);
  arguments.push_back({"--gpus", "LIST", "GPUs of its own cluster: auto, none or UUIDs", &gpus});
}

std::string UpLockPath(const Environment& environment) { return environment.home + "/up.lock"; }

std::string OperatorKeyPath(const Environment& environment) {
  return environment.home + "/operator.key";
}

bool ClusterRunsHere(const Environment& environment) {
  const UniqueFd lock(open(UpLockPath(environment).c_str(), O_RDONLY | O_CLOEXEC));
  return lock.valid() && flock(lock.get(), LOCK_SH | LOCK_NB) != 0;
}

StatusOr<ClusterAccess> ClusterAccess::Open(const Session& session,
                                            const OwnClusterArguments* own) {
  ClusterAccess access;
  if (!session.cluster_file.empty()) {
    access.key_file_ = session.cluster_file;
  } else if (ClusterRunsHere(session.environment)) {
    access.key_file_ = OperatorKeyPath(session.environment);
  } else if (own != nullptr) {
    const std::int64_t cpus = own->cpus.value_or(UsableCores());
    PB_ASSIGN_OR_RETURN(access.embedded_,
                        EmbeddedCluster::Start(session.environment, cpus, own->gpus));
    access.key_file_ = access.embedded_->key_file();
  } else {
    return absl::FailedPreconditionError(
        "no cluster is running here: start one with `patchbay up`, or name one with --cluster");
  }
  std::function<bool()> keep_waiting;
  if (access.embedded()) {
    keep_waiting = [embedded = access.embedded_.get()] { return embedded->Alive().ok(); };
  }
  PB_ASSIGN_OR_RETURN(client::Client client,
                      client::Client::Connect(access.key_file_, std::move(keep_waiting)));
  access.client_ = std::make_unique<client::Client>(std::move(client));
  return access;
}

Status ClusterAccess::Explain(const Status& status) {
  const Status alive = Alive();
  return status.ok() || alive.ok() ? status : alive;
}

StatusOr<std::string> ClusterNumerics(client::Client& client) {
  PB_ASSIGN_OR_RETURN(const protocol::ClusterDescribed cluster, client.DescribeCluster());
  for (const protocol::NodeRow& node : cluster.nodes) {
    if (!node.gpus.empty()) return std::string("cuda");
  }
  return std::string("cpu");
}

}  // namespace patchbay::cli
