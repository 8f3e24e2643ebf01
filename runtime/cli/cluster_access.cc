#include "runtime/cli/cluster_access.h"

#include <cerrno>
#include <regex>

#include <unistd.h>

#include "runtime/cli/interrupt.h"
#include "runtime/client/network.h"
#include "runtime/client/node_settings.h"
#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/os/file.h"

namespace patchbay::cli {
namespace {

constexpr std::size_t kMaxGpusBytes = 4096;

}  // namespace

void OwnClusterArguments::AddTo(std::vector<Argument>& arguments) {
  Argument rank{"--priority", "N", "among your jobs: -100 to 100 (default 0)", &priority};
  rank.min = -100;
  rank.max = 100;
  arguments.push_back(rank);
  Argument count{"--cpus", "N", "CPU workers of the embedded cluster (default: cores)", &cpus};
  count.min = 1;
  count.max = client::kMaxCpuWorkers;
  arguments.push_back(count);
  arguments.push_back(
      {"--gpus", "LIST", "GPUs of the embedded cluster: auto, none or UUIDs", &gpus});
}

Status CheckGpus(const std::string& list) {
  static const std::regex kGpus(
      "auto|none|((GPU|MIG)-[0-9a-fA-F-]+|[0-9]+)(,((GPU|MIG)-[0-9a-fA-F-]+|[0-9]+))*");
  if (list.size() <= kMaxGpusBytes && std::regex_match(list, kGpus)) return absl::OkStatus();
  return UsageError(StrCat("--gpus: expected auto, none or UUIDs, not '", list, "'"));
}

client::ClusterOptions ClusterOptionsOf(const Session& session, const OwnClusterArguments* own) {
  client::ClusterOptions options;
  options.environment = session.environment;
  options.key_file = session.cluster_file;
  options.may_start = own != nullptr;
  if (own != nullptr) {
    options.cpus = own->cpus;
    options.gpus = own->gpus;
  }
  options.keep_waiting = [] { return !Interrupted(); };
  return options;
}

StatusOr<client::Cluster> OpenCluster(const Session& session, const OwnClusterArguments* own) {
  if (own != nullptr) PB_RETURN_IF_ERROR(CheckGpus(own->gpus));
  return client::Cluster::Open(ClusterOptionsOf(session, own));
}

Argument PolicyArgument(std::string& policy) {
  Argument argument{"--data-policy", "", "transport between nodes (default tls)", &policy};
  argument.choices = {"tls", "rdma"};
  return argument;
}

Status DeclarePolicy(const client::Environment& environment, const std::string& policy) {
  const std::string path = client::PolicyPath(environment);
  if (policy.empty()) {
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return FromErrno("forget", path, errno);
    return absl::OkStatus();
  }
  return WriteFileDurably(Folders::OfThisUser(), path, AsBytes(policy), 0600);
}

}  // namespace patchbay::cli
