// patchbay site run: one command, started once a node by an engine or by hand, is a cluster for the
// time of a trainer.
#include <cerrno>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/cli/cluster/node_command.h"
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/site/rendezvous.h"
#include "runtime/cli/site/site_address.h"
#include "runtime/cli/site/site_checks.h"
#include "runtime/cli/site/site_engine.h"
#include "runtime/cli/site/site_trainer.h"
#include "runtime/client/network.h"
#include "runtime/client/paths.h"
#include "runtime/client/temporary_folder.h"
#include "runtime/core/clock.h"
#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "runtime/os/network_file_system.h"
#include "runtime/wire/control/address.h"
#include "runtime/wire/control/authorized_keys.h"
#include "runtime/wire/data/sockets.h"

extern char** environ;

namespace patchbay::cli {
namespace {

constexpr char kTrainerKeyName[] = "trainer";
constexpr long kTurnMs = 50;     ///< between looks at the processes of this node
constexpr int kTurnsOfLook = 5;  ///< turns between looks at the shared folder
constexpr std::int64_t kUsualWaitS = 60, kMaxWaitS = 86'400;

/// A port of this machine that no other process gets as a free one while `held` is open; listening
/// there is possible all the same, for a scheduler that was started again too.
struct ReservedPort {
  UniqueFd held;
  std::string address;  ///< "tcp://IP:PORT"
};

StatusOr<ReservedPort> ReservePort(const std::string& host) {
  PB_ASSIGN_OR_RETURN(data::SocketAddress address,
                      data::ParseSocketAddress(data::JoinHostPort(host, 0)));
  auto* const name = reinterpret_cast<sockaddr*>(address.storage);
  UniqueFd held(socket(name->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int reuse = 1;  // as ZeroMQ listens: both may have the port
  socklen_t length = sizeof(address.storage);
  if (setsockopt(held.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse)) != 0 ||
      bind(held.get(), name, address.length) != 0 || getsockname(held.get(), name, &length) != 0) {
    return FromErrno("site run: find a free port", host, errno);
  }
  address.length = length;
  return ReservedPort{std::move(held), StrCat("tcp://", data::FormatSocketAddress(address))};
}

/// The exit status of the site, once that is known; `own` is that of the trainer here.
using LookAtSite = std::function<StatusOr<std::optional<int>>(std::optional<int> own)>;

class SiteRunCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    std::vector<Argument> arguments = {
        {"COMMAND", "", "the trainer, behind --; without it the cluster runs until it is stopped",
         &command_}};
    Argument trainers{"--trainers", "N",
                      "nodes, from the first, that start the trainer (default 1)", &trainers_};
    trainers.min = 1;
    arguments.push_back(trainers);
    arguments.push_back({"--rendezvous", "DIR",
                         "folder that all nodes see (default: PATCHBAY_HOME)", &rendezvous_});
    arguments.push_back({"--interface", "NAME",
                         "network interface, or address, that the first node"
                         " listens on",
                         &interface_});
    Argument wait{"--wait", "S",
                  StrCat("seconds to wait for all nodes (default ", kUsualWaitS, ")"), &wait_s_};
    wait.min = 1;
    wait.max = kMaxWaitS;
    arguments.push_back(wait);
    Argument rank{"--rank", "I", "without Slurm: number of this node, 0 = the first", &rank_};
    Argument of{"--of", "N", "without Slurm: number of nodes", &of_};
    rank.min = 0;
    of.min = 1;
    of.max = kMaxSiteNodes;
    arguments.push_back(rank);
    arguments.push_back(of);
    for (Argument& argument : node_.Arguments()) {
      if (argument.name == "--state") {
        argument.help = "node-local folder for journal and caches (default: TMPDIR)";
      } else if (argument.name == "--grace") {
        argument.help = "seconds for a stop, then kills (default 20; under Slurm KillWait less 1)";
      }
      arguments.push_back(std::move(argument));
    }
    return arguments;
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    deadline_ms_ = SteadyClock().NowMs() + wait_s_ * 1000;
    PB_RETURN_IF_ERROR(FindEngine());
    if (trainers_ > static_cast<std::int64_t>(engine_.nodes.size())) {
      return UsageError(StrCat("--trainers: ", trainers_, " on ", engine_.nodes.size(), " nodes"));
    }
    if (!engine_.gpus.empty() && node_.gpus == "auto") node_.gpus = engine_.gpus;
    if (node_.memory.empty()) node_.memory = engine_.memory;
    if (!node_.cpus.has_value()) node_.cpus = engine_.cpus;
    if (!node_.data_policy.empty()) {
      PB_RETURN_IF_ERROR(DeclarePolicy(session.environment, node_.data_policy));
    }
    PB_ASSIGN_OR_RETURN(
        const std::string shared,
        client::AbsolutePath(rendezvous_.empty() ? session.environment.home + "/rendezvous"
                                                 : rendezvous_));
    PB_ASSIGN_OR_RETURN(
        const std::string parent,
        client::AbsolutePath(node_.state.empty() ? session.environment.temporary : node_.state));
    PB_RETURN_IF_ERROR(MakeDirectories(Folders::OfThisUser(), parent, 0700));
    PB_RETURN_IF_ERROR(AsUsageError(RefuseNetworkFileSystem(Folders::OfThisUser(), parent)));
    PB_ASSIGN_OR_RETURN(const client::TemporaryFolder state,
                        client::TemporaryFolder::Create(parent));
    const StatusOr<int> status = engine_.rank == 0 ? RunFirst(session, shared, state.path())
                                                   : RunOther(session, shared, state.path());
    state.Remove();
    if (!status.ok()) return status.status();
    return static_cast<ExitCode>(*status);
  }

