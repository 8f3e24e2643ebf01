#include "runtime/cli/pseudonym_key.h"

#include <array>

#include "runtime/base/file.h"
#include "runtime/base/hash.h"
#include "runtime/base/strings.h"
#include "runtime/control/key_table.h"

namespace patchbay::cli {
namespace {

constexpr std::size_t kKeyDigits = 64;

}  // namespace

StatusOr<std::string> PseudonymKey(const Environment& environment) {
  PB_ASSIGN_OR_RETURN(const control::Home home, control::Home::Open(environment.home));
  const std::string path = home.folder() + "/pseudonym.key";
  StatusOr<std::string> key = ReadFile(path, kKeyDigits + 1);
  if (absl::IsNotFound(key.status())) {
    Digest fresh;
    FillRandom(std::as_writable_bytes(std::span(fresh.bytes)));
    PB_RETURN_IF_ERROR(WriteFileDurably(path, AsBytes(fresh.Hex()), 0600));
    // Two commands may start at once: both read what was renamed last.
    key = ReadFile(path, kKeyDigits + 1);
  }
  PB_RETURN_IF_ERROR(key.status());
  if (!Digest::FromHex(*key).ok()) {
    return absl::DataLossError(StrCat("read pseudonym key: ", path, ": not 64 hex digits"));
  }
  return *key;
}

}  // namespace patchbay::cli
