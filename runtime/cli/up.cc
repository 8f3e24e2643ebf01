// patchbay up: a cluster's first node, in the foreground.
#include <cerrno>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/endpoints.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/network.h"
#include "runtime/cli/node_command.h"
#include "runtime/cli/paths.h"
#include "runtime/control/address.h"
#include "runtime/control/key_table.h"

namespace patchbay::cli {
namespace {

/// A port that is free now: the agent's key file must name it before the scheduler has it.
StatusOr<std::uint16_t> FreePort() {
  const UniqueFd probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (bind(probe.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      getsockname(probe.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return FromErrno("find a free port", "127.0.0.1", errno);
  }
  return ntohs(address.sin_port);
}

/// "10.0.0.7", "10.0.0.7:7678", "tcp://10.0.0.7:*" and the like, with a port.
StatusOr<std::string> ListenAddress(const std::string& text) {
  std::string full = text.find("://") == std::string::npos ? "tcp://" + text : text;
  StatusOr<control::Address> address = control::ParseAddress(full);
  if (!address.ok()) {
    const StatusOr<control::Address> with_port =
        control::ParseAddress(StrCat(full, ":", kDefaultPort));
    if (with_port.ok()) address = with_port;
  }
  if (!address.ok()) return AsUsageError(Annotate(address.status(), "--listen"));
  if (address->kind == control::Address::Kind::kTcp && address->port == 0) {
    PB_ASSIGN_OR_RETURN(address->port, FreePort());
  }
  return address->ToString();
}

/// Held while this cluster runs.
StatusOr<UniqueFd> TakeUpLock(const Environment& environment) {
  const std::string path = UpLockPath(environment);
  UniqueFd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) return FromErrno("lock", path, errno);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        StrCat("up: ", environment.home, ": a cluster runs from this folder already"));
  }
  return lock;
}

/// The key file of this name in the home folder, made at the first start, with today's address.
Status PrepareKey(const control::Home& home, const std::string& name, control::Role role,
                  const std::string& address) {
  const std::string path = StrCat(home.folder(), "/", name, ".key");
  StatusOr<control::KeyFile> key = control::ReadKeyFile(path);
  if (absl::IsNotFound(key.status())) {
    key = home.NewKey({name, role, address, {"/"}, {"/"}});
    if (absl::IsAlreadyExists(key.status())) {
      return Annotate(key.status(), StrCat("up: ", path, " is gone, but its key is in the table"));
    }
  }
  PB_RETURN_IF_ERROR(key.status());
  key->address = address;
  return control::WriteKeyFile(path, *key, true);
}

class UpCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    std::vector<Argument> arguments = node_.Arguments();
    arguments.push_back({"--listen", "ADDR", "IP[:PORT] (default 127.0.0.1:7678)", &listen_});
    return arguments;
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    PB_ASSIGN_OR_RETURN(const std::string address, ListenAddress(listen_));
    const Environment& environment = session.environment;
    PB_ASSIGN_OR_RETURN(const control::Home home, control::Home::Open(environment.home));
    PB_ASSIGN_OR_RETURN(const UniqueFd lock, TakeUpLock(environment));
    PB_RETURN_IF_ERROR(home.ServerKey().status());
    PB_RETURN_IF_ERROR(PrepareKey(home, "node", control::Role::kWorker, address));
    PB_RETURN_IF_ERROR(PrepareKey(home, "operator", control::Role::kOperator, address));
    PB_RETURN_IF_ERROR(DeclarePolicy(environment, node_.data_policy));

    PB_ASSIGN_OR_RETURN(
        const std::string state,
        AbsolutePath(node_.state.empty() ? environment.home + "/state" : node_.state));
    PB_ASSIGN_OR_RETURN(NodeSettings settings,
                        node_.Settings(state + "/agent", environment.home + "/node.key", address));
    settings.scheduler = SchedulerSettings{environment.home, state + "/scheduler", address};
    const std::string operator_key = OperatorKeyPath(environment);
    return RunNode(session, settings, [&](const NodeProcesses& node) {
      session.terminal.Say(StrCat("listening on ", address));
      session.terminal.Say(StrCat("operator key ", operator_key));
      session.terminal.Result(
          {{"address", address}, {"operator_key", operator_key}, {"pid", node.pid()}});
    });
  }

 private:
  NodeArguments node_;
  std::string listen_ = StrCat("tcp://127.0.0.1:", kDefaultPort);
};

}  // namespace

const char kUpNote[] =
    "Runs in the foreground; Ctrl-C or `patchbay down` stops it. Commands of the same user on "
    "this\n"
    "machine find it by themselves; others need a key file (`patchbay key new`).\n"
    "Keys and state live in PATCHBAY_HOME (default ~/.patchbay).\n";

std::unique_ptr<Command> MakeUp() { return std::make_unique<UpCommand>(); }

}  // namespace patchbay::cli
