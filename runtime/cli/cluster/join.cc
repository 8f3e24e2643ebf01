// patchbay join --key FILE: a further node of a cluster, in the foreground.
#include "runtime/cli/cluster/machine_checks.h"
#include "runtime/cli/cluster/node_command.h"
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/client/paths.h"
#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "runtime/wire/control/keys.h"

namespace patchbay::cli {
namespace {

class JoinCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    std::vector<Argument> arguments = {
        {"--key", "FILE", "a worker's key file, from `patchbay key new`", &key_, true}};
    for (Argument& argument : node_.Arguments()) arguments.push_back(std::move(argument));
    return arguments;
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    PB_ASSIGN_OR_RETURN(const std::string path, client::AbsolutePath(key_));
    const StatusOr<control::KeyFile> read = control::ReadKeyFile(path);
    if (!read.ok()) return Annotate(read.status(), "join: --key");
    const control::KeyFile& key = *read;
    if (key.role != control::Role::kWorker) {
      return PermissionDenied("join: ", key_, ": a key of role ", control::RoleName(key.role),
                              "; a node needs one of role worker");
    }
    PB_RETURN_IF_ERROR(MakeDirectories(Folders::OfThisUser(), session.environment.home, 0700));
    PB_RETURN_IF_ERROR(DeclarePolicy(session.environment, node_.data_policy));
    PB_ASSIGN_OR_RETURN(const std::string state,
                        client::AbsolutePath(node_.state.empty() ? StrCat(session.environment.home,
                                                                          "/nodes/", key.name)
                                                                 : node_.state));
    PB_ASSIGN_OR_RETURN(const NodeSettings settings,
                        node_.Settings(session.environment, state, path, key.address));
    ProbeScheduler(session, key.address);
    return RunNode(session, settings, [&](const NodeProcesses& node) {
      session.terminal.Say(StrCat("joined ", key.address, " as ", key.name));
      session.terminal.Say(
          "batches go from here to the trainers: TCP connections to them must be open (test one "
          "with `patchbay doctor --reach IP:PORT`)");
      session.terminal.Result({{"address", key.address}, {"node", key.name}, {"pid", node.pid()}});
    });
  }

 private:
  /// The node tries as long as it takes; a firewall is better named than waited for.
  static void ProbeScheduler(const Session& session, const std::string& address) {
    constexpr std::string_view kTcp = "tcp://";
    if (!address.starts_with(kTcp)) return;
    const Check reach = CheckReach(address.substr(kTcp.size()));
    if (reach.state == CheckState::kOk) return;
    session.terminal.Note(StrCat("the scheduler does not answer (", reach.found,
                                 "); connections from here to ", address,
                                 " must be open; trying on"));
  }

  NodeArguments node_;
  std::string key_;
};

}  // namespace

const char kJoinNote[] =
    "Runs in the foreground; Ctrl-C drains the node and leaves. On the first node:\n"
    "  patchbay key new node2 --role worker --read DIR --write DIR\n"
    "then copy node2.key here. This node opens TCP connections to the scheduler (the address in "
    "the\n"
    "key file) and, encrypted, to the trainers: to the address from which a trainer reaches the\n"
    "cluster, or that of `stream --data-listen`. Test it: patchbay doctor --reach IP:PORT\n";

std::unique_ptr<Command> MakeJoin() { return std::make_unique<JoinCommand>(); }

}  // namespace patchbay::cli
