// patchbay up: a cluster's first node, in the foreground.
#include <cerrno>

#include <netinet/in.h>
#include <sys/socket.h>

#include "runtime/cli/cluster/node_command.h"
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/client/paths.h"
#include "runtime/client/up_lock.h"
#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "runtime/wire/control/address.h"
#include "runtime/wire/control/authorized_keys.h"

namespace patchbay::cli {
namespace {

constexpr long kPortWaitMs = 1'000, kPortLookMs = 50;

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

/// Whether a socket may listen there; true when that cannot be told.
bool PortIsFree(std::uint16_t port) {
  const UniqueFd probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int reuse = 1;  // as ZeroMQ listens: connections that linger on the port do not count
  setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return bind(probe.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 ||
         errno != EADDRINUSE;
}

/// The default address to listen at: Patchbay's port, or another one when a second cluster of this
/// machine uses it. Waits for a scheduler of this home that was just killed to end.
StatusOr<std::string> UsualListen(Terminal& terminal) {
  std::uint16_t port = kDefaultPort;
  for (long waited = 0; !PortIsFree(port) && waited < kPortWaitMs; waited += kPortLookMs) {
    PauseMs(kPortLookMs);
  }
  if (!PortIsFree(port)) {
    PB_ASSIGN_OR_RETURN(port, FreePort());
    terminal.Note(StrCat("port ", kDefaultPort, " of this machine is taken, by another cluster?"));
  }
  return StrCat("tcp://127.0.0.1:", port);
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

/// Where processes of this machine find a scheduler that listens at `listen`.
StatusOr<std::string> OwnAddress(const std::string& listen) {
  PB_ASSIGN_OR_RETURN(control::Address address, control::ParseAddress(listen));
  if (address.host == "0.0.0.0") address.host = "127.0.0.1";
  if (address.host == "::") address.host = "::1";
  return address.ToString();
}

/// Whether the table still has this key as it is.
bool IsValid(const control::KeyFile& key, const control::KnownKey* known,
             const control::KeyPair& server) {
  return known != nullptr && !known->revoked && known->public_key == key.pair.public_key &&
         key.server_key == server.public_key;
}

/// This key file in the home folder with today's address. It is made at the first start, and again
/// when it was lost, or its key revoked.
Status PrepareKey(const control::Home& home, const std::string& path, const std::string& name,
                  control::Role role, const std::string& address) {
  PB_ASSIGN_OR_RETURN(const control::KeyPair server, home.ServerKey());
  PB_ASSIGN_OR_RETURN(const control::AuthorizedKeys table, home.LoadKeys());
  const control::KnownKey* known = table.FindByName(name);
  if (known != nullptr && known->role != role) {
    return FailedPrecondition("up: ", home.KeysFolder(), "/", name, ".yaml: a key of role ",
                              control::RoleName(known->role),
                              " has the name of a key that `up` needs: remove ",
                              "this file, and make its owner a key of another name");
  }
  StatusOr<control::KeyFile> key = control::ReadKeyFile(path);
  if (!key.ok() && !absl::IsNotFound(key.status())) return key.status();
  if (!key.ok() || !IsValid(*key, known, server)) {
    return home.RenewKey({name, role, address, {"/"}, {"/"}, path}).status();
  }
  key->address = address;
  return control::WriteKeyFile(path, *key, true);
}

Status CheckPage(std::string_view flag, const std::string& place,
                 std::initializer_list<control::PageGuard> guards) {
  if (place.empty()) return absl::OkStatus();
  return AsUsageError(control::ParsePagePlace(flag, place, guards).status());
}

class UpCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    std::vector<Argument> arguments = node_.Arguments();
    arguments.push_back({"--listen", "ADDR",
                         "address to listen on, IP[:PORT] (default 127.0.0.1:7678 or a free port)",
                         &listen_});
    arguments.push_back({"--metrics", "PLACE",
                         "[ADDR:]PORT of metrics for Prometheus (default: none; ADDR: 127.0.0.1)",
                         &metrics_});
    arguments.push_back(
        {"--dashboard", "PLACE", "[ADDR:]PORT of a page for browsers, likewise", &dashboard_});
    arguments.push_back({"--tls", "FILE",
                         "PEM of certificate and key, for pages that other machines reach", &tls_});
    arguments.push_back({"--metrics-token", "FILE",
                         "token that Prometheus shows; other machines need one", &token_});
    return arguments;
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    std::string listen;
    if (!listen_.empty()) {
      PB_ASSIGN_OR_RETURN(listen, ListenAddress(listen_));
    }
    PB_RETURN_IF_ERROR(
        CheckPage("--metrics", metrics_, {{"--tls", tls_}, {"--metrics-token", token_}}));
    PB_RETURN_IF_ERROR(CheckPage("--dashboard", dashboard_, {{"--tls", tls_}}));
    const client::Environment& environment = session.environment;
    PB_ASSIGN_OR_RETURN(const control::Home home, control::Home::Open(environment.home));
    PB_ASSIGN_OR_RETURN(const client::UpLock lock, client::UpLock::Take(environment));
    if (listen.empty()) {
      PB_ASSIGN_OR_RETURN(listen, UsualListen(session.terminal));
    }
    PB_ASSIGN_OR_RETURN(const std::string address, OwnAddress(listen));
    PB_ASSIGN_OR_RETURN(const control::Address place, control::ParseAddress(listen));
    PB_RETURN_IF_ERROR(AsUsageError(control::CheckAddressFamilies(place)));
    if (address != listen && node_.data_policy == NameOf(data::NetworkPolicy::kRdma)) {
      return UsageError(
          "up: --data-policy rdma needs --listen with the one address the other nodes reach");
    }
    const std::string node_key = StrCat(home.folder(), "/", client::kNodeKeyFile, ".key");
    const std::string operator_key = client::OperatorKeyPath(environment);
    PB_RETURN_IF_ERROR(PrepareKey(home, node_key, client::NodeKeyName(environment),
                                  control::Role::kWorker, address));
    PB_RETURN_IF_ERROR(PrepareKey(home, operator_key, client::kOperatorKeyName,
                                  control::Role::kOperator, address));
    PB_RETURN_IF_ERROR(DeclarePolicy(environment, node_.data_policy));

    PB_ASSIGN_OR_RETURN(
        const std::string state,
        client::AbsolutePath(node_.state.empty() ? environment.home + "/state" : node_.state));
    PB_ASSIGN_OR_RETURN(NodeSettings settings,
                        node_.Settings(environment, state + "/agent", node_key, address));
    settings.scheduler = SchedulerSettings{environment.home, state + "/scheduler", listen};
    settings.scheduler->allow_public = true;  // only --listen can have named one that is
    settings.scheduler->metrics = metrics_;
    settings.scheduler->dashboard = dashboard_;
    settings.scheduler->tls = tls_;
    settings.scheduler->metrics_token = token_;
    return RunNode(session, settings, [&](const NodeProcesses& node) {
      if (const Status told = lock.ReportReady(); !told.ok())
        session.terminal.Error(MessageOf(told));
      session.terminal.Say(StrCat("listening on ", listen));
      if (address != listen) {
        session.terminal.Say(
            StrCat("keys for other machines name one of its addresses: patchbay key new ... "
                   "--address tcp://IP:",
                   address.substr(address.rfind(':') + 1)));
      }
      session.terminal.Say(StrCat("operator key ", operator_key));
      session.terminal.Result(
          {{"address", listen}, {"operator_key", operator_key}, {"pid", node.pid()}});
    });
  }

 private:
  NodeArguments node_;
  std::string listen_;                             ///< "" = UsualListen
  std::string metrics_, dashboard_, tls_, token_;  ///< "" = none
};

}  // namespace

const char kUpNote[] =
    "Runs in the foreground; Ctrl-C or `patchbay down` stops it. Commands of the same user on "
    "this\n"
    "machine find it without a key file; others need one (`patchbay key new`). A trainer on this\n"
    "machine shares memory with the workers where both run as the same user; otherwise, as\n"
    "between machines, batches come over an encrypted connection.\n"
    "Keys and state live in PATCHBAY_HOME (default ~/.patchbay).\n";

std::unique_ptr<Command> MakeUp() { return std::make_unique<UpCommand>(); }

}  // namespace patchbay::cli
