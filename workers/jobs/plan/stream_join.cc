// Makes the plan of a stream from the results of opening its images.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ops/chain/chain.h"
#include "runtime/core/counted.h"
#include "runtime/core/outcome.h"
#include "runtime/format/json/json_stream.h"
#include "runtime/model/ops/stain_references.h"
#include "runtime/model/plan/byte_versions.h"
#include "runtime/model/plan/image_colours.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/plan/planned_manifest.h"
#include "runtime/model/plan/plausibility.h"
#include "runtime/model/plan/value_statistics.h"
#include "runtime/model/results/skipped_images.h"
#include "runtime/model/stream/planned_stream.h"
#include "workers/access/planned_images.h"
#include "workers/jobs/plan/image_row.h"
#include "workers/jobs/plan/image_values.h"
#include "workers/jobs/plan/open_request.h"
#include "workers/jobs/plan/plan_tasks.h"
#include "workers/jobs/plan/settle_functions.h"
#include "workers/jobs/plan/stain_reference.h"
#include "workers/jobs/plan/table_rows.h"
#include "workers/jobs/plan/tile_patches.h"
#include "workers/sources/channel_choice.h"
#include "workers/stream/chain_options.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMisfitsNamed = 8;  ///< beside the first

std::string HowCorrected(const results::ImageFacts& facts) {
  return StrCat(*facts.mpp, " um/px; ",
                facts.stated_mpp ? StrCat("the file states ", *facts.stated_mpp)
                                 : std::string("the file states none"));
}

using NamedImages = std::vector<results::SkippedImage>;

/// The images of a dataset, and the skipped ones.
struct DatasetImages {
  std::vector<plan::PlannedImage> images;
  PlannedImages where;
  std::vector<std::optional<double>> mpps;
  std::vector<std::optional<plan::PerAxis>> spacings;
  std::vector<std::string> orientations;
  std::vector<std::optional<Extent>> tiles;  ///< ImageRow::tile of each
  std::vector<std::optional<Modality>> modalities;
  std::vector<std::vector<results::ChannelFacts>> channels;  ///< ImageFacts::channels of each
  std::vector<std::string> misfits;                          ///< ImageRow::misfit of each
  std::size_t mpps_assumed = 0, stains_of_tissue = 0;
  std::string facts;                   ///< JSON of results::ImageFacts of each, with commas
  std::vector<std::uint64_t> numbers;  ///< numbers of the images in the root task's list
  std::size_t listed = 0;              ///< images of that list
  results::SkippedImages skipped;

  void Add(std::size_t number, ImageRow&& row, std::string&& path) {
    if (row.fault.empty()) {
      numbers.push_back(number);
      if (!row.path.empty()) path = std::move(row.path);
      const SlideChoice& part = row.image.choice;
      if (part.IsMade() && skipped.parts_chosen.size() < kMaxSkippedNamed) {
        skipped.parts_chosen.push_back({path, part.ToString()});
      }
      images.push_back(std::move(row.image));
      mpps.push_back(row.mpp);
      spacings.push_back(row.spacing);
      orientations.push_back(std::move(row.orientation));
      tiles.push_back(row.tile);
      misfits.push_back(std::move(row.misfit));
      mpps_assumed += row.mpp_assumed ? 1 : 0;
      stains_of_tissue += row.of_tissue ? 1 : 0;
      modalities.push_back(row.facts.modality);
      if (!facts.empty()) facts += ',';
      facts += DumpJson(JsonOf(row.facts));
      channels.push_back(std::move(row.facts.channels));
      if (row.facts.mpp_corrected && skipped.mpp_corrected.size() < kMaxSkippedNamed) {
        skipped.mpp_corrected.push_back({path, HowCorrected(row.facts)});
      }
      where.paths.push_back(std::move(path));
      where.stamps.push_back(std::move(row.stamp));
    } else if (++skipped.count <= kMaxSkippedNamed) {
      skipped.images.push_back({std::move(path), std::move(row.fault)});
    }
  }
};

