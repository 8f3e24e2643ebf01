#include "runtime/wire/control/authorized_keys.h"

#include <algorithm>
#include <cerrno>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/core/hash.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/format/yaml/yaml.h"
#include "runtime/os/file.h"
#include "runtime/wire/control/keys.h"

namespace patchbay::control {
namespace {

constexpr std::string_view kSuffix = ".yaml";

const config::Key& KnownKeysTable() {
  using config::KeyType;
  static const config::Key table = {
      .name = "key",
      .type = KeyType::kMap,
      .members = {{.name = "name", .type = KeyType::kString, .required = true},
                  {.name = "role",
                   .type = KeyType::kChoice,
                   .required = true,
                   .choices = {"operator", "submitter", "worker", "trainer"}},
                  {.name = "public_key", .type = KeyType::kString, .required = true},
                  {.name = "read", .type = KeyType::kStringList, .fallback = Json::array()},
                  {.name = "write", .type = KeyType::kStringList, .fallback = Json::array()},
                  {.name = "team", .type = KeyType::kString},
                  {.name = "revoked", .type = KeyType::kBool, .fallback = false}}};
  return table;
}

const config::Key& ServerKeys() {
  using config::KeyType;
  static const config::Key table = {
      .name = "server key",
      .type = KeyType::kMap,
      .members = {{.name = "public_key", .type = KeyType::kString, .required = true},
                  {.name = "secret_key", .type = KeyType::kString, .required = true}}};
  return table;
}

std::string FormatKnownKey(const KnownKey& key) {
  const auto line = [](const char* name, const Json& value) {
    return StrCat(name, ": ", DumpJson(value), "\n");
  };
  return StrCat(line("name", key.name), line("role", RoleName(key.role)),
                line("public_key", key.public_key), line("read", key.read),
                line("write", key.write), key.team.empty() ? "" : line("team", key.team),
                line("revoked", key.revoked));
}

/// A team's name has the form of a key's.
Status CheckTeam(const std::string& team) {
  return team.empty() ? absl::OkStatus() : Annotate(CheckKeyName(team), "name of a team");
}

StatusOr<KnownKey> ParseKnownKey(std::string_view text, std::string_view name) {
  PB_ASSIGN_OR_RETURN(const auto node, config::ParseYaml(text, name));
  PB_ASSIGN_OR_RETURN(const Json values, config::Validate(node, KnownKeysTable()));
  KnownKey key;
  key.name = values["name"].get<std::string>();
  PB_ASSIGN_OR_RETURN(key.role, ParseRole(values["role"].get<std::string>()));
  key.public_key = values["public_key"].get<std::string>();
  key.read = values["read"].get<std::vector<std::string>>();
  key.write = values["write"].get<std::vector<std::string>>();
  key.team = values.value("team", "");
  key.revoked = values["revoked"].get<bool>();
  PB_RETURN_IF_ERROR(CheckKeyName(key.name));
  PB_RETURN_IF_ERROR(CheckTeam(key.team));
  PB_RETURN_IF_ERROR(CheckKeyText(key.public_key, "public_key"));
  for (const auto* list : {&key.read, &key.write}) {
    for (const auto& prefix : *list) PB_RETURN_IF_ERROR(CheckPrefix(prefix));
  }
  return key;
}

StatusOr<KnownKey> ReadKnownKey(const std::string& folder, const std::string& file) {
  PB_ASSIGN_OR_RETURN(const std::string text, ReadPrivateFile(StrCat(folder, "/", file)));
  auto key = ParseKnownKey(text, file);
  if (!key.ok()) return Annotate(key.status(), StrCat("load keys: ", file));
  if (StrCat(key->name, kSuffix) != file) {
    return InvalidArgument("load keys: ", file, ": holds the key of another name");
  }
  return key;
}

StatusOr<std::vector<std::string>> ListKeyFiles(const std::string& folder) {
  DIR* opened = opendir(folder.c_str());
  if (opened == nullptr) return FromErrno("load keys", folder, errno);
  std::vector<std::string> names;
  while (const dirent* entry = readdir(opened)) {
    const std::string_view name = entry->d_name;
    if (name.front() != '.' && name.size() > kSuffix.size() &&
        name.substr(name.size() - kSuffix.size()) == kSuffix) {
      names.emplace_back(name);
    }
  }
  closedir(opened);
  std::sort(names.begin(), names.end());
  return names;
}

/// A lock for changes of the table; released when closed.
StatusOr<UniqueFd> LockFolder(const std::string& folder) {
  const std::string path = StrCat(folder, "/lock");
  PB_ASSIGN_OR_RETURN(UniqueFd fd,
                      OpenFile(Folders::OfThisProcess(), path, O_RDWR | O_CREAT, 0600));
  while (flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return FromErrno("lock", path, errno);
  }
  return fd;
}

bool Exists(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0;
}

}  // namespace

StatusOr<AuthorizedKeys> AuthorizedKeys::Of(std::vector<KnownKey> keys) {
  if (keys.size() > kMaxKeys) return ResourceExhausted("load keys: more than ", kMaxKeys);
  AuthorizedKeys table;
  for (auto& key : keys) {
    const std::string name = key.name;
    if (!table.name_by_public_key_.emplace(key.public_key, name).second) {
      return InvalidArgument("load keys: ", name, ": another name has the same key");
    }
    if (!table.by_name_.emplace(name, std::move(key)).second) {
      return InvalidArgument("load keys: ", name, ": duplicate name");
    }
  }
  return table;
}

StatusOr<AuthorizedKeys> AuthorizedKeys::Load(const std::string& folder) {
  PB_RETURN_IF_ERROR(CheckPrivateFolder(folder));
  PB_ASSIGN_OR_RETURN(const auto files, ListKeyFiles(folder));
  std::vector<KnownKey> keys;
  for (const auto& file : files) {
    PB_ASSIGN_OR_RETURN(auto key, ReadKnownKey(folder, file));
    keys.push_back(std::move(key));
  }
  return Of(std::move(keys));
}

const KnownKey* AuthorizedKeys::FindByPublicKey(std::string_view public_key) const {
  const auto it = name_by_public_key_.find(public_key);
  return it == name_by_public_key_.end() ? nullptr : FindByName(it->second);
}

const KnownKey* AuthorizedKeys::FindByName(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &it->second;
}

std::vector<KnownKey> AuthorizedKeys::List() const {
  std::vector<KnownKey> keys;
  for (const auto& [name, key] : by_name_) keys.push_back(key);
  return keys;
}

StatusOr<KeyPair> ReadServerKey(const std::string& path) {
  PB_ASSIGN_OR_RETURN(const std::string text, ReadPrivateFile(path));
  PB_ASSIGN_OR_RETURN(const auto node, config::ParseYaml(text, "server key"));
  PB_ASSIGN_OR_RETURN(const Json values, config::Validate(node, ServerKeys()));
  KeyPair pair = {values["public_key"].get<std::string>(), values["secret_key"].get<std::string>()};
  if (const Status checked = CheckKeyPair(pair); !checked.ok()) {
    return Annotate(checked, StrCat("read server key: ", path));
  }
  return pair;
}

Status WriteServerKey(const std::string& path, const KeyPair& pair) {
  const std::string text =
      StrCat("# Patchbay scheduler key. It holds a secret: keep it to yourself (mode 600).\n",
             "public_key: ", DumpJson(Json(pair.public_key)),
             "\nsecret_key: ", DumpJson(Json(pair.secret_key)), "\n");
  return WriteFileDurably(Folders::OfThisProcess(), path, AsBytes(text), 0600);
}

StatusOr<Home> Home::Open(std::string folder) {
  PB_RETURN_IF_ERROR(MakeDirectories(Folders::OfThisProcess(), folder, 0700));
  PB_RETURN_IF_ERROR(CheckLocalFolder(folder));
  PB_RETURN_IF_ERROR(CheckPrivateFolder(folder));
  Home home(std::move(folder));
  PB_RETURN_IF_ERROR(MakeDirectories(Folders::OfThisProcess(), home.KeysFolder(), 0700));
  PB_RETURN_IF_ERROR(CheckPrivateFolder(home.KeysFolder()));
  return home;
}

std::string Home::ServerKeyPath() const { return StrCat(folder_, "/server.key"); }
std::string Home::KeysFolder() const { return StrCat(folder_, "/keys"); }

StatusOr<KeyPair> Home::ServerKey() const {
  PB_ASSIGN_OR_RETURN(const UniqueFd lock, LockFolder(folder_));
  if (Exists(ServerKeyPath())) return ReadServerKey(ServerKeyPath());
  const KeyPair pair = KeyPair::Generate();
  PB_RETURN_IF_ERROR(WriteServerKey(ServerKeyPath(), pair));
  return pair;
}

StatusOr<KeyFile> Home::NewKey(const NewKeyRequest& request) const {
  return AddKey(request, false);
}

StatusOr<KeyFile> Home::RenewKey(const NewKeyRequest& request) const {
  return AddKey(request, true);
}

StatusOr<KeyFile> Home::AddKey(const NewKeyRequest& request, bool replace) const {
  PB_RETURN_IF_ERROR(CheckKeyName(request.name));
  PB_RETURN_IF_ERROR(CheckTeam(request.team));
  for (const auto* list : {&request.read, &request.write}) {
    for (const auto& prefix : *list) PB_RETURN_IF_ERROR(CheckPrefix(prefix));
  }
  PB_ASSIGN_OR_RETURN(const KeyPair server, ServerKey());
  PB_ASSIGN_OR_RETURN(const UniqueFd lock, LockFolder(folder_));
  const std::string entry = StrCat(KeysFolder(), "/", request.name, kSuffix);
  if (!replace && Exists(entry)) {
    return AlreadyExists("make key: ", request.name, ": the name is taken");
  }
  const KeyFile key{.name = request.name,
                    .role = request.role,
                    .address = request.address,
                    .server_key = server.public_key,
                    .pair = KeyPair::Generate(),
                    .read = request.read,
                    .write = request.write};
  if (!request.path.empty()) PB_RETURN_IF_ERROR(WriteKeyFile(request.path, key, replace));
  const Status added = WriteFileDurably(Folders::OfThisProcess(), entry,
                                        AsBytes(FormatKnownKey({.name = key.name,
                                                                .role = key.role,
                                                                .public_key = key.pair.public_key,
                                                                .read = key.read,
                                                                .write = key.write,
                                                                .team = request.team})),
                                        0600);
  if (!added.ok() && !replace && !request.path.empty()) unlink(request.path.c_str());
  PB_RETURN_IF_ERROR(added);
  return key;
}

template <typename Change>
Status Home::ChangeKey(const std::string& name, std::string_view doing,
                       const Change& change) const {
  PB_RETURN_IF_ERROR(CheckKeyName(name));
  PB_ASSIGN_OR_RETURN(const UniqueFd lock, LockFolder(folder_));
  const std::string file = StrCat(name, kSuffix);
  if (!Exists(StrCat(KeysFolder(), "/", file))) {
    return NotFound(doing, ": ", name, ": no such key");
  }
  PB_ASSIGN_OR_RETURN(auto key, ReadKnownKey(KeysFolder(), file));
  change(key);
  return WriteFileDurably(Folders::OfThisProcess(), StrCat(KeysFolder(), "/", file),
                          AsBytes(FormatKnownKey(key)), 0600);
}

Status Home::Revoke(const std::string& name) const {
  return ChangeKey(name, "revoke key", [](KnownKey& key) { key.revoked = true; });
}

Status Home::SetTeam(const std::string& name, const std::string& team) const {
  PB_RETURN_IF_ERROR(CheckTeam(team));
  return ChangeKey(name, "move key", [&](KnownKey& key) { key.team = team; });
}

StatusOr<AuthorizedKeys> Home::LoadKeys() const { return AuthorizedKeys::Load(KeysFolder()); }

}  // namespace patchbay::control
