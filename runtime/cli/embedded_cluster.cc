#include "runtime/cli/embedded_cluster.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>

#include "runtime/base/hash.h"
#include "runtime/base/log.h"
#include "runtime/base/strings.h"
#include "runtime/cli/interrupt.h"
#include "runtime/control/key_table.h"

namespace patchbay::cli {
namespace {

constexpr long kStopMs = 2'000;
constexpr std::size_t kMaxShownLogBytes = 64 << 10;
constexpr char kDoing[] = "run a cluster for this command";

/// Makes the processes' log with room for what they say when they cannot start: a disk that is full
/// is then found here, or named there.
Status ReserveLog(const std::string& path) {
  PB_ASSIGN_OR_RETURN(const UniqueFd log, OpenFile(path, O_WRONLY | O_CREAT, 0600));
  if (fallocate(log.get(), FALLOC_FL_KEEP_SIZE, 0, kMaxShownLogBytes) == 0) return absl::OkStatus();
  // Not every file system can; there the log takes its room as it grows.
  return errno == EOPNOTSUPP || errno == ENOSYS ? absl::OkStatus()
                                                : FromErrno("write", path, errno);
}

/// The error with what the processes said below it, unless the user
/// stopped them.
Status WhyNoCluster(const Status& error, const std::string& log_path) {
  const StatusOr<std::string> log = ReadFile(log_path, kMaxShownLogBytes);
  std::string text = StrCat(kDoing, ": ", MessageOf(error));
  if (log.ok() && !Interrupted()) text += "\n" + *log;
  if (text.back() == '\n') text.pop_back();
  return Status(error.code(), text);
}

}  // namespace

Status EmbeddedCluster::MakeKeys(const std::string& address) const {
  PB_ASSIGN_OR_RETURN(const control::Home home, control::Home::Open(folder_.path() + "/home"));
  PB_RETURN_IF_ERROR(home.ServerKey().status());
  const std::pair<std::string, control::Role> roles[] = {{"node", control::Role::kWorker},
                                                         {"operator", control::Role::kOperator}};
  for (const auto& [name, role] : roles) {
    control::Home::NewKeyRequest request;
    request.name = name;
    request.role = role;
    request.address = address;
    request.read = {"/"};
    request.write = {"/"};
    PB_ASSIGN_OR_RETURN(const control::KeyFile key, home.NewKey(request));
    PB_RETURN_IF_ERROR(control::WriteKeyFile(StrCat(folder_.path(), "/", name, ".key"), key));
  }
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<EmbeddedCluster>> EmbeddedCluster::Start(const Environment& environment,
                                                                  std::int64_t cpus,
                                                                  const std::string& gpus) {
  PB_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::Create(environment.temporary));
  std::unique_ptr<EmbeddedCluster> cluster(new EmbeddedCluster(std::move(folder)));
  const std::string& root = cluster->folder_.path();
  const std::string address = StrCat("ipc://@patchbay-", Hex64(RandomU64()));
  PB_RETURN_IF_ERROR(Annotate(cluster->MakeKeys(address), kDoing));
  PB_RETURN_IF_ERROR(Annotate(ReserveLog(root + "/log"), kDoing));
  NodeSettings settings;
  settings.scheduler = SchedulerSettings{root + "/home", root + "/scheduler", address};
  settings.node_key = root + "/node.key";
  settings.state = root + "/agent";
  settings.cpus = cpus;
  settings.gpus = gpus;
  settings.stop_ms = kStopMs;
  settings.log_file = root + "/log";
  StatusOr<NodeProcesses> node = NodeProcesses::Start(settings, [] { return !Interrupted(); });
  if (!node.ok()) return WhyNoCluster(node.status(), root + "/log");
  cluster->node_.emplace(*std::move(node));
  return cluster;
}

Status EmbeddedCluster::Alive() {
  if (!node_.has_value() || !node_->PollExit().has_value()) return absl::OkStatus();
  return absl::UnavailableError(
      "the cluster that ran for this command has ended: its supervisor was killed or failed");
}

EmbeddedCluster::~EmbeddedCluster() {
  if (node_.has_value()) node_->Stop(kStopMs);
}

}  // namespace patchbay::cli