Subject ImageOf(const DatasetImages& joined, std::size_t at) {
  return {SubjectKind::kImage, joined.numbers[at], ""};
}

StatusOr<DatasetImages> JoinImages(TaskContext& context) {
  if (context.inputs.empty()) return Internal("stream.join: no inputs");
  PB_ASSIGN_OR_RETURN(const Json list, ParseJson(context.inputs[0], "list of images"));
  PB_ASSIGN_OR_RETURN(ImageList listed, FromJson<ImageList>(list, "list of images"));
  std::vector<std::string> paths = listed.Paths();
  DatasetImages joined;
  joined.skipped.files = std::move(listed.skipped_files);
  joined.listed = paths.size();
  std::size_t at = 0;
  for (std::string& input : std::span(context.inputs).subspan(1)) {
    PB_ASSIGN_OR_RETURN(const Json value,
                        ParseJson(std::exchange(input, std::string()), "opened images"));
    PB_ASSIGN_OR_RETURN(auto rows, FromJson<std::vector<ImageRow>>(value, "opened images"));
    for (ImageRow& row : rows) {
      if (at >= paths.size()) break;
      joined.Add(at, std::move(row), std::move(paths[at]));
      ++at;
    }
    context.AddProgress();
  }
  context.inputs.clear();
  if (at != paths.size()) return Internal("stream.join: ", at, " of ", paths.size(), " images");
  for (std::size_t i = 0; i < joined.where.paths.size(); ++i) {
    context.subjects.Add(joined.where.paths[i], ImageOf(joined, i));
  }
  if (!joined.images.empty()) return joined;
  const results::SkippedImage& first = joined.skipped.images[0];
  context.subjects.Add(first.path, {SubjectKind::kImage, 0, ""});
  return InvalidArgument("plan stream: none of ", joined.skipped.count,
                         " images can be read; the first: ", first.reason);
}

/// Renumbers the images in an error of the plan, which does not count skipped images, to those of
/// the dataset.
Status OfDataset(const Status& status, const std::vector<std::size_t>& numbers) {
  Outcome outcome = OutcomeOf(status);
  const auto renumber = [&](Subject& subject) {
    const bool is_image = subject.kind == SubjectKind::kImage && subject.index < numbers.size();
    if (is_image) subject.index = numbers[subject.index];
  };
  renumber(outcome.subject);
  for (Subject& other : outcome.others) renumber(other);
  return StatusOf(outcome);
}

Status ErrorOf(const DatasetImages& joined, std::size_t at, std::string_view cause,
               std::string_view advice = "") {
  return ErrorAbout(absl::StatusCode::kInvalidArgument, kPlanStream, ImageOf(joined, at), cause,
                    advice);
}

/// "plan stream: A: <of a>, but B has <of b>; <advice>", of two images by their place.
Status Differing(const DatasetImages& joined, const std::array<std::size_t, 2>& images,
                 const std::array<std::string, 2>& said, std::string_view advice) {
  Outcome outcome = OutcomeOf(ErrorOf(
      joined, images[0], StrCat(said[0], ", but ", kOtherSubject, " has ", said[1]), advice));
  outcome.others = {ImageOf(joined, images[1])};
  return StatusOf(outcome);
}

/// Checks that all images have the channels and dtype of the first.
Status CheckAlike(const DatasetImages& joined) {
  const plan::PlannedImage& first = joined.images.front();
  for (std::size_t i = 0; i < joined.images.size(); ++i) {
    const plan::PlannedImage& image = joined.images[i];
    if (image.channels == first.channels && image.dtype == first.dtype) continue;
    return Differing(
        joined, {i, 0},
        {StrCat("key 'dataset': ", Counted(static_cast<std::uint64_t>(image.channels), "channel"),
                " of ", NameOf(image.dtype)),
         StrCat(first.channels, " of ", NameOf(first.dtype))},
        "");
  }
  return absl::OkStatus();
}

/// "t1, flair"; "no names".
std::string NamesText(const std::vector<std::string>& names) {
  return names.empty() ? std::string("no names") : StrJoin(names, ", ");
}

