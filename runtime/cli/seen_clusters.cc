#include "runtime/cli/seen_clusters.h"

#include <utility>

#include <unistd.h>

#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/client/temporary_folder.h"
#include "runtime/client/up_lock.h"
#include "runtime/core/clock.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

constexpr TimeMs kAnswerLimitMs = 2'000;  ///< limit for a cluster that may be ending

Status LookAtEmbedded(const std::string& key_file, const LookAtCluster& look) {
  const TimeMs deadline = SteadyClock().NowMs() + kAnswerLimitMs;
  const auto keep_waiting = [deadline] {
    return !Interrupted() && SteadyClock().NowMs() < deadline;
  };
  PB_ASSIGN_OR_RETURN(client::Client client, client::Client::Connect(key_file, keep_waiting));
  return look(client, key_file);
}

}  // namespace

Status LookAtClusters(const Session& session, const LookAtCluster& look) {
  StatusOr<client::Cluster> main = OpenCluster(session, nullptr);
  if (main.ok()) PB_RETURN_IF_ERROR(look(main->client(), ""));
  const bool is_named = !ClusterOptionsOf(session, nullptr).key_file.empty() ||
                        !session.environment.cluster_file.empty();
  if (is_named) return main.status();
  bool seen = main.ok();
  for (const std::string& folder : client::FoldersInUse(session.environment.temporary)) {
    const std::string key_file = folder + "/operator.key";
    const Status looked = LookAtEmbedded(key_file, look);
    if (Interrupted()) return Cancelled("look at clusters: interrupted");
    seen = seen || looked.ok();
    if (looked.ok() || access(key_file.c_str(), F_OK) != 0) continue;
    session.terminal.Note(
        StrCat("note: the embedded cluster ", folder,
               " does not answer, it may be starting or ending: ", MessageOf(looked)));
  }
  const bool none_here = client::ClusterHere(session.environment) == client::ClusterState::kNone;
  return seen && none_here ? absl::OkStatus() : main.status();
}

const char kSeenClustersNote[] =
    "Without --cluster: the cluster that `patchbay up` runs, and those that running commands of\n"
    "this user started for themselves, each with the key file that other commands take for it.\n";

void SayEmbedded(Terminal& terminal, const std::string& key_file) {
  if (!key_file.empty()) terminal.Say(StrCat("embedded cluster (--cluster ", key_file, ")"));
}

void AddCluster(Json cluster, const std::string& key_file, Json& result, Json& embedded) {
  if (key_file.empty()) {
    result = std::move(cluster);
    return;
  }
  cluster["key_file"] = key_file;
  embedded.push_back(std::move(cluster));
}

}  // namespace patchbay::cli
