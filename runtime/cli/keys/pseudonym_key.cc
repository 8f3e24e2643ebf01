#include "runtime/cli/keys/pseudonym_key.h"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include "runtime/core/hash.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "runtime/wire/control/authorized_keys.h"

namespace patchbay::cli {
namespace {

constexpr std::size_t kKeyDigits = 64;
constexpr std::size_t kMaxGivenBytes = 4096;

/// Gives `path` this key, unless it has one, or another command that starts at the same time was
/// first: a key that was in use once is never replaced unasked.
Status PlaceKey(const std::string& path, const std::string& key) {
  const std::string mine = StrCat(path, ".", Hex64(RandomU64()));
  PB_RETURN_IF_ERROR(WriteFileDurably(Folders::OfThisUser(), mine, AsBytes(key), 0600));
  const int failed = link(mine.c_str(), path.c_str()) == 0 ? 0 : errno;
  unlink(mine.c_str());
  if (failed != 0 && failed != EEXIST) return FromErrno("make pseudonym key", path, failed);
  return SyncDirectory(Folders::OfThisUser(), path.substr(0, path.rfind('/')));
}

std::string FreshKey() {
  Digest fresh;
  FillRandom(std::as_writable_bytes(std::span(fresh.bytes)));
  return fresh.Hex();
}

StatusOr<std::string> KeyPath(const client::Environment& environment) {
  PB_ASSIGN_OR_RETURN(const control::Home home, control::Home::Open(environment.home));
  return home.folder() + "/pseudonym.key";
}

/// Reads the key in an exported file.
StatusOr<std::string> GivenKey(const std::string& path) {
  PB_ASSIGN_OR_RETURN(std::string key, ReadFile(Folders::OfThisUser(), path, kMaxGivenBytes));
  while (!key.empty() && (key.back() == '\n' || key.back() == '\r')) key.pop_back();
  const StatusOr<Digest> parsed = Digest::FromHex(key);
  if (parsed.ok()) return parsed->Hex();
  return ErrorAbout(absl::StatusCode::kInvalidArgument, "import pseudonym key", path,
                    "not 64 hex digits, as `key pseudonym export` writes them");
}

}  // namespace

StatusOr<std::string> PseudonymKey(const client::Environment& environment) {
  PB_ASSIGN_OR_RETURN(const std::string path, KeyPath(environment));
  StatusOr<std::string> key = ReadFile(Folders::OfThisUser(), path, kKeyDigits + 1);
  if (absl::IsNotFound(key.status())) {
    PB_RETURN_IF_ERROR(PlaceKey(path, FreshKey()));
    key = ReadFile(Folders::OfThisUser(), path, kKeyDigits + 1);
  }
  PB_RETURN_IF_ERROR(key.status());
  if (!Digest::FromHex(*key).ok()) {
    return ErrorAbout(absl::StatusCode::kDataLoss, "read pseudonym key", path, "not 64 hex digits");
  }
  return *key;
}

Status ExportPseudonymKey(const client::Environment& environment, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const std::string key, PseudonymKey(environment));
  const StatusOr<UniqueFd> fd =
      OpenFile(Folders::OfThisUser(), path, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (absl::IsAlreadyExists(fd.status())) {
    return ErrorAbout(absl::StatusCode::kAlreadyExists, "export pseudonym key", path,
                      "something of that name is already there");
  }
  PB_RETURN_IF_ERROR(fd.status());
  const std::string line = key + "\n";
  const Status written = WriteAt(fd->get(), 0, AsBytes(line), path);
  if (!written.ok()) unlink(path.c_str());
  return written;
}

Status ImportPseudonymKey(const client::Environment& environment, const std::string& path,
                          bool replace) {
  PB_ASSIGN_OR_RETURN(const std::string given, GivenKey(path));
  PB_ASSIGN_OR_RETURN(const std::string own, KeyPath(environment));
  if (replace) return WriteFileDurably(Folders::OfThisUser(), own, AsBytes(given), 0600);
  PB_RETURN_IF_ERROR(PlaceKey(own, given));
  PB_ASSIGN_OR_RETURN(const std::string kept, PseudonymKey(environment));
  if (kept == given) return absl::OkStatus();
  return AlreadyExists("import pseudonym key: ", own,
                       ": this home has another key already, and stores may be named by it; `key "
                       "pseudonym export` keeps it, then --force replaces it");
}

}  // namespace patchbay::cli
