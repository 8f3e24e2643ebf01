// patchbay ingest SOURCE... --out DIR: slides and CT volumes to stores.
#include <filesystem>

#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/jobs/ingest_report.h"
#include "runtime/cli/jobs/manifest_csv.h"
#include "runtime/cli/jobs/row_filter.h"
#include "runtime/cli/jobs/slide_job.h"
#include "runtime/cli/jobs/slide_job_ends.h"
#include "runtime/cli/keys/pseudonym_key.h"
#include "runtime/client/paths.h"
#include "runtime/core/strings.h"
#include "runtime/model/plan/cohort_table.h"
#include "runtime/model/source/series_path.h"
#include "runtime/os/file.h"

namespace patchbay::cli {
namespace {

constexpr std::size_t kMaxSlidesNamed = 100'000;
// What the ingest task takes; said here, before a cluster starts.
constexpr std::int64_t kMinChunkPx = 64, kMaxChunkPx = 4096, kMaxShardPx = 32768;
constexpr double kMaxMpp = 999, kMaxAssumedMpp = 50, kMaxNan = 1e6;

class IngestCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override;
  StatusOr<ExitCode> Run(Session& session) override;

 private:
  StatusOr<SlideJobRequest> Order(const Session& session) const;

  std::vector<std::string> sources_, where_;
  std::string out_;
  std::int64_t chunk_ = 512, shard_ = 4096;
  std::string codec_ = "zstd";
  std::int64_t codec_level_ = 5;
  std::optional<double> mpp_, assume_mpp_;
  std::int64_t volume_chunk_ = 32;
  std::string geometry_ = "refuse", orientation_ = "canonical", spacing_;
  std::int64_t spacing_order_ = 3;
  std::optional<double> nan_;
  std::string tissue_;
  bool keep_names_ = false, detach_ = false;
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
  return absl::InvalidArgumentError(StrCat("ingest: ", sources[0], ": no row is taken"));
}

std::vector<Argument> IngestCommand::Arguments() {
  Argument chunk{"--chunk", "PX",
                 StrCat("side of a chunk, ", kMinChunkPx, " to ", kMaxChunkPx, " (default 512)"),
                 &chunk_};
  chunk.min = kMinChunkPx;
  chunk.max = kMaxChunkPx;
  Argument shard{
      "--shard", "PX",
      StrCat("side of a file, a multiple of --chunk up to ", kMaxShardPx, " (default 4096)"),
      &shard_};
  shard.min = kMinChunkPx;
  shard.max = kMaxShardPx;
  Argument codec{"--codec", "", "smaller (zstd) or faster (lz4); default zstd", &codec_};
  codec.choices = {"zstd", "lz4"};
  Argument level{"--codec-level", "N", "1 to 9; higher is smaller and slower (default 5)",
                 &codec_level_};
  level.min = 1;
  level.max = 9;
  Argument mpp{"--mpp", "M", "um per pixel of the finest level (default: the slide's)", &mpp_};
  mpp.min = 1e-3;
  mpp.max = kMaxMpp;
  Argument assume_mpp{"--assume-mpp", "M",
                      "um per pixel of slides that do not state it, up to 50; recorded",
                      &assume_mpp_};
  assume_mpp.min = 1e-3;
  assume_mpp.max = kMaxMpp;
  Argument volume_chunk{"--volume-chunk", "N",
                        "side of a volume's chunk: 32, 48, 64, 96 or 128 voxels (default 32)",
                        &volume_chunk_};
  volume_chunk.min = 32;
  volume_chunk.max = 128;
  Argument geometry{"--geometry", "", "uneven or tilted slices; default refuse", &geometry_};
  geometry.choices = {"refuse", "resample", "accept"};
  Argument order{"--spacing-order", "N", "interpolation: 0 nearest, 1 linear, 3 cubic (default 3)",
                 &spacing_order_};
  order.min = 0;
  order.max = 3;
  Argument orientation{"--orientation", "", "axes of volumes: S, P, L (canonical), or the file's",
                       &orientation_};
  orientation.choices = {"canonical", "source"};
  Argument nan{"--nan", "VALUE", "in place of NaN and infinity (default: such volumes are refused)",
               &nan_};
  nan.min = -kMaxNan;
  nan.max = kMaxNan;
  Argument tissue{"--tissue", "", "find the tissue of slides too, as `labels tissue` does",
                  &tissue_};
  tissue.choices = {"clam", "tiatoolbox", "histolab"};
  std::vector<Argument> arguments = {
      {"SOURCE", "", "slides, CT series, NIfTI, NRRD, MHA; folders of them; or one table",
       &sources_, true},
      {"--out", "DIR", "the folder for the stores", &out_, true},
      {"--where", "CONDITION", "take only these rows of a table: 'thickness_mm<=3'", &where_},
      chunk,
      shard,
      codec,
      level,
      mpp,
      assume_mpp,
      volume_chunk,
      geometry,
      orientation,
      {"--spacing", "Z,Y,X", "resample volumes to this spacing in mm (default: keep)", &spacing_},
      order,
      nan,
      tissue,
      {"--keep-names", "", "name stores after their files, not by pseudonym", &keep_names_},
      {"--detach", "", "submit, print the job's number and return", &detach_}};
  own_.AddTo(arguments);
  return arguments;
}

/// "1,0.5,0.5"; one number holds for all axes. Ranges are the task's to check.
StatusOr<Json> ParseSpacing(const std::string& text) {
  const auto parsed = ParseJson(StrCat("[", text, "]"), "--spacing");
  const bool is_list = parsed.ok() && (parsed->size() == 1 || parsed->size() == 3);
  Json values = Json::array();
  for (std::size_t i = 0; is_list && i < 3; ++i) {
    const Json& value = (*parsed)[parsed->size() == 1 ? 0 : i];
    if (value.is_number()) values.push_back(value);
  }
  if (values.size() == 3) return values;
  return UsageError(
      StrCat("--spacing: expected Z,Y,X in millimetres, such as 1,1,1, not '", text, "'"));
}

StatusOr<SlideJobRequest> IngestCommand::Order(const Session& session) const {
  if (shard_ % chunk_ != 0) {
    return UsageError(StrCat("--shard ", shard_, " is not a multiple of --chunk ", chunk_));
  }
  if (assume_mpp_ && *assume_mpp_ > kMaxAssumedMpp) {
    return UsageError(StrCat("--assume-mpp ", *assume_mpp_, ": more than ", kMaxAssumedMpp,
                             " um per pixel; in nanometres it would be ", *assume_mpp_ / 1000,
                             ", and 20x is about 0.5"));
  }
  Json spacing;
  if (!spacing_.empty()) {
    PB_ASSIGN_OR_RETURN(spacing, ParseSpacing(spacing_));
  }
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> slides, SlidesOf(sources_, where_));
  PB_ASSIGN_OR_RETURN(SlideJobRequest order, RequestSlideJob("ingest", slides, out_));
  order.payload = {{"chunk", chunk_},
                   {"shard", shard_},
                   {"codec", codec_},
                   {"codec_level", codec_level_},
                   {"mpp", mpp_.has_value() ? Json(*mpp_) : Json()},
                   {"assume_mpp", assume_mpp_.has_value() ? Json(*assume_mpp_) : Json()},
                   {"keep_names", keep_names_},
                   {"volume_chunk", volume_chunk_},
                   {"geometry", geometry_},
                   {"orientation", orientation_},
                   {"spacing", spacing},
                   {"spacing_order", spacing_order_},
                   {"nan", nan_.has_value() ? Json(*nan_) : Json()},
                   {"tissue", tissue_}};
  PB_ASSIGN_OR_RETURN(const std::string key, PseudonymKey(session.environment));
  if (!keep_names_) order.manifest["pseudonym_key"] = key;
  order.manifest["series_key"] = key;
  return order;
}