/// The names of the channels of a patch of image `at`; empty without names.
std::vector<std::string> NamesOf(const DatasetImages& joined, std::size_t at) {
  std::vector<std::string> names;
  for (const results::ChannelFacts& channel : joined.channels[at]) names.push_back(channel.name);
  return WithoutNumbered(std::move(names));
}

/// Checks that the channels of all images have the names of the first one's, where a run takes all:
/// others would swap the model's inputs.
Status CheckChannels(const plan::RunConfig& config, const DatasetImages& joined) {
  if (!config.channels.empty() || joined.images.front().channels == 1) return absl::OkStatus();
  std::vector<std::string> first;
  for (std::size_t i = 0; i < joined.images.size(); ++i) {
    const std::vector<std::string> names = NamesOf(joined, i);
    if (i == 0) first = names;
    if (names == first) continue;
    return Differing(joined, {i, 0},
                     {StrCat("key 'dataset': channels: ", NamesText(names)), NamesText(first)},
                     "patch.channels chooses them by name");
  }
  return absl::OkStatus();
}

Status CheckNumbers(const plan::RunConfig& config, const DatasetImages& joined) {
  const Status fits = plan::CheckNormalize(config, joined.images.front().dtype);
  return fits.ok() ? fits : Annotate(fits, "plan stream");
}

/// Checks that patch.level has one resolution in all images, unless the config allows others.
/// Images that do not state their pixel size are not compared.
Status CheckMpps(const plan::RunConfig& config, const DatasetImages& joined) {
  if (config.mixed_mpp || !config.mpp.empty()) return absl::OkStatus();
  std::optional<std::size_t> finest, coarsest;
  for (std::size_t i = 0; i < joined.mpps.size(); ++i) {
    if (!joined.mpps[i]) continue;
    if (!finest || *joined.mpps[i] < *joined.mpps[*finest]) finest = i;
    if (!coarsest || *joined.mpps[i] > *joined.mpps[*coarsest]) coarsest = i;
  }
  if (!finest) return absl::OkStatus();
  const double low = *joined.mpps[*finest], high = *joined.mpps[*coarsest];
  if (high <= low * (1 + config.mpp_tolerance)) return absl::OkStatus();
  return Differing(
      joined, {*finest, *coarsest},
      {StrCat("key 'patch.level': level ", config.level, " has ", low, " um/px"),
       StrCat(high, " um/px")},
      "ask for one resolution by patch.mpp, or take them all with patch: {mixed_mpp: true}");
}

std::string MmText(const plan::PerAxis& mm) {
  const auto rounded = [](double v) { return std::round(v * 1e4) / 1e4; };
  return StrCat(rounded(mm.z), " x ", rounded(mm.y), " x ", rounded(mm.x), " mm");
}

/// Checks that patch.level has one spacing in all volumes, unless the config allows others. Volumes
/// that do not state theirs are not compared.
Status CheckSpacings(const plan::RunConfig& config, const DatasetImages& joined) {
  if (config.mixed_spacing || config.spacing) return absl::OkStatus();
  for (double plan::PerAxis::*axis : {&plan::PerAxis::z, &plan::PerAxis::y, &plan::PerAxis::x}) {
    std::optional<std::size_t> least, most;
    for (std::size_t i = 0; i < joined.spacings.size(); ++i) {
      if (!joined.spacings[i]) continue;
      if (!least || (*joined.spacings[i]).*axis < (*joined.spacings[*least]).*axis) least = i;
      if (!most || (*joined.spacings[i]).*axis > (*joined.spacings[*most]).*axis) most = i;
    }
    if (!least) return absl::OkStatus();
    const plan::PerAxis &low = *joined.spacings[*least], &high = *joined.spacings[*most];
    if (high.*axis <= low.*axis * (1 + config.spacing_tolerance)) continue;
    return Differing(
        joined, {*least, *most},
        {StrCat("key 'patch.spacing': level ", config.level, " has voxels of ", MmText(low)),
         MmText(high)},
        "ask for one spacing by patch.spacing, or take them all with patch: "
        "{mixed_spacing: true}");
  }
  return absl::OkStatus();
}

