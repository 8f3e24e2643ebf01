#include "runtime/cli/pseudonym_key.h"

#include <array>
#include <cerrno>

#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/base/hash.h"
#include "runtime/base/strings.h"
#include "runtime/control/key_table.h"

namespace patchbay::cli {
namespace {

constexpr std::size_t kKeyDigits = 64;

/// Gives `path` a fresh key, unless another command that starts at the same time was first: a key
/// that was in use once is never replaced.
Status MakeKey(const std::string& path) {
  Digest fresh;
  FillRandom(std::as_writable_bytes(std::span(fresh.bytes)));
  const std::string mine = StrCat(path, ".", Hex64(RandomU64()));
  PB_RETURN_IF_ERROR(WriteFileDurably(mine, AsBytes(fresh.Hex()), 0600));
  const int failed = link(mine.c_str(), path.c_str()) == 0 ? 0 : errno;
  unlink(mine.c_str());
  if (failed != 0 && failed != EEXIST) return FromErrno("make pseudonym key", path, failed);
  return SyncDirectory(path.substr(0, path.rfind('/')));
}

}  // namespace

StatusOr<std::string> PseudonymKey(const client::Environment& environment) {
  PB_ASSIGN_OR_RETURN(const control::Home home, control::Home::Open(environment.home));
  const std::string path = home.folder() + "/pseudonym.key";
  StatusOr<std::string> key = ReadFile(path, kKeyDigits + 1);
  if (absl::IsNotFound(key.status())) {
    PB_RETURN_IF_ERROR(MakeKey(path));
    key = ReadFile(path, kKeyDigits + 1);
  }
  PB_RETURN_IF_ERROR(key.status());
  if (!Digest::FromHex(*key).ok()) {
    return absl::DataLossError(StrCat("read pseudonym key: ", path, ": not 64 hex digits"));
  }
  return *key;
}

}  // namespace patchbay::cli
