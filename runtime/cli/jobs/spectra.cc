// patchbay spectra SOURCE... --out DIR: the log-magnitude spectra of slides, as distributions.
#include <algorithm>
#include <filesystem>

#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/jobs/manifest_csv.h"
#include "runtime/cli/jobs/slide_job.h"
#include "runtime/cli/jobs/slide_job_ends.h"
#include "runtime/cli/jobs/spectra_report.h"
#include "runtime/cli/keys/pseudonym_key.h"
#include "runtime/core/strings.h"
#include "runtime/model/ops/spectral.h"

namespace patchbay::cli {
namespace {

constexpr std::int64_t kMinStrip = 32, kMaxStrip = 1 << 20;

class SpectraCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override;
  StatusOr<ExitCode> Run(Session& session) override;

 private:
  Status CheckFrames() const;
  StatusOr<SlideJobRequest> Order(const Session& session) const;
  /// Whose bits the job makes: those asked for, which somebody must be able to make, or the
  /// cluster's.
  Status SettleNumerics(client::Cluster& cluster, SlideJobRequest& order) const;

  std::vector<std::string> sources_;
  std::string out_, profile_ = "default";
  std::int64_t strip_ = 1024;
  std::optional<std::int64_t> frame_, hop_;
  std::string window_, prefilter_, channel_, numerics_;
  bool tissue_only_ = false, skip_damaged_ = false, coefficients_ = false, detach_ = false;
  OwnClusterArguments own_;
};

Argument Choice(const char* name, const char* help, std::string& target,
                std::vector<std::string> choices) {
  Argument argument{name, "", help, &target};
  argument.choices = std::move(choices);
  return argument;
}

std::vector<Argument> SpectraCommand::Arguments() {
  Argument frame{"--frame", "PX", "side of a frame, a power of two (default 256)", &frame_};
  frame.min = plan::kMinSpectralFrame;
  frame.max = plan::kMaxSpectralFrame;
  Argument hop{"--hop", "PX", "distance between frames, even (default: half a frame)", &hop_};
  hop.min = 2;
  hop.max = plan::kMaxSpectralFrame;
  Argument strip{"--strip", "PX", "rows of pixels read at once (default 1024)", &strip_};
  strip.min = kMinStrip;
  strip.max = kMaxStrip;
  std::vector<Argument> arguments = {
      {"SOURCE", "", "slides or stores, or folders of them", &sources_, true},
      {"--out", "DIR", "the folder for spectra.json, spectra.csv and the plots", &out_, true},
      Choice("--profile", "preset for the flags below, which override it", profile_,
             {"default", "nedc"}),
      frame,
      hop,
      strip,
      Choice("--window", "window applied to each frame", window_, {"rect", "hann"}),
      Choice("--prefilter", "filter applied to the slide first", prefilter_, {"none", "gauss7"}),
      Choice("--channel", "channels to transform", channel_, {"grey", "rgb"}),
      {"--tissue-only", "", "measure only frames on tissue", &tissue_only_},
      {"--skip-damaged", "", "leave out frames on damaged tiles, not the whole slide",
       &skip_damaged_},
      {"--coefficients", "", "also write the mean of every coefficient as .npy files",
       &coefficients_},
      Choice("--numerics", "whose rounding to use (default: what the cluster offers)", numerics_,
             {"cpu", "cuda"}),
      {"--detach", "", "submit, print the job's number and return", &detach_}};
  own_.AddTo(arguments);
  return arguments;
}

/// What a range cannot say of --frame and --hop.
Status SpectraCommand::CheckFrames() const {
  plan::SpectralOptions options;
  options.frame = static_cast<int>(frame_.value_or(options.frame));
  options.hop = static_cast<int>(hop_.value_or(options.frame / 2));
  return AsUsageError(plan::Validate(options));
}

StatusOr<SlideJobRequest> SpectraCommand::Order(const Session& session) const {
  PB_RETURN_IF_ERROR(CheckFrames());
  PB_ASSIGN_OR_RETURN(SlideJobRequest order, RequestSlideJob("spectra", sources_, out_));
  std::error_code error;
  if (std::filesystem::exists(order.out, error) &&
      !std::filesystem::is_directory(order.out, error)) {
    return absl::AlreadyExistsError(StrCat("spectra: ", out_, ": exists and is not a folder"));
  }
  order.payload = {{"profile", profile_},
                   {"strip", strip_},
                   {"tissue_only", tissue_only_},
                   {"skip_damaged", skip_damaged_},
                   {"coefficients", coefficients_}};
  // What is not said is the profile's.
  if (frame_.has_value()) order.payload["frame"] = *frame_;
  if (hop_.has_value() || frame_.has_value()) order.payload["hop"] = hop_.value_or(*frame_ / 2);
  for (const auto& [key, value] : {std::pair<const char*, const std::string&>{"window", window_},
                                   {"prefilter", prefilter_},
                                   {"channel", channel_},
                                   {"numerics", numerics_}}) {
    if (!value.empty()) order.payload[key] = value;
  }
  PB_ASSIGN_OR_RETURN(order.manifest["pseudonym_key"], PseudonymKey(session.environment));
  return order;
}

/// The files in the order of slide numbers, from the table that the job leaves beside its results.
std::vector<std::string> SlidesOf(const SlideJobRequest& order) {
  std::vector<std::string> slides;
  const auto paths = ReadManifestCsv(order.out, "index", "path");
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const auto path = paths.find(StrCat(i));
    if (path == paths.end()) return order.slides;
    slides.push_back(path->second);
  }
  return slides.empty() ? order.slides : slides;
}

