#include "runtime/cli/stream/position_file.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <span>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/client/resume_token.h"
#include "runtime/core/other_version.h"
#include "runtime/core/outcome.h"
#include "runtime/format/json/json.h"
#include "runtime/os/file.h"

namespace patchbay::cli {
namespace {

constexpr char kDoing[] = "read position";
constexpr std::int64_t kVersion = 1;
constexpr off_t kMostBytes = 4096;
constexpr mode_t kOfOthers = 077;

Status Refuse(const std::string& path, std::string_view cause) {
  return ErrorAbout(absl::StatusCode::kFailedPrecondition, kDoing, path, cause);
}

Status CheckOwn(const std::string& path, const struct stat& file) {
  if (!S_ISREG(file.st_mode)) return Refuse(path, "not a file");
  if (file.st_uid != geteuid()) return Refuse(path, "it belongs to another user");
  if ((file.st_mode & kOfOthers) == 0) return absl::OkStatus();
  return Refuse(path, "others may read or write it: make it your own with `chmod 600`");
}

StatusOr<SavedPosition> ParsePosition(const std::string& text) {
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(text, "position"));
  PB_ASSIGN_OR_RETURN(const std::int64_t version, JsonInt(json, "version", "position"));
  if (version != kVersion) {
    return FailedPrecondition(OtherVersion(version, kVersion, kTakeItsRelease));
  }
  SavedPosition position;
  PB_ASSIGN_OR_RETURN(position.token, JsonString(json, "token", "position"));
  PB_RETURN_IF_ERROR(client::ParseResumeToken(position.token).status());
  if (json.contains("batches")) {
    PB_ASSIGN_OR_RETURN(position.batches, JsonCount(json, "batches", "position"));
  }
  return position;
}

}  // namespace

StatusOr<std::optional<SavedPosition>> ReadPosition(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid() && errno == ENOENT) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    std::error_code error;
    if (std::filesystem::is_directory(folder, error)) return std::nullopt;
    return ErrorAbout(absl::StatusCode::kNotFound, kDoing, path,
                      "its folder does not exist: make it first");
  }
  if (!fd.valid() && errno == ELOOP) return Refuse(path, "a link: name the file itself");
  if (!fd.valid()) return FromErrno(kDoing, path, errno);
  struct stat file {};
  if (fstat(fd.get(), &file) != 0) return FromErrno(kDoing, path, errno);
  PB_RETURN_IF_ERROR(CheckOwn(path, file));
  std::string text(static_cast<std::size_t>(std::min(file.st_size, kMostBytes)), '\0');
  PB_RETURN_IF_ERROR(ReadAt(fd.get(), 0, std::as_writable_bytes(std::span(text)), path));
  StatusOr<SavedPosition> position = ParsePosition(text);
  if (position.ok()) return *std::move(position);
  if (absl::IsFailedPrecondition(position.status())) {  // another version
    return Refuse(path, MessageOf(position.status()));
  }
  return ErrorAbout(absl::StatusCode::kInvalidArgument, kDoing, path,
                    "broken, or not the position of a stream: remove it to begin anew");
}

Status WritePosition(const std::string& path, const SavedPosition& position) {
  const Json json = {
      {"version", kVersion}, {"token", position.token}, {"batches", position.batches}};
  const Status written =
      WriteFileDurably(Folders::OfThisUser(), path, AsBytes(DumpJson(json) + "\n"), 0600);
  return Annotate(written, "write position");
}

}  // namespace patchbay::cli
