#include "runtime/client/run_file.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "absl/strings/cord.h"
#include "runtime/client/cohort_contents.h"
#include "runtime/client/lock_file.h"
#include "runtime/client/paths.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/model/ops/op_list.h"
#include "runtime/model/ops/own_functions.h"
#include "runtime/model/ops/stain_references.h"
#include "runtime/model/plan/cohort.h"
#include "runtime/model/plan/coordinates.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/plan/planned_manifest.h"
#include "runtime/model/plan/plausibility.h"
#include "runtime/os/file.h"

namespace patchbay::client {
namespace {

/// Stands for the dataset where a payload must have one: paths travel in the manifest.
constexpr char kInManifest[] = "manifest";
/// Replaces the path of a reference picture in messages.
constexpr char kTileReference[] = "tile";
constexpr char kFaultPayload[] = "patchbay.client/config";

/// Errors of reading the file itself (it does not exist) are unchanged.
Status AsConfigFault(const Status& status) {
  return absl::IsInvalidArgument(status) ? ConfigFault(MessageOf(status)) : status;
}

/// Lines of an override mean nothing.
void ForgetLines(config::YamlNode& node) {
  node.line = 0;
  for (config::YamlNode& item : node.items) ForgetLines(item);
  for (config::YamlNode::Member& member : node.members) {
    member.line = 0;
    ForgetLines(member.value);
  }
}

/// "a.b=v" as the map {a: {b: v}}.
StatusOr<config::YamlNode> OverrideOf(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string key = text.substr(0, equals);
  if (equals == std::string::npos || key.empty() || key.find('[') != std::string::npos) {
    return ConfigFault(StrCat("override '", text, "': expected KEY=VALUE, as batch.prefetch=4"));
  }
  const std::string source = StrCat("override '", key, "'");
  StatusOr<config::YamlNode> value =
      config::ParseYaml(StrCat("value: ", text.substr(equals + 1)), source);
  if (!value.ok()) return AsConfigFault(value.status());
  ForgetLines(*value);
  config::YamlNode node = value->members[0].value;
  for (std::size_t end = key.size(); end != std::string::npos && end > 0;) {
    const std::size_t dot = key.rfind('.', end - 1);
    const std::size_t begin = dot == std::string::npos ? 0 : dot + 1;
    config::YamlNode map;
    map.kind = config::YamlNode::Kind::kMap;
    map.source = node.source;
    map.members.push_back({key.substr(begin, end - begin), 0, std::move(node)});
    node = std::move(map);
    end = dot;
  }
  return node;
}

/// `status` with the file and the line of `key` before it.
Status AtKey(const RunFile& run, const std::string& key, const Status& status) {
  const int line = config::LineOf(run.yaml, key);
  return Annotate(status, StrCat(run.path, line > 0 ? StrCat(":", line) : "", ": key '", key, "'"));
}

/// Adds to `status` that overrides changed the config: they may be the cause.
Status WithOverrides(const Status& status, const std::vector<std::string>& overrides) {
  if (overrides.empty()) return status;
  std::vector<std::string> keys;
  for (const std::string& text : overrides) keys.push_back(text.substr(0, text.find('=')));
  Outcome outcome = OutcomeOf(status);
  outcome.cause += StrCat(" (with overrides of ", StrJoin(keys, ", "), "; maps are merged)");
  return StatusOf(outcome);
}

/// The config as written, with overrides, checked.
Status ReadConfig(const RunSource& source, RunFile& run) {
  run.path = source.values.has_value() ? "config" : source.file;
  std::error_code error;
  if (!source.values && std::filesystem::is_directory(source.file, error)) {
    return ConfigFault(StrCat(source.file, ": a folder, not a run config: a RUN.yaml names it as ",
                              "its `dataset`, DICOM series once they are ingested"));
  }
  StatusOr<config::YamlNode> yaml = source.values.has_value()
                                        ? config::ParseYaml(DumpJson(*source.values), run.path)
                                        : config::ReadYamlFile(Folders::OfThisUser(), source.file);
  if (!yaml.ok()) return AsConfigFault(yaml.status());
  run.yaml = *std::move(yaml);
  for (const std::string& text : source.overrides) {
    PB_ASSIGN_OR_RETURN(const config::YamlNode over, OverrideOf(text));
    run.yaml = config::MergeYaml(std::move(run.yaml), over);
  }
  StatusOr<plan::RunConfig> config = plan::RunConfigFromYaml(*source.ops, run.yaml);
  if (!config.ok()) return AsConfigFault(WithOverrides(config.status(), source.overrides));
  run.config = *std::move(config);
  return absl::OkStatus();
}

/// Checks that no two rows, of any splits, are the same slide, as far as the table, its stores and
/// the lock tell.
Status CheckContents(const plan::CohortTable& table, const std::string& folder, RunFile& run) {
  const StatusOr<plan::CohortRows> all = plan::SelectRows(table, run.config, "");
  if (!all.ok()) return AsConfigFault(run.Locate(all.status()));
  const std::string& column = run.config.split_column;
  if (!column.empty()) run.census = plan::CensusOf(table, run.config, *all);
  StatusOr<CohortContents> contents = CohortContents::Of(table, *all, column, folder);
  if (!contents.ok()) return AsConfigFault(contents.status());
  run.known_contents = *std::move(contents);
  if (!run.lock) return absl::OkStatus();
  for (const std::size_t row : *all) {
    PB_RETURN_IF_ERROR(
        AsConfigFault(run.known_contents.Add(table, row, run.lock->images[row].digest, "")));
  }
  return absl::OkStatus();
}

/// A table with splits is streamed by one of them, or with all.
Status UnnamedSplit(const plan::SplitCensus& splits) {
  constexpr std::size_t kMostNamed = 10;
  std::vector<std::string> names;
  for (const auto& [name, split] : splits.splits) {
    if (names.size() < kMostNamed) names.push_back(name);
  }
  return InvalidArgument(
      "key 'split_column': a table with splits is streamed by split: name one of ",
      StrJoin(names, ", "), splits.splits.size() > names.size() ? ", ..." : "",
      " (--split, or split= in Python), or `", plan::kAllSplits,
      "`, which is every row without augmentation");
}

/// Reads the table; the rows that the config and the split leave become the images.
Status ReadTable(const RunSource& source, RunFile& run) {
  const std::string& split = source.split;
  const std::string& path = run.config.dataset[0];
  const StatusOr<std::string> text = ReadFile(Folders::OfThisUser(), path, plan::kMaxCohortBytes);
  if (!text.ok()) return AtKey(run, "dataset", Annotate(text.status(), "read table"));
  StatusOr<plan::CohortTable> table = plan::ParseCohortTable(*text, path);
  if (!table.ok()) return AsConfigFault(table.status());
  for (const plan::CohortRow& row : table->rows) run.slide_ids.insert(row.slide_id);
  if (run.lock) {
    const StatusOr<std::size_t> before = plan::CountRows(*table, run.config);
    if (!before.ok()) return AsConfigFault(run.Locate(before.status()));
    PB_RETURN_IF_ERROR(KeepLockedRows(*run.lock, *table));
    PB_ASSIGN_OR_RETURN(const std::size_t kept, plan::CountRows(*table, run.config));
    run.unlocked_rows = *before - kept;
  }
  const StatusOr<plan::CohortRows> rows = plan::SelectRows(*table, run.config, split);
  if (!rows.ok()) return AsConfigFault(run.Locate(rows.status()));
  PB_ASSIGN_OR_RETURN(const std::string absolute, AbsolutePath(path));
  const std::string folder = absolute.substr(0, absolute.rfind('/') + 1);
  PB_RETURN_IF_ERROR(CheckContents(*table, folder, run));
  if (source.streams && split.empty() && run.census) {
    return AsConfigFault(run.Locate(UnnamedSplit(*run.census)));
  }
  std::unordered_map<std::string, const plan::CohortRow*> seen;
  for (const std::size_t number : *rows) {
    const plan::CohortRow& row = table->rows[number];
    const std::string& listed = table->Cell(row, "path");
    RunRow& image = run.rows.emplace_back();
    image.row = number;
    image.listed.content = table->Cell(row, "content_hash").substr(0, plan::kContentDigits);
    const StatusOr<std::string> modality = plan::ModalityOf(*table, row);
    if (!modality.ok()) return AsConfigFault(modality.status());
    image.listed.modality = *modality;
    if (run.lock) image.listed.pins = PinsOf(run.lock->images[number]);
    PB_ASSIGN_OR_RETURN(image.path, AbsolutePath(listed.front() == '/' ? listed : folder + listed));
    const auto [first, is_new] = seen.emplace(image.path, &row);
    if (is_new) continue;
    return AsConfigFault(table->Wrong(row, "path",
                                      StrCat("'", listed, "' is the file of line ",
                                             first->second->line, " too; a slide has one row")));
  }
  run.table = *std::move(table);
  return absl::OkStatus();
}

Status FindImages(const RunSource& source, RunFile& run) {
  if (plan::HasTable(run.config)) return ReadTable(source, run);
  if (!source.split.empty()) {
    return ConfigFault(StrCat("split '", source.split, "': the config has no split_column"));
  }
  if (run.lock) {
    for (std::size_t i = 0; i < run.lock->images.size(); ++i) {
      const plan::LockedImage& image = run.lock->images[i];
      run.rows.push_back({.path = image.path, .row = i, .listed = {.pins = PinsOf(image)}});
    }
    return absl::OkStatus();
  }
  for (const std::string& entry : run.config.dataset) {
    PB_ASSIGN_OR_RETURN(run.rows.emplace_back().path, AbsolutePath(entry));
  }
  return absl::OkStatus();
}

/// The places of the slide of image `i`.
plan::SlidePlaces PositionsOf(const plan::Coordinates& places, const RunFile& run, std::size_t i) {
  const auto slide = places.slides.find(run.RowOf(i).slide_id);
  return slide == places.slides.end() ? plan::SlidePlaces() : slide->second;
}

/// The text whose digest a lock pins: the places of a slide, their order, and their classes.
std::string PinnedText(const plan::SlidePlaces& slide, const std::string& order) {
  std::string text = plan::EncodePositions(slide.places) + order;
  if (!slide.labels.values.empty()) text += " " + plan::EncodePlaceLabels(slide.labels);
  return text;
}

plan::CohortRows NumbersOf(const RunFile& run) {
  plan::CohortRows numbers;
  for (const RunRow& row : run.rows) numbers.push_back(row.row);
  return numbers;
}

/// The order in which the table has the places of these rows, by number in `rows`.
std::vector<plan::ListedRun> OrderOf(const plan::Coordinates& places,
                                     const plan::CohortTable& table, const plan::CohortRows& rows) {
  std::vector<std::optional<std::uint32_t>> row_of_slide(places.slides.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto slide = places.slides.find(table.rows[rows[i]].slide_id);
    if (slide == places.slides.end()) continue;
    row_of_slide[slide->second.number] = static_cast<std::uint32_t>(i);
  }
  std::vector<plan::ListedRun> order;
  for (const plan::ListedRun& listed : places.order) {
    const auto row = row_of_slide[listed.image];
    if (row) plan::AppendListed(*row, listed.places, order);
  }
  return order;
}

/// For each row of the table, the order of its places among those of the lock's other images; empty
/// if the places of each image are contiguous, and the images in the lock's order.
std::vector<std::string> OrdersToPin(const plan::Coordinates& places, const RunFile& run) {
  plan::CohortRows locked = NumbersOf(run);
  if (run.lock) {
    locked.resize(run.table->rows.size());
    std::iota(locked.begin(), locked.end(), std::size_t{0});
  }
  const std::vector<plan::ListedRun> order = OrderOf(places, *run.table, locked);
  std::vector<std::string> pinned(run.table->rows.size());
  const auto by_image = [](const auto& a, const auto& b) { return a.image < b.image; };
  if (std::is_sorted(order.begin(), order.end(), by_image)) return pinned;
  std::string slides;
  for (const plan::ListedRun& listed : order) {
    slides += run.table->rows[locked[listed.image]].slide_id + "\n";
  }
  const std::string whole = Sha256Of(slides).Hex();
  for (const plan::ListedRun& listed : order) {
    std::string& one = pinned[locked[listed.image]];
    one += StrCat(one.empty() ? whole : "", " ", listed.places);
  }
  return pinned;
}

/// A table of places, every slide of which is in the dataset's table.
StatusOr<plan::Coordinates> ReadPlaces(const std::string& path, const RunFile& run) {
  if (!run.table) {
    return run.Locate(
        InvalidArgument("key 'sampling.positions': a table of places names slides by slide_id, so "
                        "the dataset is a table too (`patchbay scan` makes one)"));
  }
  const StatusOr<std::string> text =
      ReadFile(Folders::OfThisUser(), path, plan::kMaxCoordinatesBytes);
  if (!text.ok()) {
    return AtKey(run, "sampling.positions", Annotate(text.status(), "read table of places"));
  }
  StatusOr<plan::Coordinates> read =
      plan::ParseCoordinates(*text, path, run.config.labels.positions_column);
  if (!read.ok()) return AsConfigFault(read.status());
  for (const auto& [id, slide] : read->slides) {
    if (run.slide_ids.contains(id)) continue;
    return ConfigFault(StrCat(path, ":", slide.line, ": column 'slide_id': '", id,
                              "' is in no row of ", run.table->source));
  }
  return read;
}

/// Reads the places that a table lists for the selected rows; for a locked run the lock's.
Status TakePositions(RunFile& run) {
  const std::string& path = run.config.positions_table;
  PB_ASSIGN_OR_RETURN(const plan::Coordinates places, ReadPlaces(path, run));
  const std::vector<std::string> orders = OrdersToPin(places, run);
  for (std::size_t i = 0; i < run.rows.size(); ++i) {
    RunRow& image = run.rows[i];
    const plan::SlidePlaces slide = PositionsOf(places, run, i);
    image.listed.positions = slide.places;
    image.listed.position_labels = slide.labels;
    if (!run.lock) continue;
    PB_RETURN_IF_ERROR(
        CheckPlacesPinned(run.lock->images[image.row], path, PinnedText(slide, orders[image.row])));
  }
  if (run.config.order == plan::PatchOrder::kSequential) {
    run.positions_order = OrderOf(places, *run.table, NumbersOf(run));
  }
  if (!places.ignored.empty()) {
    run.notices.push_back(
        StrCat(path, ": columns not read: ", StrJoin(places.ignored, ", "),
               "; x and y count as pixels of level 0, the patch is the config's"));
  }
  return absl::OkStatus();
}

/// Takes the digests that a lock pins of the tables of places.
Status TakePlaces(RunFile& run) {
  const StatusOr<std::vector<std::string>> tables = plan::PositionTablesOf(run.config);
  if (!tables.ok()) return run.Locate(tables.status());
  for (const std::string& table : *tables) {
    PB_ASSIGN_OR_RETURN(const plan::Coordinates places, ReadPlaces(table, run));
    const std::vector<std::string> orders = OrdersToPin(places, run);
    for (std::size_t i = 0; i < run.rows.size(); ++i) {
      RunRow& image = run.rows[i];
      image.places[table] =
          plan::DigestOfPlaces(PinnedText(PositionsOf(places, run, i), orders[image.row]));
    }
  }
  return absl::OkStatus();
}

/// Takes one value per row from a column of the table.
template <typename T, typename Member>
Status TakeColumn(StatusOr<std::vector<T>> column, Member plan::PlannedRow::*member, RunFile& run) {
  if (!column.ok()) return AsConfigFault(run.Locate(column.status()));
  for (std::size_t i = 0; i < column->size(); ++i) {
    run.rows[i].listed.*member = std::move((*column)[i]);
  }
  return absl::OkStatus();
}

/// Takes the parts of slides that the table's rows choose: also a lock opens them.
Status TakeParts(RunFile& run) {
  if (!run.table) return absl::OkStatus();
  return TakeColumn(plan::SlideChoicesOf(*run.table, NumbersOf(run)), &plan::PlannedRow::choice,
                    run);
}

/// Takes the table's other columns that the config names, and the table of places.
Status TakeColumns(RunFile& run) {
  if (run.config.positions == plan::Positions::kListed) PB_RETURN_IF_ERROR(TakePositions(run));
  const bool weighs = !run.config.weight_by.empty(), labels = !run.config.labels.column.empty();
  if ((weighs || labels) && !run.table) {
    return run.Locate(InvalidArgument("key '",
                                      weighs ? "sampling.weight_by" : "labels.label.column",
                                      "': the dataset is not a table"));
  }
  if (!run.table) return absl::OkStatus();
  const plan::CohortRows rows = NumbersOf(run);
  using Row = plan::PlannedRow;
  PB_RETURN_IF_ERROR(TakeColumn(plan::MppsOf(*run.table, rows), &Row::mpp, run));
  if (weighs) {
    PB_RETURN_IF_ERROR(TakeColumn(plan::GroupsOf(*run.table, run.config, rows), &Row::groups, run));
  }
  if (!labels) return absl::OkStatus();
  return TakeColumn(plan::LabelsOf(*run.table, run.config, rows), &Row::label, run);
}

/// Adds the table's line to an error about the file of a row.
Status AtRow(const RunFile& run, const Status& status) {
  Outcome outcome = OutcomeOf(status);
  for (std::size_t i = 0; run.table && i < run.rows.size(); ++i) {
    if (run.rows[i].path != outcome.subject.part) continue;
    const std::string place = StrCat(": ", run.config.dataset.front(), ":", run.RowOf(i).line);
    if (!outcome.doing.ends_with(place)) outcome.doing += place;
    return StatusOf(outcome);
  }
  return status;
}

}  // namespace

Status ConfigFault(std::string_view text) {
  Status fault = InvalidArgument(text);
  fault.SetPayload(kFaultPayload, absl::Cord("1"));
  return fault;
}

bool IsConfigFault(const Status& status) { return status.GetPayload(kFaultPayload).has_value(); }

Status RunFile::AddContent(std::size_t i, const Digest& digest, const std::string& read_from) {
  if (!census) return absl::OkStatus();
  const std::string store = read_from == rows[i].path ? "" : read_from;
  return AsConfigFault(known_contents.Add(*table, rows[i].row, digest, store));
}

std::vector<std::string> RunFile::LeakNotices() const {
  if (!census) return {};
  std::vector<std::string> leaks = census->notices;
  const std::size_t unknown = census->rows - known_contents.compared();
  if (unknown == 0) return leaks;
  leaks.push_back(StrCat(table->source, ": the content of ", unknown, " of ", census->rows,
                         " rows is not known, so a slide may be in several splits; `patchbay "
                         "lock`, and `patchbay config check` without --split, read every row"));
  return leaks;
}

Status RunFile::AddPlanned(const plan::Plan& made, const plan::PlannedManifest& manifest) {
  if (!census) return absl::OkStatus();
  const std::vector<std::string> paths = manifest.Paths();
  if (made.images().size() != paths.size() || manifest.rows.size() != paths.size()) {
    return Internal("open run: the plan does not have one image per row");
  }
  for (std::size_t i = 0; i < paths.size(); ++i) {
    PB_RETURN_IF_ERROR(AddContent(manifest.rows[i], made.images()[i].digest, paths[i]));
  }
  return absl::OkStatus();
}

plan::RunConfig RunFile::WithoutPaths() const {
  plan::RunConfig without_paths = config;
  without_paths.dataset = {kInManifest};
  plan::NumberScanners(without_paths, scanners);
  for (const auto& [scanner, picture] : stain_references) {
    plan::SetStainReference(without_paths, scanner, kTileReference);
  }
  for (std::size_t i = 0; i < functions.size(); ++i) {
    plan::SetFunctionMember(without_paths.augment, i, "file", plan::kFunctionInManifest);
  }
  if (config.positions == plan::Positions::kListed) {
    without_paths.positions_table = plan::kListedPositions;
  }
  without_paths.stores.clear();
  without_paths.weights.clear();
  without_paths.where.clear();
  without_paths.split_column.clear();
  without_paths.splits = Json::object();
  return without_paths;
}

std::vector<std::string> RunFile::Datasets() const {
  std::vector<std::string> paths;
  for (const RunRow& row : rows) paths.push_back(row.path);
  if (!table && !lock) return paths;
  return {plan::SharedFolder(paths)};
}

plan::StreamManifest RunFile::Manifest() const {
  plan::StreamManifest manifest{
      .images = Datasets(), .stain_references = stain_references, .functions = functions};
  if (!table && !lock) return manifest;
  plan::PlannedTable& listed = manifest.table.emplace();
  listed.stores = config.stores;
  listed.positions_order = positions_order;
  for (const RunRow& row : rows) {
    listed.rows.push_back(row.listed);
    listed.rows.back().path = row.path.substr(manifest.images[0].size());
  }
  return manifest;
}

Status RunFile::Locate(const Status& status) const {
  constexpr std::string_view kMark = "key '", kFinding = "find images: ";
  // The key is never looked for in the name of a file.
  const Outcome outcome = OutcomeOf(status);
  const std::string text =
      outcome.doing.empty() ? outcome.cause : StrCat(outcome.doing, ": ", outcome.cause);
  if (StrCat(text, ": ").starts_with(kFinding)) return AtKey(*this, "dataset", status);
  if (IsConfigFault(status)) return status;
  const std::size_t mark = absl::IsInvalidArgument(status) ? text.find(kMark) : std::string::npos;
  if (mark == std::string::npos) return AtRow(*this, status);
  const std::size_t begin = mark + kMark.size();
  const std::string key = text.substr(begin, text.find('\'', begin) - begin);
  const std::string first = key.substr(0, key.find_first_of(".["));
  const std::vector<config::Key> known = plan::RunConfigKeys(*config.ops).members;
  if (std::none_of(known.begin(), known.end(), [&](const auto& k) { return k.name == first; })) {
    return status;
  }
  const int line = config::LineOf(yaml, key);
  Status fault = Annotate(status, StrCat(path, line > 0 ? StrCat(":", line) : ""));
  fault.SetPayload(kFaultPayload, absl::Cord("1"));
  return fault;
}

namespace {

/// Finds the rows that stain_normalize maps to each reference, and the paths of the pictures among
/// them.
Status TakeReferences(RunFile& run) {
  const auto normalize = plan::FindStainReferences(run.config);
  if (!normalize) return absl::OkStatus();
  if (normalize->IsByScanner() && !run.table) {
    return run.Locate(
        plan::WrongOp(StrCat(plan::FindStainOp(run.config).key, ".scanners"),
                      "the dataset is not a table (`patchbay scan` makes one) with the "
                      "scanner of each slide"));
  }
  if (normalize->IsByScanner()) {
    auto scanners = plan::ScannersOf(*run.table, run.config, NumbersOf(run));
    if (!scanners.ok()) return AsConfigFault(run.Locate(scanners.status()));
    run.scanners = std::move(scanners->names);
    for (std::size_t i = 0; i < run.rows.size(); ++i) {
      run.rows[i].listed.scanner = scanners->of_rows[i];
    }
  }
  plan::RunConfig numbered = run.config;
  plan::NumberScanners(numbered, run.scanners);
  for (const auto& [scanner, name] : plan::FindStainReferences(numbered)->Unsettled()) {
    if (!plan::IsPictureReference(name)) continue;
    PB_ASSIGN_OR_RETURN(run.stain_references[scanner], AbsolutePath(name));
  }
  return absl::OkStatus();
}

Status TakeFunctions(RunFile& run) {
  PB_ASSIGN_OR_RETURN(const auto functions, plan::OwnFunctionsOf(run.config.augment));
  for (const plan::OwnFunction& function : functions) {
    PB_ASSIGN_OR_RETURN(run.functions.emplace_back(), AbsolutePath(function.file));
  }
  return absl::OkStatus();
}

/// No op waits for numbers that only a lock has.
Status CheckSettled(const plan::RunConfig& config) {
  const plan::FoundOp waits = config.Find(plan::AwaitsStatistic);
  if (!waits) return absl::OkStatus();
  return plan::WrongOp(waits.key,
                       "without lower, upper, mean and std it uses those of the foreground of the "
                       "training images: run `patchbay lock` to compute them");
}

/// A config with outputs is mapped, one without is streamed.
Status CheckIsForThis(const RunSource& source, const plan::RunConfig& config) {
  if (!source.streams || source.map == plan::IsMap(config)) return absl::OkStatus();
  return InvalidArgument("open run: key 'outputs': ", source.map
                                                          ? "`patchbay map` needs some"
                                                          : "this config is for `patchbay map`");
}

}  // namespace

StatusOr<RunFile> ReadRun(const RunSource& source) {
  RunFile run;
  PB_RETURN_IF_ERROR(ReadConfig(source, run));
  StatusOr<plan::LockedKeys> keys = plan::LockedKeysOf(run.config);
  if (!keys.ok()) return run.Locate(keys.status());
  run.lock_keys = *std::move(keys);
  if (!source.for_lock && !source.values) {
    PB_ASSIGN_OR_RETURN(run.lock, ReadLock(source.file, run.lock_keys));
  }
  PB_RETURN_IF_ERROR(FindImages(source, run));
  PB_RETURN_IF_ERROR(TakeParts(run));
  if (source.for_lock) PB_RETURN_IF_ERROR(TakePlaces(run));
  StatusOr<plan::RunConfig> config = plan::ForSplit(run.config, source.split, source.augment);
  if (!config.ok()) return run.Locate(config.status());
  run.config = *std::move(config);
  PB_RETURN_IF_ERROR(run.Locate(CheckIsForThis(source, run.config)));
  const Status ops = plan::CheckOps(*source.ops, run.config.preprocess, run.config.augment,
                                    run.config.patch, plan::PatchKindOf(run.config));
  if (!ops.ok()) return run.Locate(ops);
  PB_RETURN_IF_ERROR(run.Locate(plan::CheckBatchType(run.config)));
  if (std::string doubt = plan::DoubtfulMpp(run.config); !doubt.empty()) {
    run.notices.push_back(StrCat(run.path, ": ", doubt));
  }
  if (!source.for_lock) PB_RETURN_IF_ERROR(TakeColumns(run));
  if (!run.config.stores.empty()) {
    PB_ASSIGN_OR_RETURN(run.config.stores, AbsolutePath(run.config.stores));
  }
  if (run.lock) {
    PB_RETURN_IF_ERROR(ApplyStatistics(run.lock->statistics, run.config));
    // A lock of an earlier version: its fits go by no set.
    const auto normalize = plan::FindStainReferences(run.config);
    if (normalize && normalize->tissue.empty() && run.lock->keys.stain_set.empty()) {
      plan::SetTissueOfFits(run.config, plan::kNoTissueOfFits);
    }
  }
  if (!source.for_lock) PB_RETURN_IF_ERROR(run.Locate(CheckSettled(run.config)));
  PB_RETURN_IF_ERROR(TakeReferences(run));
  PB_RETURN_IF_ERROR(TakeFunctions(run));
  if (run.lock) PB_RETURN_IF_ERROR(CheckPicturesPinned(run.stain_references));
  return run;
}

}  // namespace patchbay::client
