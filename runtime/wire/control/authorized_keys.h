// The scheduler's list of keys it knows: one small file a key, public halves only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/wire/control/keys.h"

namespace patchbay::control {

inline constexpr std::size_t kMaxKeys = 10'000;

/// A key as the scheduler knows it.
struct KnownKey {
  std::string name;
  Role role = Role::kSubmitter;
  std::string public_key;
  std::vector<std::string> read = {};
  std::vector<std::string> write = {};
  std::string team = {};  ///< its jobs use the shares of this team; empty = the default team's
  bool revoked = false;
};

/// The keys of one cluster at one moment. Immutable once loaded; a reload makes another one.
class AuthorizedKeys {
 public:
  AuthorizedKeys() = default;
  /// Reads every `NAME.yaml` of the folder; one bad file fails the load, naming it.
  static StatusOr<AuthorizedKeys> Load(const std::string& folder);
  /// From a list, for tests. InvalidArgument on a repeated name or public key.
  static StatusOr<AuthorizedKeys> Of(std::vector<KnownKey> keys);

  /// The key with this public key (Z85); nullptr when unknown. Revoked keys are found too.
  const KnownKey* FindByPublicKey(std::string_view public_key) const;
  const KnownKey* FindByName(std::string_view name) const;
  std::vector<KnownKey> List() const;

 private:
  std::map<std::string, KnownKey, std::less<>> by_name_;
  std::map<std::string, std::string, std::less<>> name_by_public_key_;
};

/// PATCHBAY_HOME (default ~/.patchbay): the server's key, the key table and this user's key files.
///
///   server.key     the scheduler's own pair, 0600
///   keys/NAME.yaml key table
///   lock           held while a command changes the table
///
/// Everything in it is the owner's alone (0700/0600). Changes are atomic and durable.
class Home {
 public:
  /// The caller resolves $PATCHBAY_HOME or $HOME/.patchbay. Creates missing folders;
  /// PermissionDenied when another user owns the folder or it is open to others; FailedPrecondition
  /// on a network file system (NFS, CIFS, SMB).
  static StatusOr<Home> Open(std::string folder);

  const std::string& folder() const { return folder_; }
  std::string ServerKeyPath() const;
  std::string KeysFolder() const;

  /// The scheduler's pair, made at the first call.
  StatusOr<KeyPair> ServerKey() const;

  struct NewKeyRequest {
    std::string name;
    Role role = Role::kSubmitter;
    std::string address;  ///< written into the key file
    std::vector<std::string> read = {}, write = {};
    /// The path of its key file. The file is written before the key enters the table, so that no
    /// name belongs to a key whose secret is lost; "" = the caller keeps the secret.
    std::string path = {};
    std::string team = {};
  };
  /// Adds a key to the table and returns its key file (the secret is kept nowhere else).
  /// AlreadyExists when the name is taken, revoked or not, or when there is a file at `path`. After
  /// any failure the name is as free as before.
  StatusOr<KeyFile> NewKey(const NewKeyRequest& request) const;
  /// Makes a key that replaces the one of that name, if there is one, and the file at `path`.
  StatusOr<KeyFile> RenewKey(const NewKeyRequest& request) const;
  /// Moves it to a team; "" = to none. The scheduler acts on it when told to reload.
  Status SetTeam(const std::string& name, const std::string& team) const;
  /// Marks it revoked. The scheduler acts on it when told to reload. NotFound for an unknown name.
  Status Revoke(const std::string& name) const;
  StatusOr<AuthorizedKeys> LoadKeys() const;

 private:
  explicit Home(std::string folder) : folder_(std::move(folder)) {}
  StatusOr<KeyFile> AddKey(const NewKeyRequest& request, bool replace) const;
  /// Changes the entry of that name.
  template <typename Change>
  Status ChangeKey(const std::string& name, std::string_view doing, const Change& change) const;

  std::string folder_;
};

/// The scheduler's own pair. The file holds public_key and secret_key; owner-only like a key file.
StatusOr<KeyPair> ReadServerKey(const std::string& path);
Status WriteServerKey(const std::string& path, const KeyPair& pair);

}  // namespace patchbay::control