StatusOr<SpectraReport> ReportOf(client::Client& client, const protocol::JobRow& job,
                                 SlideJobRequest& order) {
  PB_ASSIGN_OR_RETURN(const Json summary, SummaryOf(client, job.job));
  order.slides = SlidesOf(order);
  PB_ASSIGN_OR_RETURN(SpectraReport report, MakeSpectraReport(job, summary, order.slides));
  report.passed_over = order.passed_over;
  return report;
}

Status SpectraCommand::SettleNumerics(client::Cluster& cluster, SlideJobRequest& order) const {
  if (numerics_ == "cuda") {
    return cluster.Explain(client::CheckGpuWorkers(cluster.client(), "spectra"));
  }
  if (!numerics_.empty()) return absl::OkStatus();
  const StatusOr<std::string> numerics = client::ClusterNumerics(cluster.client());
  if (!numerics.ok()) return cluster.Explain(numerics.status());
  order.payload["numerics"] = *numerics;
  return absl::OkStatus();
}

StatusOr<ExitCode> SpectraCommand::Run(Session& session) {
  const InterruptScope interrupts;
  PB_ASSIGN_OR_RETURN(SlideJobRequest order, Order(session));
  PB_ASSIGN_OR_RETURN(client::Cluster cluster, OpenCluster(session, detach_ ? nullptr : &own_));
  PB_RETURN_IF_ERROR(SettleNumerics(cluster, order));
  PB_ASSIGN_OR_RETURN(const JobId job, SubmitSlides(session, cluster, order));
  if (detach_) return Detach(session.terminal, job);
  PB_ASSIGN_OR_RETURN(const protocol::JobRow row, WatchSlides(session, cluster, job, order));
  return EndSpectra(session, cluster, order, row, nullptr);
}

}  // namespace

StatusOr<ExitCode> EndSpectra(Session& session, client::Cluster& cluster, SlideJobRequest& order,
                              const protocol::JobRow& job, const Json* around) {
  auto report = ReportOf(cluster.client(), job, order);
  return EndSlideJob(session, cluster, order, job, std::move(report), around);
}

const char kSpectraNote[] =
    "Exit code 3: some or all slides failed; DIR/failed.csv lists them. Exit code 1: the job\n"
    "itself did not run. The same slides and flags give the same bytes on any number of workers.\n"
    "After an interrupt, run the same command again. configs/spectra.md defines what is "
    "measured.\n";

std::unique_ptr<Command> MakeSpectra() { return std::make_unique<SpectraCommand>(); }

}  // namespace patchbay::cli
