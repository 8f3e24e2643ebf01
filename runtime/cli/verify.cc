// patchbay verify STORE: every byte read, every checksum and both roots compared.
#include "runtime/zarr/verify.h"

#include "runtime/base/clock.h"
#include "runtime/base/strings.h"
#include "runtime/cli/commands.h"
#include "runtime/client/cluster.h"
#include "runtime/client/paths.h"

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
  if (report.faults > 0) return StrCat("damaged: ", report.faults, " faults");
  if (!report.recorded.has_value()) return "readable, but it records no digests to compare with";
  return "damaged: every chunk reads, but the digests are not the recorded ones";
}

class VerifyCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return {{"STORE", "", "a store's folder", &path_, true}};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    PB_ASSIGN_OR_RETURN(const std::string path, client::AbsolutePath(path_));
    zarr::VerifyOptions options;
    options.threads = static_cast<int>(client::UsableCores());
    std::int64_t shown_ns = SteadyNowNs();
    PB_ASSIGN_OR_RETURN(const zarr::VerifyReport report,
                        zarr::VerifyStore(path, options, [&](std::int64_t done, std::int64_t all) {
                          if (SteadyNowNs() - shown_ns < kShowEveryNs) return;
                          shown_ns = SteadyNowNs();
                          session.terminal.Progress(StrCat("verify ", done, "/", all, " shards"));
                        }));
    for (const std::string& fault : report.bad) session.terminal.Note(fault);
    for (const zarr::VerifyReport::Level& level : report.levels) {
      if (level.missing_count + level.surplus_count > 0) session.terminal.Say(LevelText(level));
    }
    session.terminal.Say(StrCat(report.shards, " zarr shards, ", report.chunks, " chunks, ",
                                HumanBytes(report.stored_bytes)));
    session.terminal.Say(Verdict(report));
    session.terminal.Result(zarr::ToJson(report));
    return report.Clean() ? ExitCode::kDone : ExitCode::kFailed;
  }

 private:
  std::string path_;
};

}  // namespace

std::unique_ptr<Command> MakeVerify() { return std::make_unique<VerifyCommand>(); }

}  // namespace patchbay::cli