/// Checks that the axes of all volumes have the same directions: others would mirror or swap the
/// model's input.
Status CheckOrientations(const plan::RunConfig& config, const DatasetImages& joined) {
  if (config.mixed_spacing) return absl::OkStatus();
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < joined.orientations.size(); ++i) {
    const std::string& orientation = joined.orientations[i];
    if (orientation.empty()) continue;
    if (!first) first = i;
    const std::string& other = joined.orientations[*first];
    if (orientation == other) continue;
    return Differing(joined, {*first, i},
                     {StrCat("key 'dataset': the volume's axes run to ", other), orientation},
                     "ingest them with one --orientation (canonical is the default), or take them "
                     "all with patch: {mixed_spacing: true}");
  }
  return absl::OkStatus();
}

/// Whether the op takes values for Hounsfield units.
bool AsksForHu(const plan::OpRow& op, const Json& options) {
  if (op.needs.body) return plan::ValuesNeededBy(op, options).over == plan::kOverBody;
  return op.window || op.statistic.name == plan::kCtForeground;
}

/// Checks that volumes are in Hounsfield units where an op, or the default of patch.fill, takes
/// them for such.
Status CheckUnits(const plan::Plan& plan, const DatasetImages& joined) {
  const plan::RunConfig& config = plan.config();
  const plan::FoundOp op = config.Find(AsksForHu);
  const bool fills_with_air = !config.fill && plan.fill() < 0;
  if (!op && !fills_with_air) return absl::OkStatus();
  const std::string asks =
      op ? StrCat("key '", op.key, "': it takes Hounsfield units")
         : StrCat("key 'patch.fill': its default, ", plan.fill(), ", is air in Hounsfield units");
  for (std::size_t i = 0; i < joined.modalities.size(); ++i) {
    const Status is_hu = CheckAllHu(joined.modalities[i], joined.channels[i], asks);
    if (is_hu.ok()) continue;
    const std::string settles = OutcomeOf(is_hu).advice;
    return About(WithAdvice(is_hu, op ? settles : StrCat("state patch.fill; ", settles)),
                 kPlanStream, ImageOf(joined, i));
  }
  return absl::OkStatus();
}

/// Gives each image the facts of its row in the table.
Status TakeRows(const TaskContext& context, const plan::RunConfig& config, DatasetImages& joined) {
  PB_ASSIGN_OR_RETURN(std::vector<plan::PlannedRow> rows,
                      RowsOf(context.manifest, joined.listed, 0, joined.listed));
  const auto normalize = plan::FindStainReferences(config);
  if (rows.empty() && normalize && normalize->IsByScanner()) {
    return InvalidArgument(
        "plan stream: key 'stain_normalize.scanners': the dataset is not a table");
  }
  for (std::size_t i = 0; i < joined.images.size() && !rows.empty(); ++i) {
    plan::PlannedRow& row = rows[joined.numbers[i]];
    joined.images[i].groups = std::move(row.groups);
    joined.images[i].label = row.label;
    joined.images[i].stain_reference = row.scanner;
  }
  return absl::OkStatus();
}

/// The order of a table of places, where the config asks for it.
StatusOr<std::vector<plan::ListedRun>> OrderOf(const Json& manifest, const plan::RunConfig& config,
                                               std::span<const std::uint64_t> rows) {
  std::vector<plan::ListedRun> order;
  const bool is_asked =
      config.positions == plan::Positions::kListed && config.order == plan::PatchOrder::kSequential;
  if (!is_asked) return order;
  constexpr std::string_view kWhat = "stream manifest: table";
  PB_ASSIGN_OR_RETURN(const Json* table, JsonMember(manifest, "table", kWhat));
  PB_ASSIGN_OR_RETURN(const Json* text, JsonMember(*table, "positions_order", kWhat));
  PB_ASSIGN_OR_RETURN(order, FromJson<std::vector<plan::ListedRun>>(*text, kWhat));
  return ListedSequenceOf(order, rows);
}

