#include "runtime/wire/control/keys.h"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>
#include <zmq.h>

#include "runtime/core/hash.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/format/yaml/yaml.h"
#include "runtime/os/file.h"
#include "runtime/wire/control/address.h"

namespace patchbay::control {
namespace {

constexpr std::uint32_t kNfsMagic = 0x6969, kSmbMagic = 0x517B, kCifsMagic = 0xFF534D42,
                        kSmb2Magic = 0xFE534D42;

Status CheckOwner(const struct stat& status, std::string_view path) {
  if (status.st_uid == geteuid() || status.st_uid == 0) return absl::OkStatus();
  return PermissionDenied("open: ", path, ": it belongs to another user");
}

constexpr std::array<const char*, 4> kRoleNames = {"operator", "submitter", "worker", "trainer"};
constexpr std::size_t kMaxKeyName = 64;
constexpr std::size_t kMaxPrefixes = 256;
constexpr std::size_t kMaxPrefixLength = 4096;

bool IsZ85(char c) {
  constexpr std::string_view kAlphabet =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
  return kAlphabet.find(c) != std::string_view::npos;
}

config::Key Text(const char* name, const char* help) {
  return {.name = name, .type = config::KeyType::kString, .required = true, .help = help};
}

config::Key Folders(const char* name, const char* help) {
  return {.name = name,
          .type = config::KeyType::kStringList,
          .fallback = Json::array(),
          .max_items = kMaxPrefixes,
          .help = help};
}

const config::Key& KeyFileTable() {
  static const config::Key table = {
      .name = "key file",
      .type = config::KeyType::kMap,
      .members = {Text("name", "owner of the key"),
                  {.name = "role",
                   .type = config::KeyType::kChoice,
                   .required = true,
                   .choices = {kRoleNames.begin(), kRoleNames.end()},
                   .help = "requests that the key may make"},
                  Text("address", "where the scheduler listens"),
                  Text("server_key", "the scheduler's public key"),
                  Text("public_key", "this key's public half"),
                  Text("secret_key", "this key's secret half"),
                  Folders("read", "folders below which it may read"),
                  Folders("write", "folders below which it may write")}};
  return table;
}

std::vector<std::string> Strings(const Json& list) {
  std::vector<std::string> out;
  for (const auto& each : list) out.push_back(each.get<std::string>());
  return out;
}

Status CheckKeyFile(const KeyFile& key) {
  PB_RETURN_IF_ERROR(CheckKeyName(key.name));
  PB_RETURN_IF_ERROR(ParseAddress(key.address).status());
  PB_RETURN_IF_ERROR(CheckKeyText(key.server_key, "server_key"));
  PB_RETURN_IF_ERROR(CheckKeyPair(key.pair));
  for (const auto* list : {&key.read, &key.write}) {
    for (const auto& prefix : *list) PB_RETURN_IF_ERROR(CheckPrefix(prefix));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::string> ReadPrivateFile(const std::string& path) {
  PB_ASSIGN_OR_RETURN(const UniqueFd fd,
                      OpenFile(Folders::OfThisProcess(), path, O_RDONLY | O_NONBLOCK));
  struct stat status;
  if (fstat(fd.get(), &status) != 0) return FromErrno("stat", path, errno);
  if (!S_ISREG(status.st_mode)) {
    return InvalidArgument("read key file: ", path, ": not a regular file");
  }
  PB_RETURN_IF_ERROR(CheckOwner(status, path));
  const bool anonymous = status.st_nlink == 0;
  // Kubernetes and systemd hand a secret to a process as root's file that its group may read.
  const bool handed_out = status.st_uid == 0 && geteuid() != 0;
  if (!anonymous && (status.st_mode & (handed_out ? 037 : 077)) != 0) {
    return PermissionDenied("read key file: ", path, ": readable by others; chmod 600 it");
  }
  if (status.st_size > static_cast<off_t>(kMaxKeyFileBytes)) {
    return InvalidArgument("read key file: ", path, ": too large for a key");
  }
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  PB_RETURN_IF_ERROR(
      ReadAt(fd.get(), 0, std::as_writable_bytes(std::span(text.data(), text.size())), path));
  return text;
}

Status CheckPrivateFolder(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return FromErrno("open", path, errno);
  if (!S_ISDIR(status.st_mode)) return InvalidArgument("open: ", path, ": not a folder");
  PB_RETURN_IF_ERROR(CheckOwner(status, path));
  if ((status.st_mode & 077) != 0) {
    return PermissionDenied("open: ", path, ": others may enter it; chmod 700 it");
  }
  return absl::OkStatus();
}

Status CheckLocalFolder(const std::string& path) {
  struct statfs status;
  if (statfs(path.c_str(), &status) != 0) return FromErrno("statfs", path, errno);
  switch (static_cast<std::uint32_t>(status.f_type)) {
    case kNfsMagic:
    case kSmbMagic:
    case kCifsMagic:
    case kSmb2Magic:
      return FailedPrecondition("open: ", path, ": keys may not lie on a network file system");
    default:
      return absl::OkStatus();
  }
}

const char* RoleName(Role role) { return kRoleNames[static_cast<std::size_t>(role)]; }

StatusOr<Role> ParseRole(std::string_view name) {
  for (std::size_t i = 0; i < kRoleNames.size(); ++i) {
    if (name == kRoleNames[i]) return static_cast<Role>(i);
  }
  return InvalidArgument("parse role: ", name, ": must be operator, submitter, worker or trainer");
}

KeyPair KeyPair::Generate() {
  std::array<char, kKeyTextLength + 1> public_key, secret_key;
  PB_CHECK(zmq_curve_keypair(public_key.data(), secret_key.data()) == 0);
  return {std::string(public_key.data()), std::string(secret_key.data())};
}

Status CheckKeyText(std::string_view text, std::string_view what) {
  if (text.size() == kKeyTextLength && std::all_of(text.begin(), text.end(), IsZ85)) {
    std::array<std::uint8_t, 32> bytes;
    if (zmq_z85_decode(bytes.data(), std::string(text).c_str()) != nullptr) {
      return absl::OkStatus();
    }
  }
  return InvalidArgument("read key: ", what, ": not a key (40 characters of Z85)");
}

Status CheckKeyPair(const KeyPair& pair) {
  PB_RETURN_IF_ERROR(CheckKeyText(pair.public_key, "public_key"));
  PB_RETURN_IF_ERROR(CheckKeyText(pair.secret_key, "secret_key"));
  std::array<char, kKeyTextLength + 1> derived;
  if (zmq_curve_public(derived.data(), pair.secret_key.c_str()) != 0 ||
      pair.public_key != derived.data()) {
    return InvalidArgument("read key: secret_key: it does not belong to public_key");
  }
  return absl::OkStatus();
}

Status CheckKeyName(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  const bool good = !name.empty() && name.size() <= kMaxKeyName && name.front() != '.' &&
                    name.front() != '-' && std::all_of(name.begin(), name.end(), plain);
  if (good) return absl::OkStatus();
  return InvalidArgument(
      "check key name: ", name,
      ": must be 1 to 64 letters, digits, '.', '_' or '-', not starting with '.' or '-'");
}

Status CheckPrefix(std::string_view prefix) {
  const auto bad = [&](std::string_view cause) {
    return InvalidArgument("check folder: ", prefix, ": ", cause);
  };
  if (prefix == "/") return absl::OkStatus();
  if (prefix.empty() || prefix.front() != '/') return bad("must be an absolute path");
  if (prefix.size() > kMaxPrefixLength) return bad("too long");
  if (prefix.find('\0') != std::string_view::npos) return bad("must not contain NUL");
  if (prefix.back() == '/') return bad("must not end with '/'");
  for (std::size_t start = 1; start <= prefix.size();) {
    const std::size_t end = std::min(prefix.find('/', start), prefix.size());
    const std::string_view part = prefix.substr(start, end - start);
    if (part.empty() || part == "." || part == "..") return bad("must not contain //, . or ..");
    start = end + 1;
  }
  return absl::OkStatus();
}

std::string FormatKeyFile(const KeyFile& key) {
  // JSON strings and lists are YAML too, and quoted the same way by every reader.
  const auto line = [](const char* name, const Json& value) {
    return StrCat(name, ": ", DumpJson(value), "\n");
  };
  return StrCat("# Patchbay key file. It holds a secret: keep it to yourself (mode 600).\n",
                line("name", key.name), line("role", RoleName(key.role)),
                line("address", key.address), line("server_key", key.server_key),
                line("public_key", key.pair.public_key), line("secret_key", key.pair.secret_key),
                line("read", key.read), line("write", key.write));
}

StatusOr<KeyFile> ParseKeyFile(std::string_view text) {
  PB_ASSIGN_OR_RETURN(const auto node, config::ParseYaml(text, "key file"));
  PB_ASSIGN_OR_RETURN(const Json values, config::Validate(node, KeyFileTable()));
  KeyFile key;
  key.name = values["name"].get<std::string>();
  PB_ASSIGN_OR_RETURN(key.role, ParseRole(values["role"].get<std::string>()));
  key.address = values["address"].get<std::string>();
  key.server_key = values["server_key"].get<std::string>();
  key.pair = {values["public_key"].get<std::string>(), values["secret_key"].get<std::string>()};
  key.read = Strings(values["read"]);
  key.write = Strings(values["write"]);
  PB_RETURN_IF_ERROR(CheckKeyFile(key));
  return key;
}

StatusOr<KeyFile> ReadKeyFile(const std::string& path) {
  PB_ASSIGN_OR_RETURN(const std::string text, ReadPrivateFile(path));
  auto key = ParseKeyFile(text);
  if (!key.ok()) return Annotate(key.status(), StrCat("read key file: ", path));
  return key;
}

Status WriteKeyFile(const std::string& path, const KeyFile& key, bool replace) {
  PB_RETURN_IF_ERROR(CheckKeyFile(key));
  struct stat status;
  if (!replace && lstat(path.c_str(), &status) == 0) {
    return AlreadyExists("write key file: ", path, ": it exists; give another name");
  }
  return WriteFileDurably(Folders::OfThisProcess(), path, AsBytes(FormatKeyFile(key)), 0600);
}

}  // namespace patchbay::control
