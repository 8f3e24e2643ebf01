// patchbay lock RUN.yaml: pins a run to its data.
#include <algorithm>
#include <optional>

#include <sys/stat.h>

#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/overwriting.h"
#include "runtime/cli/skipped_files.h"
#include "runtime/cli/stream/lock_now.h"
#include "runtime/cli/stream/run_reports.h"
#include "runtime/client/lock_file.h"
#include "runtime/client/paths.h"
#include "runtime/core/counted.h"
#include "runtime/core/strings.h"
#include "runtime/os/file.h"

namespace patchbay::cli {
namespace {

constexpr std::size_t kMostNamed = 20;

void SayNames(Terminal& terminal, std::string_view what, const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i) {
    terminal.Say(StrCat("  ", what, " ", names[i]));
  }
  if (names.size() > kMostNamed) {
    terminal.Say(StrCat("  ", what, " ", names.size() - kMostNamed, " more"));
  }
}

void SayDifference(Terminal& terminal, const std::string& path,
                   const plan::LockDifference& difference) {
  terminal.Say(StrCat(path, ": ", difference.Summary()));
  SayNames(terminal, "+", difference.added);
  SayNames(terminal, "-", difference.removed);
  SayNames(terminal, "relabelled:", difference.relabelled);
  SayNames(terminal, "other pixels:", difference.changed);
  SayNames(terminal, "other cells:", difference.moved);
  SayNames(terminal, "other positions:", difference.placed);
}

/// A lock has the ids of patients, so a new one is readable only by its owner; an existing file
/// keeps its mode.
Status WriteLock(const std::string& path, const std::string& text) {
  constexpr unsigned kOwnerOnly = 0600, kPermissions = 0777;
  struct stat st {};
  const bool is_there = stat(path.c_str(), &st) == 0;
  const unsigned mode = is_there ? st.st_mode & kPermissions : kOwnerOnly;
  PB_RETURN_IF_ERROR(WriteFileDurably(Folders::OfThisUser(), path, AsBytes(text), mode));
  // The umask was applied when the file was made, so set the mode again.
  if (is_there && chmod(path.c_str(), mode) != 0) return FromErrno("chmod", path, errno);
  return absl::OkStatus();
}

class LockCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return {{"RUN.yaml", "", "a run config", &path_, true},
            {"--update", "", "replace an existing lock", &update_}};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    const std::string lock_path = client::LockPathOf(path_);
    PB_ASSIGN_OR_RETURN(const std::optional<plan::RunLock> before, Before(lock_path));
    PB_ASSIGN_OR_RETURN(const CurrentLock current, LockNow(*session.environment.ops, path_));
    const plan::RunLock& now = current.lock;
    PrintSkipped(session.terminal, current.skipped_files);
    const Json splits = ReportSplits(session.terminal, current.run);
    const std::string text = plan::LockText(now);
    Json result = {{"lock", lock_path},
                   {"images", now.images.size()},
                   {"skipped_files", current.skipped_files},
                   {"written", true}};
    if (!splits.is_null()) result["splits"] = splits;
    if (before) {
      const plan::LockDifference difference = plan::DifferenceOf(*before, now);
      result["difference"] = difference.ToJson();
      SayDifference(session.terminal, lock_path, difference);
      result["written"] = plan::LockText(*before) != text;
      if (!difference.Empty() && !update_) {
        return FailedPrecondition(
            lock_path, ": the data differ (", difference.Summary(),
            "); streams use the locked data; `patchbay lock --update` locks the current data");
      }
    }
    if (text.size() > plan::kMaxLockBytes) {
      return ResourceExhausted(lock_path, ": ", HumanBytes(text.size()), ": a lock has at most ",
                               HumanBytes(plan::kMaxLockBytes));
    }
    if (result["written"] == true) {
      PB_ASSIGN_OR_RETURN(const std::string path, client::AbsolutePath(lock_path));
      PB_RETURN_IF_ERROR(WriteLock(path, text));  // the target, where the path is a link
      session.terminal.Say(StrCat(lock_path, ": pins ", Counted(now.images.size(), "image"),
                                  now.keys.sets.empty() ? "" : ", label sets ",
                                  StrJoin(now.keys.sets, ", ")));
    }
    session.terminal.Result(result);
    return ExitCode::kDone;
  }

 private:
  /// The existing lock. An unreadable one is replaced only with --update.
  StatusOr<std::optional<plan::RunLock>> Before(const std::string& lock_path) const {
    const StatusOr<std::string> text =
        ReadFile(Folders::OfThisUser(), lock_path, plan::kMaxLockBytes);
    if (absl::IsNotFound(text.status()) && !IsThere(lock_path)) {
      return std::optional<plan::RunLock>();
    }
    if (absl::IsNotFound(text.status())) {
      return AlreadyExists(lock_path,
                           ": a link to a file that is not there: make it, or remove the link");
    }
    if (!text.ok()) return text.status();
    StatusOr<plan::RunLock> lock = plan::ParseRunLock(*text, lock_path);
    if (lock.ok()) return std::optional<plan::RunLock>(*std::move(lock));
    if (update_) return std::optional<plan::RunLock>();
    return lock.status();
  }

  std::string path_;
  bool update_ = false;
};

}  // namespace

const char kLockNote[] =
    "Writes RUN.lock beside the config: digests of images, label sets and statistics, and the "
    "rows\n"
    "of the table. Streams of the config then use exactly these, also after slides were added or\n"
    "labels were imported again; changed or missing data is refused. --update locks the present "
    "data\n"
    "and lists the differences.\n";

std::unique_ptr<Command> MakeLock() { return std::make_unique<LockCommand>(); }

}  // namespace patchbay::cli
