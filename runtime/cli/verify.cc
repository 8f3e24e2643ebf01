// patchbay verify STORE: every byte read, every checksum and both roots compared.
#include "runtime/zarr/verify.h"

#include "runtime/base/clock.h"
#include "runtime/base/strings.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/machine_checks.h"
#include "runtime/cli/paths.h"

namespace patchbay::cli {
namespace {

constexpr std::int64_t kShowEveryNs = 500'000'000;

Json ReportToJson(const zarr::VerifyReport& report) {
  Json json = {{"clean", report.Clean()},    {"faults", report.faults},
               {"bad", report.bad},          {"shards", report.shards},
               {"chunks", report.chunks},    {"stored_bytes", report.stored_bytes},
               {"digest", nullptr},          {"pixel_digest", nullptr},
               {"recorded_digest", nullptr}, {"recorded_pixel_digest", nullptr}};
  if (report.faults == 0) {
    json["digest"] = report.computed.bytes.Hex();
    json["pixel_digest"] = report.computed.pixels.Hex();
  }
  if (report.recorded.has_value()) {
    json["recorded_digest"] = report.recorded->bytes.Hex();
    json["recorded_pixel_digest"] = report.recorded->pixels.Hex();
  }
  return json;
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
    PB_ASSIGN_OR_RETURN(const std::string path, AbsolutePath(path_));
    zarr::VerifyOptions options;
    options.threads = static_cast<int>(UsableCores());
    std::int64_t shown_ns = SteadyNowNs();
    PB_ASSIGN_OR_RETURN(const zarr::VerifyReport report,
                        zarr::VerifyStore(path, options, [&](std::int64_t done, std::int64_t all) {
                          if (SteadyNowNs() - shown_ns < kShowEveryNs) return;
                          shown_ns = SteadyNowNs();
                          session.terminal.Progress(StrCat("verify ", done, "/", all, " shards"));
                        }));
    for (const std::string& fault : report.bad) session.terminal.Note(fault);
    session.terminal.Say(StrCat(report.shards, " zarr shards, ", report.chunks, " chunks, ",
                                HumanBytes(report.stored_bytes)));
    session.terminal.Say(Verdict(report));
    session.terminal.Result(ReportToJson(report));
    return report.Clean() ? ExitCode::kDone : ExitCode::kFailed;
  }

 private:
  std::string path_;
};

}  // namespace

std::unique_ptr<Command> MakeVerify() { return std::make_unique<VerifyCommand>(); }

}  // namespace patchbay::cli