/// Patches as the config has them can be cut from every image.
Status CheckPatches(const plan::RunConfig& config, const DatasetImages& joined) {
  for (std::size_t i = 0; i < joined.images.size(); ++i) {
    const Status fits = plan::CheckPatchOf(config, joined.images[i]);
    if (fits.ok()) continue;
    return About(fits, kPlanStream, ImageOf(joined, i));
  }
  return absl::OkStatus();
}

/// Patches of stores of tiles lie in one tile each.
Status CheckTiles(const plan::RunConfig& config, const DatasetImages& joined) {
  for (std::size_t i = 0; i < joined.images.size(); ++i) {
    if (!joined.tiles[i]) continue;
    const Status fits = CheckTilePatches(config, joined.images[i], *joined.tiles[i]);
    if (!fits.ok()) return About(fits, kPlanStream, ImageOf(joined, i));
  }
  return absl::OkStatus();
}

/// Whether the images, which are alike, are of the type that every op of colours by image needs.
Status CheckColours(const plan::RunConfig& config, const DatasetImages& joined) {
  const std::string wrong = plan::WrongColours(joined.images.front());
  if (wrong.empty()) return absl::OkStatus();
  for (const std::string& key : {plan::FindIccOp(config).key, plan::FindStainOp(config).key}) {
    if (key.empty()) continue;
    return ErrorOf(joined, 0, StrCat("key '", key, "': ", wrong));
  }
  return absl::OkStatus();
}

/// Refuses ops of colours for channels that are others, by their names.
Status CheckRgb(const plan::RunConfig& config, const DatasetImages& joined) {
  const plan::FoundOp op =
      config.Find([](const plan::OpRow& row, const Json&) { return row.needs.rgb; });
  if (!op) return absl::OkStatus();
  const std::string needs = StrCat("key '", op.key, "': it needs red, green and blue, and ");
  const std::vector<std::string> colours = {"red", "green", "blue"};
  if (!config.channels.empty() && config.channels != colours) {
    return InvalidArgument(kPlanStream, ": ", needs, "patch.channels names ",
                           NamesText(config.channels));
  }
  for (std::size_t i = 0; i < joined.images.size(); ++i) {
    const std::vector<std::string> names = NamesOf(joined, i);
    if (names.empty() || names == colours) continue;
    return ErrorOf(joined, i, StrCat(needs, "the channels are ", NamesText(names)));
  }
  return absl::OkStatus();
}

/// Refuses images that icc_to_srgb would leave unchanged, where the config does not allow it.
Status CheckIcc(const plan::RunConfig& config, const DatasetImages& joined) {
  const plan::FoundOp icc = plan::FindIccOp(config);
  if (!icc || !icc.op->refuses_missing(*icc.options)) return absl::OkStatus();
  for (std::size_t i = 0; i < joined.images.size(); ++i) {
    const std::optional<plan::ImageIcc>& found = joined.images[i].icc;
    if (!found || found->fallback == plan::IccFallback::kNone) continue;
    return ErrorOf(joined, i,
                   StrCat("key '", icc.key, ".missing': ", plan::NameOf(found->fallback)),
                   "`missing: keep` takes its colours as they are");
  }
  return absl::OkStatus();
}

