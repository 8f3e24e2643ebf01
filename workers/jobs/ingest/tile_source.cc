#include "workers/jobs/ingest/tile_source.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/csv/csv.h"
#include "runtime/format/json/described.h"
#include "runtime/format/zarr/opened_store.h"
#include "runtime/os/file.h"
#include "workers/jobs/staged/own_table.h"
#include "workers/jobs/task/folder_tree.h"
#include "workers/jobs/task/image_digest.h"
#include "workers/sources/dicom_slide.h"
#include "workers/sources/digest_cache.h"
#include "workers/sources/tile_mosaic.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kDatasetHeader = "slide_id,path\r\n";
constexpr std::string_view kPositionsHeader = "slide_id,x,y,label,class,tile\r\n";
constexpr std::size_t kIdCell = 0, kLabelCell = 3, kClassCell = 4, kPositionCells = 6;
constexpr std::size_t kMaxListBytes = 512u << 20;

/// OUT/.patchbay-ingest/<job key>/tiles/<i>.json.
std::string TilesFile(const IngestTask& task) {
  return task.folders.InJob(StrCat("tiles/", task.slide, ".json"));
}

std::string NameOfFolder(const std::string& folder) {
  return std::filesystem::path(folder).filename().string();
}

/// The numbers of classes.
class ClassNumbers {
 public:
  void Keep(const std::string& name, std::int64_t number) { by_name_.emplace(name, number); }
  /// Numbers those that have none.
  void Add(const std::set<std::string>& names) {
    std::int64_t next = 0;
    for (const auto& [name, number] : by_name_) next = std::max(next, number + 1);
    for (const std::string& name : names) next += by_name_.emplace(name, next).second ? 1 : 0;
  }
  std::int64_t Of(const std::string& name) const { return by_name_.at(name); }
  std::size_t size() const { return by_name_.size(); }

 private:
  std::map<std::string, std::int64_t> by_name_;
};

/// The rows of other datasets as they are, and the numbers of all classes in the table.
StatusOr<std::string> KeptRows(const std::string& text, const std::set<std::string>& replaced,
                               ClassNumbers& numbers) {
  std::string kept;
  const auto rows = ParseCsv(text);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    std::vector<std::string> cells = rows[i];
    if (cells.size() < kPositionCells) continue;
    const std::string& label = cells[kLabelCell];
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), number);
    const bool is_whole = error == std::errc() && end == label.data() + label.size();
    if (!is_whole || number < 0 || static_cast<std::size_t>(number) >= kMaxTileClasses) {
      return InvalidArgument("row ", i + 1, ": column 'label': '", label, "' is not 0 to ",
                             kMaxTileClasses - 1, ": move the table away, or give another --out");
    }
    numbers.Keep(cells[kClassCell], number);
    if (replaced.contains(cells[kIdCell])) continue;
    for (std::string& cell : cells) cell = CsvField(cell);
    kept += CsvRow(cells);
  }
  return kept;
}

std::string RowsOf(const StoredTiles& tiles, const ClassNumbers& numbers) {
  std::string rows;
  std::int64_t y = 0;
  for (const std::string& file : tiles.files) {
    const std::string name(ClassOfTile(file));
    rows += CsvRow({CsvField(tiles.slide_id), "0", std::to_string(y),
                    std::to_string(numbers.Of(name)), CsvField(name), CsvField(file)});
    y += tiles.height;
  }
  return rows;
}

Status WritePositions(const StagedFolders& folders, const std::vector<StoredTiles>& stored) {
  const OutputLock lock(folders);
  const std::string path = folders.InOut(kTilesPositions);
  std::set<std::string> ids, classes;
  for (const StoredTiles& tiles : stored) {
    ids.insert(tiles.slide_id);
    for (const std::string& file : tiles.files) classes.emplace(ClassOfTile(file));
  }
  const auto before = ReadFile(folders.allowed, path, kMaxListBytes);
  if (!before.ok() && !absl::IsNotFound(before.status())) return before.status();
  ClassNumbers numbers;
  const auto kept = KeptRows(before.ok() ? *before : "", ids, numbers);
  if (!kept.ok()) return About(kept.status(), "ingest", path);
  numbers.Add(classes);
  if (numbers.size() > kMaxTileClasses) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "ingest", path,
                      StrCat(numbers.size(), " classes, more than ", kMaxTileClasses));
  }
  std::string text = StrCat(kPositionsHeader, *kept);
  for (const StoredTiles& tiles : stored) text += RowsOf(tiles, numbers);
  return WriteFileDurably(folders.allowed, path, AsBytes(text), 0600);
}

}  // namespace

