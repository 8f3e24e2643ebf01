// patchbay ingest SOURCE... --out DIR: slides and CT volumes to stores.
#include <filesystem>

#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/jobs/failed_sources.h"
#include "runtime/cli/jobs/ingest_report.h"
#include "runtime/cli/jobs/row_filter.h"
#include "runtime/cli/jobs/slide_job.h"
#include "runtime/cli/keys/pseudonym_key.h"
#include "runtime/client/paths.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/model/jobs/ingest_settings.h"
#include "runtime/model/plan/cohort_table.h"
#include "runtime/model/results/ingest_summary.h"
#include "runtime/model/source/series_path.h"
#include "runtime/os/file.h"

namespace patchbay::cli {
namespace {

constexpr std::size_t kMaxSlidesNamed = 100'000;
constexpr std::size_t kMaxOutcomeBytes = 1 << 16;

class IngestCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override;
  StatusOr<ExitCode> Run(Session& session) override;

 private:
  StatusOr<SlideJobRequest> Request(const Session& session) const;

  std::vector<std::string> sources_, where_;
  std::string out_;
  IngestSettings settings_;
  bool detach_ = false;
  OwnClusterArguments own_;
};

/// The slides of the rows of a table that are taken, in place of its name.
StatusOr<std::vector<std::string>> SlidesOf(const std::vector<std::string>& sources,
                                            const std::vector<std::string>& where) {
  const StatusOr<RowFilter> filter = RowFilter::Parse(where);
  if (!filter.ok()) return AsUsageError(filter.status());
  const bool is_table = sources.size() == 1 && plan::NamesTable(sources[0]);
  if (!is_table && !where.empty()) return UsageError("--where is for rows of one table");
  if (!is_table) return sources;
  PB_ASSIGN_OR_RETURN(const std::string path, client::AbsolutePath(sources[0]));
  PB_ASSIGN_OR_RETURN(const std::string text,
                      ReadFile(Folders::OfThisUser(), path, plan::kMaxCohortBytes));
  PB_ASSIGN_OR_RETURN(const plan::CohortTable table, plan::ParseCohortTable(text, sources[0]));
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  std::vector<std::string> slides;
  for (const plan::CohortRow& row : table.rows) {
    PB_ASSIGN_OR_RETURN(const bool takes, filter->Takes(table, row));
    if (!takes) continue;
    const std::string& listed = table.Cell(row, "path");
    slides.push_back(listed.front() == '/' ? listed : folder + listed);
    std::error_code error;
    if (!std::filesystem::exists(slides.back(), error) &&
        !std::filesystem::is_directory(SplitSeriesPath(slides.back()).path, error)) {
      return table.Wrong(row, "path", StrCat("'", listed, "': no such file"));
    }
  }
  if (!slides.empty()) return slides;
  return FileError(absl::StatusCode::kInvalidArgument, "ingest", sources[0], "no row is taken");
}

std::vector<Argument> IngestCommand::Arguments() {
  std::vector<Argument> arguments = WithOptions(
      {{"SOURCE", "", "slides, CT series, NIfTI, NRRD, MHA; folders of them; or one table",
        &sources_, true},
       {"--out", "DIR", "the folder for the stores", &out_, true},
       {"--where", "CONDITION", "take only these rows of a table: 'thickness_mm<=3'", &where_}},
      settings_);
  arguments.push_back({"--detach", "", "submit, print the job's number and return", &detach_});
  own_.AddTo(arguments);
  return arguments;
}

StatusOr<SlideJobRequest> IngestCommand::Request(const Session& session) const {
  PB_RETURN_IF_ERROR(AsUsageError(settings_.Check()));
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> slides, SlidesOf(sources_, where_));
  PB_ASSIGN_OR_RETURN(SlideJobRequest request, RequestSlideJob("ingest", slides, out_));
  request.payload = ToJson(settings_);
  PB_ASSIGN_OR_RETURN(const std::string key, PseudonymKey(session.environment));
  if (!settings_.keep_names) request.manifest.pseudonym_key = key;
  request.manifest.series_key = key;
  return request;
}

/// The slides of a job that ended before its list was read: all of them have stores, and the
/// folder's table has their sources.
std::vector<std::string> SlidesOfStores(const Json& summary, const SlideJobRequest& request) {
  if (!request.slides.empty()) return request.slides;
  const std::map<std::string, std::string> sources =
      ReadManifestCsv(request.out, "store", "source");
  std::vector<std::string> slides;
  const auto ingested = FromJson<results::IngestSummary>(summary, "ingest summary");
  if (!ingested.ok()) return slides;
  for (const results::IngestedStore& store : ingested->stores) {
    const auto source = sources.find(store.name);
    const auto index = static_cast<std::size_t>(store.source_index);
    if (source == sources.end() || index > kMaxSlidesNamed) continue;
    if (slides.size() <= index) slides.resize(index + 1);
    slides[index] = source->second;
  }
  return slides;
}

/// The file is first written when the slide is opened.
bool NamesAStore(const std::string& path) {
  const StatusOr<std::string> text = ReadFile(Folders::OfThisUser(), path, kMaxOutcomeBytes);
  if (!text.ok()) return false;
  const StatusOr<Json> outcome = ParseJson(*text, path);
  if (!outcome.ok()) return false;
  const StatusOr<std::string> digest = JsonString(*outcome, "digest", path);
  return digest.ok() && !digest->empty();
}

StatusOr<ExitCode> IngestCommand::Run(Session& session) {
  const InterruptScope interrupts;
  PB_ASSIGN_OR_RETURN(SlideJobRequest request, Request(session));
  return RunStagedJob(session, {std::move(request), &own_, detach_});
}

}  // namespace

const StagedJobKind kIngestKind = {.kind = "ingest",
                                   .fill = FillIngestReport,
                                   .say = SayIngestReport,
                                   .slides = SlidesOfStores,
                                   .is_outcome = NamesAStore,
                                   .goes_on_without_folder = true};

const char kIngestNote[] =
    "Exit code 3: some or all sources failed: see DIR/failed.csv. A store appears under its\n"
    "name once it is whole: after a kill, run the command again. Label images are never opened.\n";

std::unique_ptr<Command> MakeIngest() { return std::make_unique<IngestCommand>(); }

}  // namespace patchbay::cli