/// Refuses images that are not H&E, all of them by name, or takes their fits from them, as the
/// config has it.
Status SettleMisfits(const plan::RunConfig& config, DatasetImages& joined) {
  const auto normalize = plan::FindStainReferences(config);
  if (!normalize || normalize->misfit == plan::StainMisfit::kKeep) return absl::OkStatus();
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < joined.images.size(); ++i) {
    if (joined.misfits[i].empty()) continue;
    found.push_back(i);
    if (normalize->misfit != plan::StainMisfit::kSkip) continue;
    joined.images[i].macenko.reset();
    joined.images[i].reinhard.reset();
  }
  if (found.empty() || normalize->misfit == plan::StainMisfit::kSkip) return absl::OkStatus();
  std::string others;
  for (std::size_t i = 1; i < std::min(found.size(), 1 + kMisfitsNamed); ++i) {
    others += StrCat(i == 1 ? "; likewise " : ", ", kOtherSubject);
  }
  if (found.size() > 1 + kMisfitsNamed) others += StrCat(" and ", found.size() - 1 - kMisfitsNamed);
  Outcome outcome = OutcomeOf(ErrorOf(
      joined, found[0],
      StrCat("key '", plan::FindStainOp(config).key, "': ", joined.misfits[found[0]], others),
      "`misfit: skip` leaves such slides unnormalised, `misfit: keep` uses their fits as they "
      "are"));
  for (std::size_t i = 1; i < std::min(found.size(), 1 + kMisfitsNamed); ++i) {
    outcome.others.push_back(ImageOf(joined, found[i]));
  }
  return StatusOf(outcome);
}

/// The first images that stand in the plan with another's colours, or whose fit is not that of H&E.
NamedImages WithoutStain(const plan::Plan& plan, const DatasetImages& joined) {
  NamedImages named;
  const auto normalize = plan::FindStainReferences(plan.config());
  if (!normalize) return named;
  const bool skips = normalize->misfit == plan::StainMisfit::kSkip;
  for (std::size_t i = 0; i < plan.images().size() && named.size() < kMaxSkippedNamed; ++i) {
    if (!joined.misfits[i].empty()) {
      named.push_back({joined.where.paths[i],
                       StrCat(joined.misfits[i], skips ? ": its patches stay unnormalised"
                                                       : ": its fit is used as it is")});
      continue;
    }
    const plan::StainFallback fallback = StainFallbackOf(plan.images()[i]);
    if (fallback == plan::StainFallback::kNone) continue;
    named.push_back({joined.where.paths[i], std::string(plan::NameOf(fallback))});
  }
  return named;
}

/// The first images that keep their colours under icc_to_srgb.
NamedImages WithoutIcc(const plan::Plan& plan, const DatasetImages& joined) {
  NamedImages named;
  for (std::size_t i = 0; i < plan.images().size() && named.size() < kMaxSkippedNamed; ++i) {
    const std::optional<plan::ImageIcc>& icc = plan.images()[i].icc;
    if (!icc || icc->fallback == plan::IccFallback::kNone) continue;
    named.push_back({joined.where.paths[i], std::string(plan::NameOf(icc->fallback))});
  }
  return named;
}

/// One number if all images have it, otherwise one per image; null = not known.
Json MppsToJson(const std::vector<std::optional<double>>& mpps) {
  Json list = Json::array();
  for (const std::optional<double>& mpp : mpps) {
    list.push_back(mpp ? Json(std::round(*mpp * 1e6) / 1e6) : Json());
  }
  const auto differs = [&](const Json& mpp) { return mpp != list[0]; };
  if (std::none_of(list.begin(), list.end(), differs)) return Json(list[0]);
  return list;
}

/// Whether the ops can make patches of every image.
Status CheckChain(const plan::Plan& plan, const DatasetImages& joined) {
  PB_ASSIGN_OR_RETURN(const ops::Chain chain, ops::Chain::Compile(ChainOptionsOf(plan)));
  for (std::size_t i = 0; i < plan.images().size(); ++i) {
    const Status fits = chain.CheckImage(plan.FactsOf(static_cast<std::uint32_t>(i)));
    if (!fits.ok()) return About(fits, kPlanStream, ImageOf(joined, i));
  }
  return absl::OkStatus();
}

/// The manifest as JSON, with `facts`, which as values would take many times the memory.
std::string ManifestText(const plan::PlannedManifest& manifest, const std::string& facts) {
  std::map<std::string, std::string> members;
  const Json json = JsonOf(manifest);
  for (const auto& [key, value] : json.items()) members[key] = DumpJson(value);
  members["facts"] = StrCat("[", facts, "]");
  return JoinMembers(members);
}

Status TooLarge(std::size_t images, std::size_t bytes) {
  return ResourceExhausted("plan stream: ", images, " images make a plan of ", HumanBytes(bytes),
                           ", more than the limit of ", HumanBytes(protocol::kMaxResultBytes),
                           ": split the dataset, or shorten the paths below their common folder");
}

}  // namespace

