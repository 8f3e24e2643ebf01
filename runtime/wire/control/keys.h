// Key pairs, roles and the files they live in. Identity in Patchbay is a key; names in messages
// mean nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"

namespace patchbay::control {

inline constexpr std::size_t kMaxKeyFileBytes = 64u << 10;

/// The content of a file that only its owner may read. PermissionDenied when someone else (but
/// root) owns it or its mode lets others in; root's, for a process that is not root, its group may
/// read: so do Kubernetes and systemd hand out secrets. An anonymous file (memfd) has no name to
/// open it by, so its mode does not matter.
StatusOr<std::string> ReadPrivateFile(const std::string& path);

/// OK for a folder of this user (or root) that others cannot enter.
Status CheckPrivateFolder(const std::string& path);

/// FailedPrecondition when the folder lies on NFS, CIFS or SMB: file modes and locks are not
/// reliable there.
Status CheckLocalFolder(const std::string& path);

/// The requests that a key may make. The table of messages per role is scheduler/policy/roles.h.
enum class Role : std::uint8_t {
  kOperator,   ///< everything a submitter may, on everybody's jobs; keys, drain, shutdown
  kSubmitter,  ///< submits jobs, sees and cancels its own, trains from its own streams
  kWorker,     ///< an agent and its workers
  kTrainer,    ///< attaches to streams
};

const char* RoleName(Role role);
StatusOr<Role> ParseRole(std::string_view name);

inline constexpr std::size_t kKeyTextLength = 40;  ///< Z85 of 32 bytes

/// A Curve25519 pair, both in Z85.
struct KeyPair {
  std::string public_key;
  std::string secret_key;

  static KeyPair Generate();
};

/// InvalidArgument unless `text` is 40 characters of Z85 (`what` names it in the error).
Status CheckKeyText(std::string_view text, std::string_view what);
/// InvalidArgument unless the secret key belongs to the public key.
Status CheckKeyPair(const KeyPair& pair);

/// Everything that a process needs to connect to one cluster. `patchbay key new` writes it;
/// `--cluster FILE` and `join --key FILE` read it.
struct KeyFile {
  std::string name;
  Role role = Role::kSubmitter;
  std::string address;     ///< the scheduler's: "tcp://10.0.0.7:7678" or "ipc://@name"
  std::string server_key;  ///< the scheduler's public key
  KeyPair pair;
  /// Absolute folders it may read below; "/" = all; none = none.
  std::vector<std::string> read = {};
  std::vector<std::string> write = {};  ///< the same for writing
};

/// Reads a key file (also /proc/self/fd/N). PermissionDenied when another user owns it or group or
/// others may read it; InvalidArgument naming the field that is wrong.
StatusOr<KeyFile> ReadKeyFile(const std::string& path);
/// Durable, mode 0600. Does not replace an existing file unless `replace`.
Status WriteKeyFile(const std::string& path, const KeyFile& key, bool replace = false);
/// The text of a key file, for handing it on through a memfd.
std::string FormatKeyFile(const KeyFile& key);
StatusOr<KeyFile> ParseKeyFile(std::string_view text);

/// A key name: 1 to 64 of letters, digits, '.', '_', '-', not starting with '.' or '-'.
Status CheckKeyName(std::string_view name);
/// InvalidArgument unless the prefix is absolute and normalised, without "..".
Status CheckPrefix(std::string_view prefix);

}  // namespace patchbay::control