 private:
  Status FindEngine() {
    if (rank_.has_value() != of_.has_value() || (rank_ && *rank_ >= *of_)) {
      return UsageError("site run: --rank I and --of N go together, I from 0 to N - 1");
    }
    if (rank_.has_value()) {
      engine_ = EngineByHand(*rank_, *of_);
      return absl::OkStatus();
    }
    PB_ASSIGN_OR_RETURN(const std::optional<Engine> slurm, SlurmEngine(environ));
    if (!slurm.has_value()) {
      return UsageError(
          "site run: not a step of Slurm: start it with srun, or on each node with --rank I --of N "
          "--rendezvous DIR");
    }
    engine_ = *slurm;
    if (!node_.grace_s.has_value()) node_.grace_s = GraceOfSlurm();
    return absl::OkStatus();
  }

  bool MayWait() const { return !Interrupted() && SteadyClock().NowMs() < deadline_ms_; }

  /// The keys of every node, known to the scheduler that will run from this home.
  static StatusOr<std::map<std::string, SiteKeys>> MakeKeys(const std::string& folder,
                                                            const Engine& engine,
                                                            const std::string& address) {
    PB_ASSIGN_OR_RETURN(const control::Home home, control::Home::Open(HomeIn(folder)));
    const auto make = [&](const std::string& name, control::Role role, std::string path) {
      return home.NewKey({name, role, address, {"/"}, {"/"}, std::move(path)});
    };
    PB_RETURN_IF_ERROR(make(client::kOperatorKeyName, control::Role::kOperator,
                            StrCat(folder, "/", client::kOperatorKeyName, ".key"))
                           .status());
    PB_ASSIGN_OR_RETURN(const control::KeyFile trainer,
                        make(kTrainerKeyName, control::Role::kSubmitter, ""));
    std::map<std::string, SiteKeys> keys;
    for (const std::string& name : engine.nodes) {
      PB_ASSIGN_OR_RETURN(const control::KeyFile node, make(name, control::Role::kWorker, ""));
      keys[name] = {control::FormatKeyFile(node), control::FormatKeyFile(trainer)};
    }
    return keys;
  }

