// patchbay ingest SOURCE... --out DIR: slides and volumes to stores.
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/jobs/channel_rows.h"
#include "runtime/cli/jobs/codec_auto.h"
#include "runtime/cli/jobs/nnunet_dataset.h"
#include "runtime/cli/jobs/row_filter.h"
#include "runtime/cli/jobs/slide_job.h"
#include "runtime/cli/keys/pseudonym_key.h"
#include "runtime/client/paths.h"
#include "runtime/client/site_file.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/model/jobs/ingest_settings.h"
#include "runtime/model/plan/cohort_table.h"
#include "runtime/model/source/repair.h"
#include "runtime/model/source/series_path.h"
#include "runtime/model/source/slide_choice.h"
#include "runtime/model/source/tile_list.h"
#include "runtime/os/file.h"
#include "runtime/os/folder_listing.h"
#include "runtime/os/usable_cores.h"

namespace patchbay::cli {
namespace {

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

struct Sources {
  std::vector<std::string> paths;
  std::map<std::string, std::string> modalities, repairs;  ///< by path, where a table states them
  std::map<std::string, SlideChoice> choices;              ///< likewise
  /// Name and path of the channels of each image that has several.
  std::vector<std::vector<std::pair<std::string, std::string>>> images;
};

std::string PathOf(const plan::CohortTable& table, const plan::CohortRow& row,
                   const std::string& folder) {
  const std::string& listed = table.Cell(row, "path");
  return listed.front() == '/' ? listed : folder + listed;
}

Status AddChannels(const plan::CohortTable& table, const std::vector<const plan::CohortRow*>& rows,
                   const std::string& folder, Sources& sources) {
  PB_ASSIGN_OR_RETURN(const std::vector<ChannelRows> images, ChannelsOf(table, rows));
  for (const ChannelRows& image : images) {
    auto& channels = sources.images.emplace_back();
    for (std::size_t i = 0; i < image.rows.size(); ++i) {
      PB_ASSIGN_OR_RETURN(const std::string path,
                          client::AbsolutePath(PathOf(table, *image.rows[i], folder)));
      channels.emplace_back(image.names[i], path);
    }
  }
  return absl::OkStatus();
}

constexpr std::string_view kSecondChannel = "_0001.";  ///< in the name of its file

/// Whether a folder is a dataset of nnU-Net that has a file for each of several channels.
StatusOr<bool> HasFileAChannel(const std::string& folder) {
  if (!NamesNnunetDataset(folder)) return false;
  const auto names = ListFolder(Folders::OfThisUser(), folder + "/imagesTr");
  if (absl::IsNotFound(names.status())) return false;
  if (!names.ok()) return names.status();
  return std::any_of(names->begin(), names->end(), [](const std::string& name) {
    return name.find(kSecondChannel) != std::string::npos;
  });
}

/// A table, as the file has it or `scan` would write it; nullopt for other sources.
struct SourceTable {
  std::string text, folder;  ///< paths are relative to the folder, which ends in '/'
};
StatusOr<std::optional<SourceTable>> TableOf(const std::vector<std::string>& sources) {
  const bool may_be = sources.size() == 1 &&
                      (plan::NamesTable(sources[0]) || IsFolder(Folders::OfThisUser(), sources[0]));
  if (!may_be) return std::nullopt;
  PB_ASSIGN_OR_RETURN(const std::string path, client::AbsolutePath(sources[0]));
  if (plan::NamesTable(sources[0])) {
    PB_ASSIGN_OR_RETURN(std::string text,
                        ReadFile(Folders::OfThisUser(), path, plan::kMaxCohortBytes));
    return SourceTable{std::move(text), path.substr(0, path.rfind('/') + 1)};
  }
  PB_ASSIGN_OR_RETURN(const bool is_dataset, HasFileAChannel(path));
  if (!is_dataset) return std::nullopt;
  PB_ASSIGN_OR_RETURN(const NnunetDataset dataset, ReadNnunetDataset(path));
  return SourceTable{CohortTableOf(dataset, path + "/"), path + "/"};
}

/// The slides of the rows of a table that are taken, in place of its name.
StatusOr<Sources> SourcesOf(const std::vector<std::string>& sources,
                            const std::vector<std::string>& where) {
  const StatusOr<RowFilter> filter = RowFilter::Parse(where);
  if (!filter.ok()) return AsUsageError(filter.status());
  PB_ASSIGN_OR_RETURN(const std::optional<SourceTable> source, TableOf(sources));
  if (!source && !where.empty()) return UsageError("--where is for rows of one table");
  if (!source) return Sources{sources, {}, {}, {}, {}};
  PB_ASSIGN_OR_RETURN(const plan::CohortTable table,
                      plan::ParseCohortTable(source->text, sources[0]));
  const std::string& folder = source->folder;
  Sources slides;
  std::vector<const plan::CohortRow*> taken;
  for (const plan::CohortRow& row : table.rows) {
    PB_ASSIGN_OR_RETURN(const bool takes, filter->Takes(table, row));
    if (!takes) continue;
    taken.push_back(&row);
    const std::string& listed = table.Cell(row, "path");
    const std::string& slide = slides.paths.emplace_back(PathOf(table, row, folder));
    std::error_code error;
    if (!std::filesystem::exists(slide, error) &&
        !std::filesystem::is_directory(SplitSeriesPath(slide).path, error)) {
      return table.Wrong(row, "path", StrCat("'", listed, "': no such file"));
    }
    PB_ASSIGN_OR_RETURN(const std::string modality, plan::ModalityOf(table, row));
    const std::string& repair = table.Cell(row, "repair");
    if (const auto rules = ParseRepairs(repair); !rules.ok()) {
      return table.Wrong(row, "repair", MessageOf(rules.status()));
    }
    PB_ASSIGN_OR_RETURN(const std::string absolute, client::AbsolutePath(slide));
    if (!modality.empty()) slides.modalities[absolute] = modality;
    if (!repair.empty()) slides.repairs[absolute] = repair;
    PB_ASSIGN_OR_RETURN(const SlideChoice choice, plan::SlideChoiceOf(table, row));
    if (choice.IsMade()) slides.choices[absolute] = choice;
  }
  PB_RETURN_IF_ERROR(AddChannels(table, taken, folder, slides));
  if (!slides.paths.empty()) return slides;
  return ErrorAbout(absl::StatusCode::kInvalidArgument, "ingest", sources[0], "no row is taken");
}

/// Each choice, with the places in `paths` of the sources that it is for.
std::vector<ChoiceOfRows> ChoicesOf(const Sources& sources, const std::vector<std::string>& paths) {
  std::map<std::string, ChoiceOfRows> choices;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const auto made = sources.choices.find(paths[i]);
    if (made == sources.choices.end()) continue;
    ChoiceOfRows& choice = choices[DumpJson(JsonOf(made->second))];
    static_cast<SlideChoice&>(choice) = made->second;
    choice.sources.push_back(i);
  }
  std::vector<ChoiceOfRows> all;
  for (auto& [text, choice] : choices) all.push_back(std::move(choice));
  return all;
}

/// Annotation in pixels may name a patient: the operator of the site decides.
Status MayTakeBurnedIn(const client::Environment& environment, const std::string& repair,
                       const std::map<std::string, std::string>& repairs) {
  std::string asked = repair;
  for (const auto& [path, rules] : repairs) asked += StrCat(asked.empty() ? "" : ",", rules);
  PB_ASSIGN_OR_RETURN(const Repairs rules, ParseRepairs(asked));
  if (!rules.contains(Repair::kBurnedIn)) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const client::Site site, client::ReadSite(environment));
  if (site.may_take_burned_in) return absl::OkStatus();
  return AsUsageError(InvalidArgument(
      "--repair ", NameOf(Repair::kBurnedIn),
      ": pixels may show names, and no operator allows it: ", "`burned_in: true` in ",
      site.file.empty() ? std::string("a site.yaml") : site.file));
}