StatusOr<TaskOutput> RunStreamJoin(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(PlanRequest request, ParsePlanRequest(context.ops, context.payload));
  PB_ASSIGN_OR_RETURN(DatasetImages joined, JoinImages(context));
  PB_RETURN_IF_ERROR(CheckAlike(joined));
  PB_RETURN_IF_ERROR(CheckChannels(request.config, joined));
  PB_RETURN_IF_ERROR(CheckNumbers(request.config, joined));
  PB_RETURN_IF_ERROR(CheckPatches(request.config, joined));
  PB_RETURN_IF_ERROR(CheckTiles(request.config, joined));
  PB_RETURN_IF_ERROR(CheckMpps(request.config, joined));
  PB_RETURN_IF_ERROR(CheckSpacings(request.config, joined));
  PB_RETURN_IF_ERROR(CheckOrientations(request.config, joined));
  PB_RETURN_IF_ERROR(TakeRows(context, request.config, joined));
  PB_RETURN_IF_ERROR(CheckRgb(request.config, joined));
  PB_RETURN_IF_ERROR(CheckColours(request.config, joined));
  PB_RETURN_IF_ERROR(CheckIcc(request.config, joined));
  PB_RETURN_IF_ERROR(SettleMisfits(request.config, joined));
  PB_RETURN_IF_ERROR(SettleStainReferences(context, request.config, joined.images));
  const auto normalize = plan::FindStainReferences(request.config);
  // Fits are numbers by now: a run by all pixels is the same plan whichever way it came to them.
  if (normalize && !normalize->AsksForTissue()) plan::SetTissueOfFits(request.config, "");
  PB_RETURN_IF_ERROR(SettleFunctions(context, request.config));
  PB_ASSIGN_OR_RETURN(const std::vector<plan::ListedRun> order,
                      OrderOf(context.manifest, request.config, joined.numbers));
  const StatusOr<plan::Plan> built =
      plan::Plan::Build(request.config, std::move(joined.images), order);
  if (!built.ok()) return OfDataset(built.status(), joined.numbers);
  const plan::Plan& made = *built;
  PB_ASSIGN_OR_RETURN(const StreamGeometry geometry, made.Geometry(request.start.world_size));
  PB_RETURN_IF_ERROR(plan::RingBytes(made.layout(), geometry, request.config.prefetch).status());
  PB_RETURN_IF_ERROR(CheckUnits(made, joined));
  PB_RETURN_IF_ERROR(CheckChain(made, joined));
  PlannedStream planned;
  planned.plan = made.Text();
  auto manifest = plan::PlannedManifest::Of(joined.where.paths, std::move(joined.where.stamps));
  manifest.mpp = MppsToJson(joined.mpps);
  manifest.mpp_assumed = joined.mpps_assumed;
  manifest.stains_of_tissue = joined.stains_of_tissue;
  PB_ASSIGN_OR_RETURN(manifest.functions, FunctionPathsOf(context));
  if (IsTable(context.manifest)) manifest.rows = std::move(joined.numbers);
  planned.manifest = ManifestText(manifest, joined.facts);
  planned.geometry = geometry;
  planned.numerics = *made.config().numerics;
  planned.byte_versions = plan::ByteVersionsText();
  planned.start = request.start.start;
  if (made.config().order == plan::PatchOrder::kSequential || made.bags()) {
    planned.images = ImageRuns::OfCounts(made.ImageRunLengths());
  }
  joined.skipped.without_stain = WithoutStain(made, joined);
  joined.skipped.without_icc = WithoutIcc(made, joined);
  planned.skipped = JsonOf(joined.skipped);
  TaskOutput output;
  output.result = EncodePlannedStream(planned);
  if (output.result.size() > protocol::kMaxResultBytes) {
    return TooLarge(joined.where.paths.size(), output.result.size());
  }
  return output;
}

}  // namespace patchbay::workers