Status CheckTileTables(const StagedFolders& folders, const FoundSources& sources) {
  PB_RETURN_IF_ERROR(CheckOwnTable(folders, kTilesDataset, kDatasetHeader));
  PB_RETURN_IF_ERROR(CheckOwnTable(folders, kTilesPositions, kPositionsHeader));
  std::set<std::string> names;
  for (const auto& [index, tiles] : sources.tiles) {
    const std::string& folder = sources.names[index];
    if (names.insert(NameOfFolder(folder)).second) continue;
    return ErrorAbout(absl::StatusCode::kInvalidArgument, folders.job, folder,
                      "two datasets of tiles have this folder's name, which their rows would bear: "
                      "rename one, or give it another --out");
  }
  return absl::OkStatus();
}

Status SaveTiles(const IngestTask& task, const TileList& tiles) {
  return ReplaceFile(task.folders.allowed, TilesFile(task), AsBytes(DumpJson(Json(tiles.files))),
                     0600);
}

StatusOr<std::vector<std::string>> SavedTiles(const IngestTask& task) {
  constexpr std::string_view kWhat = "list of tiles";
  const auto text = ReadFile(task.folders.allowed, TilesFile(task), kMaxListBytes);
  if (absl::IsNotFound(text.status())) return std::vector<std::string>();
  PB_RETURN_IF_ERROR(text.status());
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(*text, kWhat, kMaxListBytes));
  return FromJson<std::vector<std::string>>(json, kWhat);
}

StatusOr<std::unique_ptr<ImageSource>> OpenSourceImage(TaskContext& context, const IngestTask& task,
                                                       const std::string& path) {
  PB_ASSIGN_OR_RETURN(std::vector<std::string> tiles, SavedTiles(task));
  if (tiles.empty()) return OpenChosenSlide(context.allowed, path, task.settings.choice);
  auto mosaic = OpenTileMosaic(context.allowed, path, std::move(tiles));
  if (!mosaic.ok()) return NamingTile(task, mosaic.status());
  return mosaic;
}

StatusOr<Digest> SourceDigest(TaskContext& context, const IngestTask& task,
                              const std::string& path) {
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> tiles, SavedTiles(task));
  if (tiles.empty()) return ImageDigest(context, path);
  // A cache of digests would take longer: each of its records is looked for among all, and synced.
  const DigestCache none(context.allowed, "");
  Sha256 hash;
  for (const std::string& tile : tiles) {
    PB_ASSIGN_OR_RETURN(const Digest digest,
                        none.DigestOf(StrCat(path, "/", tile), ProgressOf(context)));
    PB_RETURN_IF_ERROR(StepOf(context));
    hash.Update(StrCat(tile.size(), ":", tile, ":", digest.Hex(), "\n"));
  }
  return hash.Finish();
}

std::uint64_t SourceBytes(TaskContext& context, const IngestTask& task, const std::string& path) {
  const auto tiles = SavedTiles(task);
  if (!tiles.ok() || tiles->empty()) return BytesOfSlide(context, path);
  std::vector<std::string> files;
  for (const std::string& tile : *tiles) files.push_back(StrCat(path, "/", tile));
  return BytesOfFiles(context, files);
}

Status NamingTile(const IngestTask& task, const Status& why) {
  const Outcome outcome = OutcomeOf(why);
  const std::string& path = outcome.subject.part;
  const bool is_fault = absl::IsInvalidArgument(why) || absl::IsUnimplemented(why) ||
                        absl::IsDataLoss(why) || absl::IsNotFound(why);
  if (!is_fault || !path.starts_with(task.Source() + "/")) return why;
  const auto tiles = SavedTiles(task);
  if (!tiles.ok() || tiles->empty()) return why;
  PB_RETURN_IF_ERROR(MergeIntoTable(task.folders, "verdicts.csv", kVerdictsHeader, 1,
                                    {{path, "refused", outcome.cause, "0", ""}}));
  return WithAdvice(why, "verdicts.csv in the output folder names the tile");
}

StatusOr<StoredTiles> StoredTilesOf(const IngestTask& task, const std::string& store,
                                    std::vector<std::string> files) {
  PB_ASSIGN_OR_RETURN(const zarr::OpenedStore opened,
                      zarr::OpenStore(task.folders.allowed, task.folders.InOut(store)));
  return StoredTiles{NameOfFolder(task.Source()), store, std::move(files), opened.settings.chunk.y};
}

Status WriteTileTables(const StagedFolders& folders, const std::vector<StoredTiles>& stored) {
  PB_RETURN_IF_ERROR(WritePositions(folders, stored));
  std::vector<std::vector<std::string>> rows;
  for (const StoredTiles& tiles : stored) rows.push_back({tiles.slide_id, tiles.store});
  return MergeIntoTable(folders, kTilesDataset, kDatasetHeader, 1, rows);
}

}  // namespace patchbay::workers
