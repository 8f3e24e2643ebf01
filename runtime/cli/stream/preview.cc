// patchbay preview: contact sheets of stores, or of the patches of a run.
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/overwriting.h"
#include "runtime/cli/skipped_files.h"
#include "runtime/cli/stream/run_arguments.h"
#include "runtime/cli/stream/run_reports.h"
#include "runtime/cli/worker_run.h"
#include "runtime/client/paths.h"
#include "runtime/client/run_file.h"
#include "runtime/client/stream_paths.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/model/jobs/job_manifest.h"
#include "runtime/model/jobs/local_job_options.h"

namespace patchbay::cli {
namespace {

bool IsRunConfig(const std::string& path) {
  return path.ends_with(".yaml") || path.ends_with(".yml");
}

class PreviewCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return WithOptions(
        {{"PATH", "", "one RUN.yaml; or stores, slides and folders of them", &paths_, true},
         {"--out", "FILE", "the PNG file to write", &out_, true},
         ForceArgument(force_),
         SetArgument(set_),
         SplitArgument(split_)},
        options_);
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    PB_ASSIGN_OR_RETURN(const std::string out, client::AbsolutePath(out_));
    std::size_t configs = 0;
    for (const std::string& path : paths_) configs += IsRunConfig(path) ? 1 : 0;
    if (configs != 0 && paths_.size() != 1) {
      return UsageError("preview: give one RUN.yaml, or images, not both");
    }
    if (configs == 1 && !options_.labels.empty()) {
      return UsageError("preview: --labels is for images; a run shows its own labels.set");
    }
    if (configs == 1 &&
        !(options_.tissue.empty() && options_.options.empty() && options_.at.empty())) {
      return UsageError("preview: --tissue, --option and --at are for images");
    }
    if (const Status wrong = options_.Check(); !wrong.ok()) return AsUsageError(wrong);
    PB_RETURN_IF_ERROR(CheckNothingThere("preview", out, out_, force_));
    PB_ASSIGN_OR_RETURN(Json result,
                        configs == 1 ? OfRun(session, out) : OfImages(session.terminal, out));
    result["out"] = out;
    session.terminal.Say(
        StrCat("wrote ", out, ", ", HumanBytes(result["bytes"].get<std::uint64_t>())));
    session.terminal.Result(result);
    return result.value("failed", Json::array()).empty() ? ExitCode::kDone : ExitCode::kSomeFailed;
  }

 private:
  StatusOr<Json> OfImages(Terminal& terminal, const std::string& out) const {
    JobManifest manifest{.out = out};
    for (const std::string& path : paths_) {
      PB_ASSIGN_OR_RETURN(manifest.images.emplace_back(), client::AbsolutePath(path));
    }
    PB_ASSIGN_OR_RETURN(Json result,
                        RunWorkerOp("preview.images", PayloadOf(options_), JsonOf(manifest)));
    PrintSkipped(terminal, SkippedOf(result));
    for (Json& failed : result["failed"]) {
      failed = {{"path", failed[0]}, {"reason", failed[1]}};
      terminal.Note(StrCat("left out ", failed["path"].get<std::string>(), ": ",
                           failed["reason"].get<std::string>()));
    }
    return result;
  }

  StatusOr<Json> OfRun(Session& session, const std::string& out) const {
    Terminal& terminal = session.terminal;
    PB_ASSIGN_OR_RETURN(client::RunFile run, client::ReadRun({.ops = session.environment.ops,
                                                              .file = paths_[0],
                                                              .overrides = set_,
                                                              .split = split_}));
    PB_RETURN_IF_ERROR(run.Locate(plan::SettleBatch(run.config, 0, 1)));
    const StatusOr<Json> planned =
        RunWorkerOp("stream.plan", run.Payload(), JsonOf(run.Manifest()));
    if (!planned.ok()) return run.Locate(planned.status());
    const results::SkippedImages skipped = client::SkippedImagesOf(*planned);
    ReportSkipped(terminal, skipped);
    PB_ASSIGN_OR_RETURN(const std::string plan, JsonString(*planned, "plan", "stream plan"));
    PB_ASSIGN_OR_RETURN(const Json* where, JsonMember(*planned, "manifest", "stream plan"));
    Json manifest = *where;
    manifest["out"] = out;
    Json payload = PayloadOf(options_);
    payload["plan"] = plan;
    PB_ASSIGN_OR_RETURN(Json result, RunWorkerOp("preview.patches", payload, manifest));
    result["skipped_files"] = skipped.files;
    return result;
  }

  std::vector<std::string> paths_;
  std::string out_, split_;
  std::vector<std::string> set_;
  PreviewOptions options_;
  bool force_ = false;
};

}  // namespace

std::unique_ptr<Command> MakePreview() { return std::make_unique<PreviewCommand>(); }

}  // namespace patchbay::cli