  StatusOr<int> RunFirst(Session& session, const std::string& shared, const std::string& folder) {
    PB_ASSIGN_OR_RETURN(SiteHost site,
                        SiteHost::Open(shared, engine_, [this] { return MayWait(); }));
    PB_ASSIGN_OR_RETURN(const std::string host, AddressInSite(engine_, interface_));
    PB_ASSIGN_OR_RETURN(const ReservedPort port, ReservePort(host));
    PB_ASSIGN_OR_RETURN(const auto keys, MakeKeys(folder, engine_, port.address));
    Status looked;
    const auto look = [&] { return (looked = site.Look(keys)).ok() && MayWait(); };
    const auto start = [&](NodeSettings& settings) {
      settings.scheduler = SchedulerSettings{HomeIn(folder), folder + "/scheduler", port.address};
      settings.scheduler->allow_public = !interface_.empty();
    };
    StatusOr<NodeProcesses> node =
        StartNode(session.environment, folder, keys.at(engine_.name), start, look);
    PB_RETURN_IF_ERROR(looked);
    if (!node.ok()) return node.status();
    while (!site.Missing().empty() && look()) PauseMs(kTurnMs);
    PB_RETURN_IF_ERROR(looked);
    if (!site.Missing().empty() && !Interrupted()) {
      return DeadlineExceeded("site run: missing after ", wait_s_,
                              " s: ", StrJoin(site.Missing(), ", "));
    }
    if (command_.empty()) {
      session.terminal.Say(StrCat("key file ", folder, "/", client::kOperatorKeyName, ".key"));
    }
    return Watch(*node, folder, [&](std::optional<int> own) -> StatusOr<std::optional<int>> {
      PB_RETURN_IF_ERROR(site.Look(keys));
      return EndOf(site, own);
    });
  }

  /// The first status other than 0; 0 when all trainers have ended.
  std::optional<int> EndOf(const SiteHost& site, std::optional<int> own) const {
    if (own.value_or(0) != 0) return own;
    for (const auto& [rank, status] : site.ended()) {
      if (status != 0) return status;
    }
    const bool all = static_cast<std::int64_t>(site.ended().size()) + 1 >= trainers_;
    return all && own.has_value() ? own : std::nullopt;
  }

  StatusOr<int> RunOther(Session& session, const std::string& shared, const std::string& folder) {
    const auto site = SiteGuest::Join(shared, engine_, [this] { return MayWait(); });
    if (absl::IsCancelled(site.status()) && !Interrupted()) {
      return DeadlineExceeded(MessageOf(site.status()), " within ", wait_s_, " s");
    }
    PB_RETURN_IF_ERROR(site.status());
    PB_ASSIGN_OR_RETURN(const control::KeyFile key, control::ParseKeyFile(site->keys().node));
    const auto look = [&] { return MayWait() && site->SiteLives(); };
    StatusOr<NodeProcesses> node = StartNode(
        session.environment, folder, site->keys(), [](NodeSettings&) {}, look);
    if (!site->SiteLives()) return 0;  // its trainer was done before this node was there
    if (absl::IsCancelled(node.status()) && !Interrupted()) {
      return DeadlineExceeded("site run: ", key.address,
                              ": no cluster there takes this node's key "
                              "within ",
                              wait_s_, " s: another one listens, or a firewall is between");
    }
    PB_RETURN_IF_ERROR(node.status());
    return Watch(*node, folder, [&](std::optional<int> own) -> StatusOr<std::optional<int>> {
      if (own.has_value() && !reported_) PB_RETURN_IF_ERROR(site->ReportEnd(*own));
      reported_ = own.has_value();
      return site->SiteLives() ? std::nullopt : std::optional<int>(own.value_or(0));
    });
  }