/// Names what is wrong with datasets of tiles, which the job's errors must not do; whether there is
/// one. Folders in which slides or volumes may lie are left to the job.
StatusOr<bool> CheckTiles(const std::vector<std::string>& sources) {
  bool has_tiles = false;
  for (const std::string& source : sources) {
    if (!IsFolder(Folders::OfThisUser(), source)) continue;
    const auto tiles = ListTiles(Folders::OfThisUser(), source, OtherImages::kEndTheList);
    if (!tiles.ok() || tiles->files.empty()) continue;
    PB_RETURN_IF_ERROR(tiles->fault);
    has_tiles = true;
  }
  return has_tiles;
}

/// Workers of the cluster; of one that has only just started, those that it will have.
std::int64_t CoresOf(client::Cluster& cluster, const OwnClusterArguments& own) {
  const std::int64_t here = own.cpus.value_or(UsableCores());
  if (cluster.embedded()) return here;
  const auto described = cluster.client().DescribeCluster();
  const bool is_known = described.ok() && !described->workers.empty();
  return is_known ? static_cast<std::int64_t>(described->workers.size()) : here;
}

std::vector<Argument> IngestCommand::Arguments() {
  std::vector<Argument> arguments = WithOptions(
      {{"SOURCE", "", "slides, volumes, tiles by class; folders of them; or one table", &sources_,
        true},
       {"--out", "DIR", "the folder for the stores", &out_, true},
       {"--where", "CONDITION", "take only these rows of a table: 'thickness_mm<=3'", &where_}},
      settings_);
  arguments.push_back({"--detach", "", "submit, print the job's number and return", &detach_});
  own_.AddTo(arguments);
  return arguments;
}

