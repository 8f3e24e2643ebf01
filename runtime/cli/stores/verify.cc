// patchbay verify STORE...: every byte read, every checksum and both roots compared.
#include "runtime/format/zarr/verify.h"

#include <string>
#include <vector>

#include "runtime/cli/commands.h"
#include "runtime/cli/skipped_files.h"
#include "runtime/cli/stores/find_stores.h"
#include "runtime/client/paths.h"
#include "runtime/core/clock.h"
#include "runtime/core/counted.h"
#include "runtime/core/outcome.h"
#include "runtime/core/status.h"
#include "runtime/core/strings.h"
#include "runtime/model/source/file_kind.h"
#include "runtime/os/usable_cores.h"

namespace patchbay::cli {
namespace {

constexpr std::int64_t kShowEveryNs = 500'000'000;

/// "level 0: 12 zarr shards written, 11 present, 1 missing"
std::string LevelText(const zarr::VerifyReport::Level& level) {
  std::string text = StrCat("level ", level.path, ": ");
  if (level.listed) text += StrCat(*level.listed, " zarr shards written, ");
  text += StrCat(level.found, " present");
  if (level.missing_count > 0) text += StrCat(", ", level.missing_count, " missing");
  if (level.surplus_count > 0) text += StrCat(", ", level.surplus_count, " surplus");
  return text;
}

/// In words, for the last line.
std::string Verdict(const zarr::VerifyReport& report) {
  if (report.Clean()) return "clean: every chunk and both digests are as they were written";
  if (report.faults > 0) return StrCat("damaged: ", Counted(report.faults, "fault"));
  if (!report.recorded.has_value()) return "readable, but it records no digests to compare with";
  return "damaged: every chunk reads, but the digests are not the recorded ones";
}

void Say(Terminal& terminal, const zarr::VerifyReport& report) {
  for (const std::string& fault : report.bad) terminal.Note(fault);
  for (const zarr::VerifyReport::Level& level : report.levels) {
    if (level.missing_count + level.surplus_count > 0) terminal.Say(LevelText(level));
  }
  terminal.Say(StrCat(Counted(report.shards, "zarr shard"), ", ", Counted(report.chunks, "chunk"),
                      ", ", HumanBytes(report.stored_bytes)));
  terminal.Say(Verdict(report));
}

class VerifyCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return {{"STORE", "", "a store, or a folder of stores", &named_, true}};
  }
  StatusOr<ExitCode> Run(Session& session) override;

 private:
  StatusOr<zarr::VerifyReport> Verify(Terminal& terminal, const std::string& path,
                                      const std::string& place);
  ExitCode VerifyEach(Terminal& terminal, const std::vector<std::string>& stores,
                      const FilesByKind& skipped_files);

  std::vector<std::string> named_;
  std::int64_t shown_ns_ = SteadyNowNs();
};

StatusOr<zarr::VerifyReport> VerifyCommand::Verify(Terminal& terminal, const std::string& path,
                                                   const std::string& place) {
  zarr::VerifyOptions options;
  options.threads = static_cast<int>(UsableCores());
  return zarr::VerifyStore(Folders::OfThisUser(), path, options,
                           [&](std::int64_t done, std::int64_t all) {
                             if (SteadyNowNs() - shown_ns_ < kShowEveryNs) return absl::OkStatus();
                             shown_ns_ = SteadyNowNs();
                             terminal.Progress(StrCat("verify ", place, done, "/", all, " shards"));
                             return absl::OkStatus();
                           });
}

/// One after another; a store that is damaged, or is none, does not keep the others from being
/// read.
ExitCode VerifyCommand::VerifyEach(Terminal& terminal, const std::vector<std::string>& stores,
                                   const FilesByKind& skipped_files) {
  Json rows = Json::array();
  std::size_t clean = 0;
  for (std::size_t i = 0; i < stores.size(); ++i) {
    terminal.Say(stores[i]);
    const auto report =
        Verify(terminal, stores[i], StrCat("store ", i + 1, "/", stores.size(), ", "));
    Json row = report.ok() ? zarr::ToJson(*report) : Json::object();
    row["path"] = stores[i];
    if (report.ok()) {
      Say(terminal, *report);
    } else {
      terminal.Note(MessageOf(report.status()));
      row["clean"] = false;
      row["error"] = MessageOf(report.status());
    }
    clean += report.ok() && report->Clean() ? 1 : 0;
    rows.push_back(std::move(row));
  }
  const std::size_t others = stores.size() - clean;
  terminal.Say(StrCat("clean: ", clean, " of ", Counted(stores.size(), "store")));
  PrintSkipped(terminal, skipped_files);
  terminal.Result({{"stores", std::move(rows)},
                   {"skipped_files", Json(skipped_files)},
                   {"clean", others == 0}});
  return others == 0 ? ExitCode::kDone : ExitCode::kFailed;
}

StatusOr<ExitCode> VerifyCommand::Run(Session& session) {
  std::vector<std::string> stores;
  FilesByKind skipped_files;
  for (const std::string& named : named_) {
    PB_ASSIGN_OR_RETURN(const std::string path, client::AbsolutePath(named));
    PB_ASSIGN_OR_RETURN(const std::vector<std::string> found, StoresIn(path, skipped_files));
    stores.insert(stores.end(), found.begin(), found.end());
  }
  PB_ASSIGN_OR_RETURN(const std::string first, client::AbsolutePath(named_[0]));
  if (named_.size() > 1 || stores[0] != first) {
    return VerifyEach(session.terminal, stores, skipped_files);
  }
  PB_ASSIGN_OR_RETURN(const zarr::VerifyReport report, Verify(session.terminal, first, ""));
  Say(session.terminal, report);
  session.terminal.Result(zarr::ToJson(report));
  return report.Clean() ? ExitCode::kDone : ExitCode::kFailed;
}

}  // namespace

std::unique_ptr<Command> MakeVerify() { return std::make_unique<VerifyCommand>(); }

}  // namespace patchbay::cli
