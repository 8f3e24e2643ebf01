#include "runtime/cli/keys/pseudonym_key.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
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

std::string KeyPathIn(const std::string& home) { return home + "/pseudonym.key"; }

StatusOr<std::string> KeyPath(const client::Environment& environment) {
  PB_ASSIGN_OR_RETURN(const control::Home home, control::Home::Open(environment.home));
  return KeyPathIn(home.folder());
}

Status Refused(const std::string& path, std::string_view why) {
  return ErrorAbout(absl::StatusCode::kInvalidArgument, "read pseudonym key", path, why);
}

/// Reads a key that is not of a home: an exported one, or a site's.
StatusOr<std::string> KeyIn(const std::string& path) {
  const StatusOr<UniqueFd> fd =
      OpenFile(Folders::OfThisUser(), path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
  struct stat st {};
  if (!fd.ok() && lstat(path.c_str(), &st) == 0 && S_ISLNK(st.st_mode)) {
    return Refused(path, "a link; name the file itself");
  }
  PB_RETURN_IF_ERROR(fd.status());
  if (fstat(fd->get(), &st) != 0) return FromErrno("stat", path, errno);
  if (!S_ISREG(st.st_mode)) return Refused(path, "not a file");
  if ((st.st_mode & 027) != 0) {
    return Refused(path, "others may read it, or its group may write it; chmod 640 it");
  }
  if (st.st_size == 0) return Refused(path, "empty");
  if (static_cast<std::size_t>(st.st_size) > kMaxGivenBytes) return Refused(path, "too long");
  std::string key(static_cast<std::size_t>(st.st_size), '\0');
  PB_RETURN_IF_ERROR(ReadAt(fd->get(), 0, std::as_writable_bytes(std::span(key)), path));
  while (!key.empty() && (key.back() == '\n' || key.back() == '\r')) key.pop_back();
  const StatusOr<Digest> parsed = Digest::FromHex(key);
  if (parsed.ok()) return parsed->Hex();
  return Refused(path, "not 64 hex digits, as `key pseudonym export` writes them");
}

/// The key that the home itself has; NotFound without one.
StatusOr<std::string> OwnKey(const std::string& path) {
  PB_ASSIGN_OR_RETURN(const std::string key, ReadFile(Folders::OfThisUser(), path, kKeyDigits + 1));
  if (Digest::FromHex(key).ok()) return key;
  return ErrorAbout(absl::StatusCode::kDataLoss, "read pseudonym key", path, "not 64 hex digits");
}

/// The site's key, unless stores of this home may have names by another one.
StatusOr<std::string> SiteKey(const client::Site& site, const std::string& own_path) {
  const StatusOr<std::string> key = KeyIn(site.pseudonym_key);
  if (!key.ok()) {
    return Annotate(key.status(), StrCat(site.file, ": the site's homes share one pseudonym key"));
  }
  const StatusOr<std::string> own = OwnKey(own_path);
  if (absl::IsNotFound(own.status()) || (own.ok() && *own == *key)) return key;
  PB_RETURN_IF_ERROR(own.status());
  return FailedPrecondition(
      "read pseudonym key: ", own_path, ": this home has another key than its site (",
      site.pseudonym_key,
      "), and stores may be named by it; `key pseudonym export` keeps it, then ",
      "`key pseudonym import ", site.pseudonym_key, " --force` replaces it");
}

}  // namespace

StatusOr<std::string> PseudonymKey(const client::Environment& environment) {
  PB_ASSIGN_OR_RETURN(const client::Site site, client::ReadSite(environment));
  PB_ASSIGN_OR_RETURN(const std::string path, KeyPath(environment));
  if (!site.pseudonym_key.empty()) return SiteKey(site, path);
  StatusOr<std::string> key = OwnKey(path);
  if (!absl::IsNotFound(key.status())) return key;
  PB_RETURN_IF_ERROR(PlaceKey(path, FreshKey()));
  return OwnKey(path);
}

Status CheckSiteKey(const client::Environment& environment, const client::Site& site) {
  return SiteKey(site, KeyPathIn(environment.home)).status();
}

Status ExportPseudonymKey(const client::Environment& environment, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const std::string own, KeyPath(environment));
  StatusOr<std::string> key = OwnKey(own);
  if (absl::IsNotFound(key.status())) key = PseudonymKey(environment);
  PB_RETURN_IF_ERROR(key.status());
  const StatusOr<UniqueFd> fd =
      OpenFile(Folders::OfThisUser(), path, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (absl::IsAlreadyExists(fd.status())) {
    return ErrorAbout(absl::StatusCode::kAlreadyExists, "export pseudonym key", path,
                      "something of that name is already there");
  }
  PB_RETURN_IF_ERROR(fd.status());
  const std::string line = *key + "\n";
  const Status written = WriteAt(fd->get(), 0, AsBytes(line), path);
  if (!written.ok()) unlink(path.c_str());
  return written;
}

Status ImportPseudonymKey(const client::Environment& environment, const std::string& path,
                          bool replace) {
  PB_ASSIGN_OR_RETURN(const std::string given, KeyIn(path));
  PB_ASSIGN_OR_RETURN(const std::string own, KeyPath(environment));
  if (replace) return WriteFileDurably(Folders::OfThisUser(), own, AsBytes(given), 0600);
  PB_RETURN_IF_ERROR(PlaceKey(own, given));
  PB_ASSIGN_OR_RETURN(const std::string kept, OwnKey(own));
  if (kept == given) return absl::OkStatus();
  return AlreadyExists("import pseudonym key: ", own,
                       ": this home has another key already, and stores may be named by it; `key "
                       "pseudonym export` keeps it, then --force replaces it");
}

}  // namespace patchbay::cli
