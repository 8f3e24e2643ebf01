// patchbay key new|list|revoke|team: who may speak to the cluster of this PATCHBAY_HOME.
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/client/paths.h"
#include "runtime/client/up_lock.h"
#include "runtime/core/strings.h"
#include "runtime/wire/control/authorized_keys.h"

namespace patchbay::cli {
namespace {

/// The running cluster reads its table again; without one there is nothing to tell.
Status TellCluster(Session& session) {
  if (client::ClusterHere(session.environment) == client::ClusterState::kNone)
    return absl::OkStatus();
  Session own{session.terminal, session.environment, ""};
  PB_ASSIGN_OR_RETURN(client::Cluster cluster, OpenCluster(own, nullptr));
  return cluster.client().ReloadKeys();
}

/// Where the cluster of this home listens, or would.
std::string ClusterAddress(const client::Environment& environment) {
  const StatusOr<control::KeyFile> key = control::ReadKeyFile(client::OperatorKeyPath(environment));
  return key.ok() ? key->address : StrCat("tcp://127.0.0.1:", kDefaultPort);
}

/// The names of the keys that commands of this home use by themselves.
Status RefuseOwnName(const client::Environment& environment, const std::string& name,
                     std::string_view doing) {
  const bool is_operator = name == client::kOperatorKeyName;
  const bool is_node = name == client::kNodeKeyFile || name == client::NodeKeyName(environment);
  if (!is_operator && !is_node) return absl::OkStatus();
  return UsageError(StrCat(doing, ": ", name, ": this key is `patchbay up`'s own; to replace it, ",
                           "stop the cluster, remove ", environment.home, "/",
                           is_operator ? client::kOperatorKeyName : client::kNodeKeyFile,
                           ".key and start it again"));
}

/// Keys are made, listed and revoked in this home: a cluster that was named must be its.
Status RefuseOtherCluster(const Session& session) {
  if (session.cluster_file.empty()) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const control::KeyFile named, control::ReadKeyFile(session.cluster_file));
  const StatusOr<control::KeyPair> own =
      control::ReadServerKey(session.environment.home + "/server.key");
  if (own.ok() && own->public_key == named.server_key) return absl::OkStatus();
  return UsageError(StrCat("key: the cluster at ", named.address,
                           " (--cluster or PATCHBAY_CLUSTER) does not run from ",
                           session.environment.home,
                           ": its keys are managed by the user who runs it, on the machine with "
                           "its PATCHBAY_HOME"));
}

StatusOr<std::vector<std::string>> AbsoluteFolders(const std::vector<std::string>& folders) {
  std::vector<std::string> absolute;
  for (const std::string& folder : folders) {
    PB_ASSIGN_OR_RETURN(absolute.emplace_back(), client::AbsolutePath(folder));
  }
  return absolute;
}

class KeyCreateCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    Argument role{"--role", "R", "role of the key: what it may do", &role_, true};
    role.choices = {"operator", "submitter", "worker", "trainer"};
    return {
        {"NAME", "", "name of the user or node", &name_, true},
        role,
        {"--read", "DIR", "folder its jobs may read, with all below it (repeatable)", &read_},
        {"--write", "DIR", "folder its jobs may write, with all below it (repeatable)", &write_},
        {"--out", "FILE", "the key file to write, - for stdout (default NAME.key)", &out_},
        {"--address", "ADDR", "address of the cluster (default: this one)", &address_},
        {"--team", "TEAM", "team whose shares its jobs use (default: none)", &team_}};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    PB_RETURN_IF_ERROR(RefuseOtherCluster(session));
    PB_ASSIGN_OR_RETURN(const control::Home home, control::Home::Open(session.environment.home));
    PB_RETURN_IF_ERROR(RefuseOwnName(session.environment, name_, "key new"));
    control::Home::NewKeyRequest request;
    request.name = name_;
    PB_ASSIGN_OR_RETURN(request.role, control::ParseRole(role_));
    request.address = address_.empty() ? ClusterAddress(session.environment) : address_;
    PB_ASSIGN_OR_RETURN(request.read, AbsoluteFolders(read_));
    PB_ASSIGN_OR_RETURN(request.write, AbsoluteFolders(write_));
    request.team = team_;
    PB_RETURN_IF_ERROR(control::CheckKeyName(name_));
    const bool to_stdout = out_ == "-";
    if (to_stdout && session.terminal.json())
      return UsageError("key new: --out -: not with --json");
    if (!to_stdout) {
      PB_ASSIGN_OR_RETURN(request.path, client::AbsolutePath(out_.empty() ? name_ + ".key" : out_));
    }
    PB_ASSIGN_OR_RETURN(const control::KeyFile key, home.NewKey(request));
    PB_RETURN_IF_ERROR(TellCluster(session));
    session.terminal.SayText(to_stdout ? control::FormatKeyFile(key) : request.path + "\n");
    session.terminal.Result({{"name", name_},
                             {"role", role_},
                             {"path", request.path},
                             {"address", key.address},
                             {"read", key.read},
                             {"write", key.write}});
    return ExitCode::kDone;
  }

 private:
  std::string name_, role_, out_, address_, team_;
  std::vector<std::string> read_, write_;
};

class KeyListCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override { return {}; }

  StatusOr<ExitCode> Run(Session& session) override {
    PB_RETURN_IF_ERROR(RefuseOtherCluster(session));
    PB_ASSIGN_OR_RETURN(const control::Home home, control::Home::Open(session.environment.home));
    PB_ASSIGN_OR_RETURN(const control::AuthorizedKeys table, home.LoadKeys());
    Json list = Json::array();
    std::vector<std::vector<std::string>> rows = {
        {"name", "role", "state", "team", "read", "write"}};
    for (const control::KnownKey& key : table.List()) {
      const char* state = key.revoked ? "revoked" : "valid";
      list.push_back({{"name", key.name},
                      {"role", control::RoleName(key.role)},
                      {"state", state},
                      {"team", key.team},
                      {"read", key.read},
                      {"write", key.write}});
      rows.push_back({key.name, control::RoleName(key.role), state,
                      key.team.empty() ? "-" : key.team, StrJoin(key.read, ","),
                      StrJoin(key.write, ",")});
    }
    for (const std::string& line : FormatTable(rows)) session.terminal.Say(line);
    session.terminal.Result({{"keys", list}});
    return ExitCode::kDone;
  }
};

class KeyRevokeCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return {{"NAME", "", "name of the key", &name_, true}};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    PB_RETURN_IF_ERROR(RefuseOtherCluster(session));
    PB_ASSIGN_OR_RETURN(const control::Home home, control::Home::Open(session.environment.home));
    PB_RETURN_IF_ERROR(RefuseOwnName(session.environment, name_, "key revoke"));
    PB_RETURN_IF_ERROR(home.Revoke(name_));
    PB_RETURN_IF_ERROR(TellCluster(session));
    session.terminal.Say(StrCat(name_, " revoked"));
    session.terminal.Result({{"name", name_}, {"revoked", true}});
    return ExitCode::kDone;
  }

 private:
  std::string name_;
};

class KeyTeamCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return {{"KEY", "", "name of the key", &name_, true},
            {"TEAM", "", "team whose shares its jobs use from now on", &team_, true}};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    PB_RETURN_IF_ERROR(RefuseOtherCluster(session));
    PB_ASSIGN_OR_RETURN(const control::Home home, control::Home::Open(session.environment.home));
    PB_RETURN_IF_ERROR(home.SetTeam(name_, team_));
    PB_RETURN_IF_ERROR(TellCluster(session));
    session.terminal.Say(StrCat(name_, " is of team ", team_));
    session.terminal.Result({{"name", name_}, {"team", team_}});
    return ExitCode::kDone;
  }

 private:
  std::string name_, team_;
};

}  // namespace

const char kKeyNote[] =
    "The file holds the cluster's address and the only copy of the secret; it belongs to one "
    "person or\n"
    "node. Without --read and --write its jobs may touch no file.\n"
    "  operator   everything, on everybody's jobs       submitter  own jobs and streams\n"
    "  worker     a node (`patchbay join --key FILE`)   trainer    attaches to streams\n";

std::unique_ptr<Command> MakeKeyCreate() { return std::make_unique<KeyCreateCommand>(); }
std::unique_ptr<Command> MakeKeyList() { return std::make_unique<KeyListCommand>(); }
std::unique_ptr<Command> MakeKeyRevoke() { return std::make_unique<KeyRevokeCommand>(); }
std::unique_ptr<Command> MakeKeyTeam() { return std::make_unique<KeyTeamCommand>(); }

}  // namespace patchbay::cli