StatusOr<SlideJobRequest> IngestCommand::Request(const Session& session) const {
  PB_RETURN_IF_ERROR(AsUsageError(settings_.Check()));
  PB_ASSIGN_OR_RETURN(Sources sources, SourcesOf(sources_, where_));
  PB_ASSIGN_OR_RETURN(SlideJobRequest request, RequestSlideJob("ingest", sources.paths, out_));
  PB_RETURN_IF_ERROR(MayTakeBurnedIn(session.environment, settings_.repair, sources.repairs));
  request.manifest.modalities = std::move(sources.modalities);
  request.payload = ToJson(settings_);
  const std::vector<std::string>& all = request.manifest.sources;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto stated = sources.repairs.find(all[i]);
    if (stated != sources.repairs.end())
      request.payload[kRepairsOfRows][stated->second].push_back(i);
  }
  for (const ChoiceOfRows& choice : ChoicesOf(sources, all)) {
    request.payload[kChoicesOfRows].push_back(JsonOf(choice));
  }
  for (const auto& image : sources.images) {
    Json channels = Json::array();
    for (const auto& [name, path] : image) {
      const auto at = std::lower_bound(all.begin(), all.end(), path);  // they are sorted
      channels.push_back({name, static_cast<std::size_t>(at - all.begin())});
    }
    request.payload[kChannelsOfRows].push_back(std::move(channels));
  }
  if (!sources.images.empty()) request.slides.clear();  // several sources are one
  PB_ASSIGN_OR_RETURN(const std::string key, PseudonymKey(session.environment));
  if (!settings_.keep_names) request.manifest.pseudonym_key = key;
  request.manifest.series_key = key;
  return request;
}

StatusOr<ExitCode> IngestCommand::Run(Session& session) {
  const InterruptScope interrupts;
  PB_ASSIGN_OR_RETURN(SlideJobRequest request, Request(session));
  PB_ASSIGN_OR_RETURN(const bool has_tiles, CheckTiles(request.manifest.sources));
  if (has_tiles) {
    session.terminal.Note(
        "tiles by class: cohort.csv and positions.csv beside the stores stream them");
  }
  StagedRun run{std::move(request), &own_, detach_};
  if (settings_.codec == kAutoCodec) {
    run.settle = [&](client::Cluster& cluster, SlideJobRequest& settled) {
      const std::int64_t cores = CoresOf(cluster, own_);
      return SettleCodec(session.terminal, settings_, cores, settled);
    };
  }
  return RunStagedJob(session, std::move(run));
}

}  // namespace

std::unique_ptr<Command> MakeIngest() { return std::make_unique<IngestCommand>(); }

}  // namespace patchbay::cli
