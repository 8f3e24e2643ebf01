#include "runtime/cli/cluster_access.h"

#include <functional>
#include <utility>

#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/strings.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/machine_checks.h"
#include "runtime/cli/up_lock.h"

namespace patchbay::cli {
namespace {

/// For `patchbay up` to be seen at all, when it was started in the line before.
constexpr TimeMs kSeenLimitMs = 1'000;
constexpr TimeMs kReadyLimitMs = 60'000;
constexpr long kLookEveryMs = 20;

/// Whether a cluster runs here, once that is known: one that is starting is waited for, and where
/// there is none, one that may be about to.
StatusOr<bool> AwaitClusterHere(const Environment& environment, TimeMs seen_limit_ms) {
  const SteadyClock clock;
  const TimeMs start = clock.NowMs();
  while (true) {
    const ClusterState state = ClusterHere(environment);
    if (state == ClusterState::kReady) return true;
    const TimeMs waited = clock.NowMs() - start;
    if (state == ClusterState::kNone && waited >= seen_limit_ms) return false;
    if (waited > kReadyLimitMs) {
      return absl::DeadlineExceededError(
          StrCat("find cluster: `patchbay up` runs here, but is not "
                 "ready after ",
                 kReadyLimitMs / 1000, " s"));
    }
    if (Interrupted()) return absl::CancelledError("find cluster: interrupted");
    PauseMs(kLookEveryMs);
  }
}

/// For the key file of a cluster that runs here.
Status CheckIsThere(const std::string& key_file) {
  if (access(key_file.c_str(), F_OK) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat("find cluster: ", key_file,
             " is gone: end `patchbay up` with Ctrl-C and start it again, which makes another"));
}

}  // namespace

void OwnClusterArguments::AddTo(std::vector<Argument>& arguments) {
  Argument count{"--cpus", "N", "CPU workers of its own cluster (default: cores)", &cpus};
  count.min = 1;
  count.max = kMaxCpuWorkers;
  arguments.push_back(count);
  arguments.push_back({"--gpus", "LIST", "GPUs of its own cluster: auto, none or UUIDs", &gpus});
}

std::string OperatorKeyPath(const Environment& environment) {
  return StrCat(environment.home, "/", kOperatorKeyName, ".key");
}

StatusOr<ClusterAccess> ClusterAccess::Open(const Session& session,
                                            const OwnClusterArguments* own) {
  ClusterAccess access;
  bool here = false;
  if (session.cluster_file.empty()) {
    PB_ASSIGN_OR_RETURN(
        here, AwaitClusterHere(session.environment, own == nullptr ? kSeenLimitMs : TimeMs{0}));
  }
  if (!session.cluster_file.empty()) {
    access.key_file_ = session.cluster_file;
  } else if (here) {
    access.key_file_ = OperatorKeyPath(session.environment);
    PB_RETURN_IF_ERROR(CheckIsThere(access.key_file_));
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