  /// The agent here, and on the first node the scheduler, with this node's keys in `folder`.
  StatusOr<NodeProcesses> StartNode(const client::Environment& environment,
                                    const std::string& folder, const SiteKeys& keys,
                                    const std::function<void(NodeSettings&)>& adjust,
                                    const std::function<bool()>& keep_waiting) {
    const std::string path = StrCat(folder, "/", client::kNodeKeyFile, ".key");
    for (const auto& [name, text] :
         {std::pair(path, keys.node), std::pair(TrainerKey(folder), keys.trainer)}) {
      PB_ASSIGN_OR_RETURN(const control::KeyFile key, control::ParseKeyFile(text));
      PB_RETURN_IF_ERROR(control::WriteKeyFile(name, key));
    }
    PB_ASSIGN_OR_RETURN(const control::KeyFile key, control::ParseKeyFile(keys.node));
    PB_ASSIGN_OR_RETURN(settings_,
                        node_.Settings(environment, folder + "/agent", path, key.address));
    adjust(settings_);
    PB_RETURN_IF_ERROR(MakeDirectories(Folders::OfThisUser(), settings_.state, 0700));
    return NodeProcesses::Start(settings_, keep_waiting);
  }

  static std::string HomeIn(const std::string& folder) { return folder + "/home"; }

  static std::string TrainerKey(const std::string& folder) {
    return StrCat(folder, "/", kTrainerKeyName, ".key");
  }

  /// Runs the trainer, where one belongs here, until the site ends; stops the node. The exit
  /// status.
  StatusOr<int> Watch(NodeProcesses& node, const std::string& folder, const LookAtSite& look) {
    std::optional<SiteTrainer> trainer;
    if (!command_.empty() && engine_.rank < trainers_ && !Interrupted()) {
      PB_ASSIGN_OR_RETURN(SiteTrainer started, SiteTrainer::Start(command_, engine_.rank, trainers_,
                                                                  TrainerKey(folder)));
      trainer.emplace(std::move(started));
    }
    StatusOr<int> status = WatchTrainer(node, trainer, look);
    if (trainer.has_value() && !trainer->PollExit().has_value()) {
      trainer->Signal(SIGTERM);
      trainer->Await(settings_.stop_ms);
    }
    node.Stop(settings_.stop_ms);
    return status;
  }

  StatusOr<int> WatchTrainer(NodeProcesses& node, std::optional<SiteTrainer>& trainer,
                             const LookAtSite& look) {
    for (int turn = 0; !Interrupted(); ++turn) {
      const std::optional<int> own = trainer ? trainer->PollExit() : std::nullopt;
      if (turn % kTurnsOfLook == 0 || own.has_value()) {
        PB_ASSIGN_OR_RETURN(const std::optional<int> end, look(own));
        if (end.has_value()) return *end;
      }
      if (const auto exit = node.PollExit()) {
        // By `patchbay down`, or a signal to all.
        if (*exit == 0 || *exit == static_cast<int>(ExitCode::kStopped)) break;
        return Unavailable("site run: the processes of ", engine_.name, " ended with ", *exit);
      }
      PauseMs(kTurnMs);
    }
    if (!trainer.has_value()) return 0;
    if (!engine_.signals_all) trainer->Signal(SIGTERM);
    return trainer->Await(settings_.stop_ms);
  }

  NodeArguments node_;
  std::vector<std::string> command_;
  std::string rendezvous_, interface_;
  std::int64_t trainers_ = 1, wait_s_ = kUsualWaitS;
  std::optional<std::int64_t> rank_, of_;
  Engine engine_;
  NodeSettings settings_;
  TimeMs deadline_ms_ = 0;
  bool reported_ = false;
};

}  // namespace

const char kSiteRunNote[] =
    "One cluster for the time of a trainer, e.g. srun patchbay site run -- python train.py: the\n"
    "first node starts it, the others join, and it ends everywhere with the trainer, whose exit\n"
    "status is this command's. The trainer finds the cluster by itself, and its part by RANK and\n"
    "WORLD_SIZE. Without Slurm, on each node: --rank I --of N --rendezvous DIR --interface NAME.\n";

std::unique_ptr<Command> MakeSiteRun() { return std::make_unique<SiteRunCommand>(); }

}  // namespace patchbay::cli