/// The slides of a job that ended before its list was read: then all of them have stores, and the
/// folder says what each was made from.
std::vector<std::string> SlidesOfStores(const Json& summary, const std::string& out) {
  const std::map<std::string, std::string> sources = ReadManifestCsv(out, "store", "source");
  std::vector<std::string> slides;
  for (const Json& store : summary.value("stores", Json::array())) {
    const auto source = sources.find(store.value("name", ""));
    const auto index = store.value("source_index", std::size_t{0});
    if (source == sources.end() || index > kMaxSlidesNamed) continue;
    if (slides.size() <= index) slides.resize(index + 1);
    slides[index] = source->second;
  }
  return slides;
}

StatusOr<IngestReport> ReportOf(client::Client& client, const protocol::JobRow& job,
                                SlideJobRequest& order) {
  PB_ASSIGN_OR_RETURN(const Json summary, SummaryOf(client, job.job));
  if (order.slides.empty()) order.slides = SlidesOfStores(summary, order.out);
  PB_ASSIGN_OR_RETURN(IngestReport report, MakeIngestReport(job, summary, order.slides));
  report.passed_over = order.passed_over;
  report.has_pseudonyms = order.manifest.contains("pseudonym_key");
  return report;
}

StatusOr<ExitCode> IngestCommand::Run(Session& session) {
  const InterruptScope interrupts;
  PB_ASSIGN_OR_RETURN(SlideJobRequest order, Order(session));
  PB_ASSIGN_OR_RETURN(client::Cluster cluster, OpenCluster(session, detach_ ? nullptr : &own_));
  PB_ASSIGN_OR_RETURN(const JobId job, SubmitSlides(session, cluster, order));
  if (detach_) return Detach(session.terminal, job);
  PB_ASSIGN_OR_RETURN(const protocol::JobRow row, WatchSlides(session, cluster, job, order));
  return EndIngest(session, cluster, order, row, nullptr);
}

}  // namespace

StatusOr<ExitCode> EndIngest(Session& session, client::Cluster& cluster, SlideJobRequest& order,
                             const protocol::JobRow& job, const Json* around) {
  auto report = ReportOf(cluster.client(), job, order);
  return EndSlideJob(session, cluster, order, job, std::move(report), around);
}

const char kIngestNote[] =
    "Exit code 3: some or all sources failed: see DIR/failed.csv. A store appears under its\n"
    "name once it is whole: after a kill, run the command again. Label images are never opened.\n";

std::unique_ptr<Command> MakeIngest() { return std::make_unique<IngestCommand>(); }

}  // namespace patchbay::cli
