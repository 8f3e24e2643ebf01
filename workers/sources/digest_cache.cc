#include "workers/sources/digest_cache.h"

#include <charconv>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/os/file.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kRecordMark = "2 ";
constexpr std::size_t kMaxCacheBytes = 4u << 20;  ///< about 30,000 slides; past it, starts afresh
constexpr std::size_t kReadBytes = 1u << 20;

std::string KeyText(const FileIdentity& id) {
  return StrCat(kRecordMark, id.device, " ", id.inode, " ", id.size_bytes, " ", id.mtime_ns, " ",
                id.ctime_ns, " ");
}

/// "2 device inode size mtime ctime digest checksum\n"
std::string RecordText(const FileIdentity& id, const Digest& digest) {
  const std::string body = StrCat(KeyText(id), digest.Hex());
  return StrCat(body, " ", Crc32c(AsBytes(body)), "\n");
}

/// The digest of a line that starts with `key`, or nullopt when it is damaged.
std::optional<Digest> ParseRecord(std::string_view line, std::string_view key) {
  if (line.substr(0, key.size()) != key) return std::nullopt;
  const auto space = line.rfind(' ');
  if (space < key.size()) return std::nullopt;
  std::uint32_t stored = 0;
  const char* end = line.data() + line.size();
  const auto number = std::from_chars(line.data() + space + 1, end, stored);
  if (number.ec != std::errc() || number.ptr != end) return std::nullopt;
  if (stored != Crc32c(AsBytes(line.substr(0, space)))) return std::nullopt;
  auto digest = Digest::FromHex(line.substr(key.size(), space - key.size()));
  if (!digest.ok()) return std::nullopt;
  return *digest;
}

StatusOr<struct stat> StatOf(int fd, const std::string& path) {
  struct stat st {};
  if (fstat(fd, &st) != 0) return FromErrno("stat", path, errno);
  if (!S_ISREG(st.st_mode)) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "digest", path, "not a regular file");
  }
  return st;
}

StatusOr<Digest> HashFile(int fd, std::uint64_t size, const std::string& path,
                          const std::function<Status()>& after_block) {
  Sha256 hash;
  std::vector<std::byte> buffer(kReadBytes);
  for (std::uint64_t at = 0; at < size;) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), size - at));
    const auto part = std::span(buffer).first(n);
    PB_RETURN_IF_ERROR(ReadAt(fd, at, part, path));
    hash.Update(part);
    at += n;
    if (after_block) PB_RETURN_IF_ERROR(after_block());
  }
  return hash.Finish();
}

}  // namespace

std::string DigestCache::CachePath() const { return StrCat(folder_, "/slide-digests"); }

StatusOr<Digest> DigestCache::DigestOf(const std::string& path,
                                       const std::function<Status()>& after_block) const {
  PB_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(allowed_, path, O_RDONLY | O_NONBLOCK));
  PB_ASSIGN_OR_RETURN(const struct stat before, StatOf(fd.get(), path));
  const FileIdentity identity = IdentityOf(before);
  if (const auto known = Find(identity)) return *known;
  PB_ASSIGN_OR_RETURN(const Digest digest,
                      HashFile(fd.get(), identity.size_bytes, path, after_block));
  PB_ASSIGN_OR_RETURN(const struct stat after, StatOf(fd.get(), path));
  if (!(IdentityOf(after) == identity)) {
    return ErrorAbout(absl::StatusCode::kFailedPrecondition, "digest", path,
                      "the file is being changed");
  }
  // A digest that cannot be cached costs time only.
  (void)Store(identity, digest);
  return digest;
}

std::optional<Digest> DigestCache::Find(const FileIdentity& identity) const {
  if (folder_.empty()) return std::nullopt;
  const auto text = ReadFile(allowed_, CachePath(), 2 * kMaxCacheBytes);
  if (!text.ok()) return std::nullopt;
  const std::string key = KeyText(identity);
  std::optional<Digest> found;
  for (std::string_view rest = *text; !rest.empty();) {
    const auto end = rest.find('\n');
    if (end == std::string_view::npos) break;  // a record cut short
    if (auto digest = ParseRecord(rest.substr(0, end), key)) found = digest;
    rest.remove_prefix(end + 1);
  }
  return found;
}

Status DigestCache::Store(const FileIdentity& identity, const Digest& digest) const {
  if (folder_.empty()) return absl::OkStatus();
  PB_RETURN_IF_ERROR(MakeDirectories(allowed_, folder_, 0700));
  PB_ASSIGN_OR_RETURN(const UniqueFd fd,
                      OpenFile(allowed_, CachePath(), O_RDWR | O_CREAT | O_APPEND, 0600));
  if (flock(fd.get(), LOCK_EX) != 0) return FromErrno("lock", CachePath(), errno);
  struct stat st {};
  if (fstat(fd.get(), &st) != 0) return FromErrno("stat", CachePath(), errno);
  if (static_cast<std::size_t>(st.st_size) > kMaxCacheBytes && ftruncate(fd.get(), 0) != 0) {
    return FromErrno("truncate", CachePath(), errno);
  }
  // A leading newline ends whatever a crash may have left of the record before.
  const std::string record = StrCat("\n", RecordText(identity, digest));
  std::string_view rest = record;
  while (!rest.empty()) {
    const ssize_t n = write(fd.get(), rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FromErrno("write", CachePath(), errno);
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  if (fdatasync(fd.get()) != 0) return FromErrno("sync", CachePath(), errno);
  return absl::OkStatus();
}

}  // namespace patchbay::workers
