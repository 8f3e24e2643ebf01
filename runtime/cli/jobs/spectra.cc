// patchbay spectra SOURCE... --out DIR: the log-magnitude spectra of slides, as distributions.
#include <filesystem>

#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/jobs/slide_job.h"
#include "runtime/cli/keys/pseudonym_key.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/model/jobs/spectra_request.h"

namespace patchbay::cli {
namespace {

class SpectraCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override;
  StatusOr<ExitCode> Run(Session& session) override;

 private:
  StatusOr<SlideJobRequest> Request(const Session& session) const;
  /// Sets the numerics of the job: the requested ones, which some worker must offer, or the
  /// cluster's.
  Status SettleNumerics(client::Cluster& cluster, Json& payload) const;

  std::vector<std::string> sources_;
  std::string out_;
  SpectraRequest request_;
  bool detach_ = false;
  OwnClusterArguments own_;
};

std::vector<Argument> SpectraCommand::Arguments() {
  std::vector<Argument> arguments = WithOptions(
      {{"SOURCE", "", "slides or stores, or folders of them", &sources_, true},
       {"--out", "DIR", "the folder for spectra.json, spectra.csv and the plots", &out_, true}},
      request_);
  arguments.push_back({"--detach", "", "submit, print the job's number and return", &detach_});
  own_.AddTo(arguments);
  return arguments;
}

StatusOr<SlideJobRequest> SpectraCommand::Request(const Session& session) const {
  SpectraRequest options = request_;
  if (!options.hop && options.frame) options.hop = *options.frame / 2;
  PB_RETURN_IF_ERROR(AsUsageError(SpectralOptionsOf(options).status()));
  PB_ASSIGN_OR_RETURN(SlideJobRequest request, RequestSlideJob("spectra", sources_, out_));
  std::error_code error;
  if (std::filesystem::exists(request.out, error) &&
      !std::filesystem::is_directory(request.out, error)) {
    return ErrorAbout(absl::StatusCode::kAlreadyExists, "spectra", out_,
                      "exists and is not a folder");
  }
  request.payload = PayloadOf(options);
  PB_ASSIGN_OR_RETURN(request.manifest.pseudonym_key, PseudonymKey(session.environment));
  return request;
}

Status SpectraCommand::SettleNumerics(client::Cluster& cluster, Json& payload) const {
  if (request_.numerics == "cuda") {
    return cluster.Explain(client::CheckGpuWorkers(cluster.client(), "spectra"));
  }
  if (!request_.numerics.empty()) return absl::OkStatus();
  const StatusOr<std::string> numerics = client::ClusterNumerics(cluster.client());
  if (!numerics.ok()) return cluster.Explain(numerics.status());
  payload["numerics"] = *numerics;
  return absl::OkStatus();
}

StatusOr<ExitCode> SpectraCommand::Run(Session& session) {
  const InterruptScope interrupts;
  PB_ASSIGN_OR_RETURN(SlideJobRequest request, Request(session));
  const auto settle = [this](client::Cluster& cluster, SlideJobRequest& settled) {
    return SettleNumerics(cluster, settled.payload);
  };
  return RunStagedJob(session, {std::move(request), &own_, detach_, settle});
}

}  // namespace

const char kSpectraNote[] =
    "Exit code 3: some or all slides failed; DIR/failed.csv lists them. Exit code 1: the job\n"
    "itself did not run. The same slides and flags give the same bytes on any number of workers.\n"
    "After an interrupt, run the same command again. configs/spectra.md defines what is "
    "measured.\n";

std::unique_ptr<Command> MakeSpectra() { return std::make_unique<SpectraCommand>(); }

}  // namespace patchbay::cli
