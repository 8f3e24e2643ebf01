#include "runtime/format/zarr/verify.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/core/box.h"
#include "runtime/core/hash.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/codec/chunk_encoder.h"
#include "runtime/format/zarr/file_byte_store.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/format/zarr/opened_store.h"
#include "runtime/format/zarr/shard_index.h"
#include "runtime/format/zarr/shard_list.h"
#include "runtime/format/zarr/store_tree.h"
#include "runtime/format/zarr/tied_file.h"
#include "runtime/os/file.h"
#include "runtime/os/folders.h"
#include "runtime/os/work_meter.h"

namespace patchbay::zarr {
namespace {

/// The findings on one shard. Made by one thread.
struct ShardFindings {
  ShardPlace place;
  bool present = false;     ///< a file exists, or another entry with its name
  bool missing = false;     ///< listed, but does not exist
  bool unexpected = false;  ///< present, and listed as not stored
  Digest digest;            ///< digest of the file, where it could be read
  std::uint64_t size_bytes = 0;
  std::vector<Digest> chunks;
  std::vector<std::string> bad;
};

/// Checks one shard after another on one thread.
class ShardChecker {
 public:
  /// `store` outlives the checker.
  ShardChecker(const Folders& allowed, const OpenedStore& store)
      : allowed_(allowed),
        store_(store),
        hasher_(store.settings),
        files_(allowed, store.path, std::make_shared<FileCache>(1)) {}

  ShardFindings Check(const ShardPlace& place);

 private:
  /// False when there is nothing to read: a file that is missing, surplus or no file at all.
  bool CheckPresence(const std::string& name, ShardFindings& out) const;
  /// False when the file is too broken for its chunks to be looked at one by one.
  bool CheckFile(const StoredBytes& file, const std::string& name, ShardFindings& out) const;
  void CheckChunks(ShardFindings& out);
  StatusOr<Digest> CheckChunk(const ShardPlace& shard, const Point& at);
  /// Checks that a file that decodes well has the digest recorded when it was written.
  void CheckDigest(const std::string& name, ShardFindings& out) const;

  const Folders allowed_;
  const OpenedStore& store_;
  PixelHasher hasher_;
  FileByteStore files_;
  ChunkScratch scratch_;
  std::vector<std::byte> encoded_, pixels_;
};

/// "0/c/0/1/2: chunk (0,3,1): cause" from a status of the reader.
std::string FaultText(const OpenedStore& store, const Status& status) {
  Outcome outcome = OutcomeOf(status);
  std::string& path = outcome.subject.part;
  if (!path.starts_with(store.path + "/")) return TextOf(outcome);
  path.erase(0, store.path.size() + 1);
  outcome.doing.clear();
  return TextOf(outcome);
}

/// Nothing larger is read: no number in a file decides how long a check takes.
std::uint64_t MaxShardBytes(const ArrayMetadata& array) {
  return static_cast<std::uint64_t>(array.ChunksPerShard()) * MaxEncodedBytes(array) +
         IndexBytes(array) + kSealBytes;
}

/// Finds entries that share bytes: each chunk may decode, but no writer makes such a file.
std::optional<std::string> Overlap(const ShardIndex& index) {
  std::vector<IndexEntry> stored;
  for (const IndexEntry& entry : index) {
    if (!entry.Absent()) stored.push_back(entry);
  }
  std::sort(stored.begin(), stored.end(),
            [](const IndexEntry& a, const IndexEntry& b) { return a.offset < b.offset; });
  for (std::size_t i = 1; i < stored.size(); ++i) {
    if (stored[i].offset < stored[i - 1].offset + stored[i - 1].size_bytes) {
      return StrCat("index entries overlap at byte ", stored[i].offset);
    }
  }
  return std::nullopt;
}

ShardFindings ShardChecker::Check(const ShardPlace& place) {
  ShardFindings out;
  out.place = place;
  const std::string name = store_.FileOf(place);
  if (!CheckPresence(name, out)) return out;
  const auto file = files_.Open(name);
  if (!file.ok()) {
    out.bad.push_back(FaultText(store_, file.status()));
    return out;
  }
  if (*file == nullptr && out.present) {
    out.bad.push_back(StrCat(name, ": removed while the store was checked"));
    return out;
  }
  if (*file != nullptr && !CheckFile(**file, name, out)) return out;
  CheckChunks(out);
  CheckDigest(name, out);
  return out;
}

bool ShardChecker::CheckPresence(const std::string& name, ShardFindings& out) const {
  const auto kind = EntryKindOf(allowed_, StrCat(store_.path, "/", name));
  if (!kind.ok()) {
    out.bad.push_back(FaultText(store_, kind.status()));
    return false;
  }
  out.present = *kind != EntryKind::kNothing;
  if (out.present && *kind != EntryKind::kFile) {
    out.bad.push_back(StrCat(name, ": ", NameOf(*kind), ", not a file"));
    return false;
  }
  const auto listed = store_.Listed(out.place);
  if (!listed) return true;
  out.missing = listed->has_value() && !out.present;
  out.unexpected = !listed->has_value() && out.present;
  if (out.missing) out.bad.push_back(StrCat(name, ": missing"));
  if (out.unexpected) {
    out.bad.push_back(StrCat(name, ": surplus: the store was written without this file"));
  }
  return !out.missing && !out.unexpected;
}

bool ShardChecker::CheckFile(const StoredBytes& file, const std::string& name,
                             ShardFindings& out) const {
  out.size_bytes = file.size_bytes();
  const ArrayMetadata& array = store_.At(out.place).array.metadata();
  if (const std::uint64_t most = MaxShardBytes(array); file.size_bytes() > most) {
    out.bad.push_back(StrCat(name, ": ", file.size_bytes(),
                             " bytes, and a shard of this array has ", most, " at most"));
    return false;
  }
  const auto index = ReadIndex(array, file, {.name = StrCat(store_.path, "/", name)});
  if (!index.ok()) {
    out.bad.push_back(FaultText(store_, index.status()));
    return false;
  }
  const auto digest = DigestOf(file, StrCat(store_.path, "/", name));
  if (!digest.ok()) {
    out.bad.push_back(FaultText(store_, digest.status()));
    return false;
  }
  out.digest = *digest;
  if (const auto overlap = Overlap(*index)) out.bad.push_back(StrCat(name, ": ", *overlap));
  return true;
}

void ShardChecker::CheckChunks(ShardFindings& out) {
  const OpenedLevel& level = store_.At(out.place);
  const Extent per_shard = store_.settings.ChunksPerShard();
  const Point& shard = out.place.at;
  const Box chunks = Intersect(
      BoxAt({shard.z * per_shard.z, shard.y * per_shard.y, shard.x * per_shard.x}, per_shard),
      WholeOf(ChunkGridOf(store_.settings, level.size)));
  for (std::int64_t i = 0; i < chunks.Pixels(); ++i) {
    const Point cell = CellAt(chunks.Shape(), i);
    const auto digest =
        CheckChunk(out.place, {chunks.z + cell.z, chunks.y + cell.y, chunks.x + cell.x});
    if (!digest.ok()) out.bad.push_back(FaultText(store_, digest.status()));
    out.chunks.push_back(digest.ok() ? *digest : Digest{});
  }
}

StatusOr<Digest> ShardChecker::CheckChunk(const ShardPlace& shard, const Point& at) {
  const ImageStoreSettings& s = store_.settings;
  const OpenedLevel& level = store_.At(shard);
  const Box box = Intersect(BoxAt({at.z * s.chunk.z, at.y * s.chunk.y, at.x * s.chunk.x}, s.chunk),
                            WholeOf(level.size));
  const auto channels = static_cast<std::int64_t>(s.ChunkChannels());
  pixels_.resize(static_cast<std::size_t>(box.Pixels() * s.PixelBytes()));
  const TensorView image =
      ContiguousView<4>(pixels_.data(), s.dtype, {box.depth, box.height, box.width, channels});
  const Coordinates chunk = s.axes == StoreAxes::kCzyx
                                ? Coordinates{shard.channel, at.z, at.y, at.x}
                                : Coordinates{at.z, at.y, at.x};
  PB_ASSIGN_OR_RETURN(const FetchedChunk fetched, level.array.FetchChunk(chunk, encoded_, 0));
  PB_RETURN_IF_ERROR(level.array.DecodeChunk(fetched, std::span(encoded_).first(fetched.size_bytes),
                                             RegionOf(s, box, shard.channel), AlongAxes(s, image),
                                             scratch_));
  if (!store_.digests_tiles) return hasher_.Hash(image, fetched.absent);
  const std::size_t tile_bytes = fetched.absent ? 0 : fetched.size_bytes - kChecksumBytes;
  return Sha256Of(std::span<const std::byte>(encoded_).first(tile_bytes));
}

void ShardChecker::CheckDigest(const std::string& name, ShardFindings& out) const {
  const auto listed = store_.Listed(out.place);
  if (!out.bad.empty() || !listed || !listed->has_value()) return;
  const std::uint32_t recorded = (*listed)->first_bits, found = FirstBitsOf(out.digest);
  if (found == recorded) return;
  out.bad.push_back(StrCat(name, ": another file than was written: its SHA-256 begins with ",
                           HexOf(found), ", ", HexOf(recorded), " recorded"));
}

constexpr int kMaxThreads = 256;
constexpr std::size_t kMaxFurtherBytes = std::size_t{64} << 20;

std::vector<ShardPlace> PlacesOf(const OpenedStore& store) {
  std::vector<ShardPlace> places;
  for (std::size_t l = 0; l < store.levels.size(); ++l) {
    const auto own = PlacesOf(store.settings, static_cast<int>(l), store.levels[l].size);
    places.insert(places.end(), own.begin(), own.end());
  }
  return places;
}

StatusOr<std::vector<ShardFindings>> CheckAll(const Folders& allowed, const OpenedStore& store,
                                              const std::vector<ShardPlace>& places, int threads,
                                              const VerifyProgress& progress) {
  std::vector<ShardFindings> findings(places.size());
  std::atomic<std::size_t> next{0};
  std::mutex mu;
  std::int64_t done = 0;  // guarded by mu
  Status go_on;           // guarded by mu
  const auto work = [&] {
    ShardChecker checker(allowed, store);
    for (std::size_t i = next++; i < places.size(); i = next++) {
      findings[i] = checker.Check(places[i]);
      const std::lock_guard lock(mu);
      ++done;
      if (progress && go_on.ok()) go_on = progress(done, static_cast<std::int64_t>(places.size()));
      if (!go_on.ok()) return;
    }
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(Metered(work));
  work();
  for (std::thread& thread : others) thread.join();
  PB_RETURN_IF_ERROR(go_on);
  return findings;
}

/// Computes both roots from the findings of the shards.
StoreRoots Combine(const OpenedStore& store, const std::vector<ShardFindings>& findings) {
  StoreRoots roots;
  std::vector<Digest> bytes_nodes, pixel_nodes;
  std::size_t next = 0;
  for (std::size_t l = 0; l < store.levels.size(); ++l) {
    std::vector<ShardLeaf> leaves;
    LevelFiles files;
    std::vector<Digest> chunks(ChunksOfLevel(store.settings, store.levels[l].size));
    for (; next < findings.size() && findings[next].place.level == static_cast<int>(l); ++next) {
      const ShardFindings& f = findings[next];
      files.shards.emplace_back();
      if (f.size_bytes > 0) {
        leaves.push_back({f.place, f.digest});
        files.shards.back() = {FirstBitsOf(f.digest), SealOf(f.chunks)};
      }
      // A shard that could not be read has none; then the roots are not looked at.
      PlaceChunkDigests(store.settings, store.levels[l].size, f.place, f.chunks, chunks);
    }
    bytes_nodes.push_back(files.digest = LevelBytesNode(leaves));
    roots.levels.push_back(std::move(files));
    pixel_nodes.push_back(LevelPixelsNode(store.settings, store.levels[l].size, chunks));
  }
  roots.bytes = BytesRoot(store.documents, bytes_nodes);
  roots.pixels = PixelsRoot(pixel_nodes);
  return roots;
}

/// Adds faults and the findings of the levels to a report that has its roots.
class Reporting {
 public:
  Reporting(const OpenedStore& store, const VerifyOptions& options, VerifyReport& report)
      : store_(store), max_listed_(options.max_listed), report_(report) {
    for (const OpenedLevel& level : store.levels) {
      report.levels.emplace_back().path = level.path;
      if (!store.listed.empty()) report.levels.back().listed = 0;
    }
  }

  void Fault(std::string fault) {
    ++report_.faults;
    Keep(std::move(fault), report_.bad);
  }

  void Shard(const ShardFindings& f) {
    VerifyReport::Level& level = report_.levels[static_cast<std::size_t>(f.place.level)];
    report_.shards += f.size_bytes > 0 ? 1 : 0;
    report_.chunks += static_cast<std::int64_t>(f.chunks.size());
    report_.stored_bytes += f.size_bytes;
    level.found += f.present ? 1 : 0;
    const auto listed = store_.Listed(f.place);
    if (listed && listed->has_value()) ++*level.listed;
    if (f.missing && ++level.missing_count > 0) Keep(store_.FileOf(f.place), level.missing);
    if (f.unexpected && ++level.surplus_count > 0) Keep(store_.FileOf(f.place), level.surplus);
    for (const std::string& fault : f.bad) Fault(fault);
  }

  void Strange(const StrangeEntries& strange) {
    for (const std::string& fault : strange.faults) Keep(fault, report_.bad);
    report_.faults += strange.count;
  }

  /// Every file exists and decodes; a digest may still differ.
  void CompareRoots() {
    if (report_.faults > 0 || !report_.recorded) return;
    const StoreRoots &recorded = *report_.recorded, &computed = report_.computed;
    if (recorded.bytes != computed.bytes && store_.listed.empty()) {
      Fault(StrCat("zarr.json: digest ", recorded.bytes.Hex(), " recorded, ", computed.bytes.Hex(),
                   " computed: metadata was changed, or a shard's file is missing or another"));
    }
    for (std::size_t l = 0; l < store_.listed.size(); ++l) {
      if (store_.listed[l].digest == computed.levels[l].digest) continue;
      Fault(StrCat(store_.levels[l].path, ": a shard's file is another than was written (digest ",
                   store_.listed[l].digest.Hex(), " of the level recorded, ",
                   computed.levels[l].digest.Hex(), " computed)"));
    }
    if (report_.faults == 0 && recorded.pixels != computed.pixels) {
      Fault(StrCat("zarr.json: pixel_digest ", recorded.pixels.Hex(), " recorded, ",
                   computed.pixels.Hex(), " computed"));
    }
  }

 private:
  void Keep(std::string text, std::vector<std::string>& list) const {
    if (list.size() < max_listed_) list.push_back(std::move(text));
  }

  const OpenedStore& store_;
  const std::size_t max_listed_;
  VerifyReport& report_;
};

/// Files of a label image in addition to its levels, by name, with their SHA-256.
std::map<std::string, std::string> FurtherFiles(const OpenedStore& store) {
  const Json* at = &store.documents.at("zarr.json");
  for (const char* key : {"attributes", "patchbay", "labels", "files"}) {
    if (!at->is_object() || !at->contains(key)) return {};
    at = &(*at)[key];
  }
  std::map<std::string, std::string> files;
  if (!at->is_object()) return files;
  for (const auto& [name, digest] : at->items()) {
    const bool is_plain = !name.empty() && name[0] != '.' && name.find('/') == std::string::npos;
    if (is_plain && digest.is_string()) files[name] = digest.get<std::string>();
  }
  return files;
}

Status CheckFile(const Folders& allowed, const std::string& path, const std::string& digest) {
  PB_ASSIGN_OR_RETURN(const EntryKind kind, EntryKindOf(allowed, path));
  if (kind != EntryKind::kFile) {
    return DataLoss(kind == EntryKind::kNothing ? "missing" : NameOf(kind).data());
  }
  PB_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(allowed, path, kMaxFurtherBytes));
  if (Sha256Of(bytes).Hex() == digest) return absl::OkStatus();
  return DataLoss("another file than was written");
}

/// A revision's own findings, under its name; nothing where it cannot be looked at.
void AddLabels(const std::string& name, const StatusOr<VerifyReport>& own, std::size_t max_listed,
               VerifyReport& report) {
  const auto fault = [&](const std::string& text) {
    ++report.faults;
    if (report.bad.size() < max_listed) report.bad.push_back(text);
  };
  const std::string folder = StrCat(kLabelsFolder, "/", name);
  bool is_clean = own.ok() && own->Clean();
  if (!own.ok()) {
    fault(StrCat(folder, ": ", MessageOf(own.status())));
  } else {
    for (const std::string& bad : own->bad) fault(StrCat(folder, "/", bad));
    report.faults += own->faults - std::min<std::uint64_t>(own->faults, own->bad.size());
    report.shards += own->shards;
    report.chunks += own->chunks;
    report.stored_bytes += own->stored_bytes;
    const std::string set = name.substr(0, name.rfind('.'));
    if (is_clean && name != RevisionName(set, own->computed.bytes)) {
      is_clean = false;
      fault(StrCat(folder, ": its digest is ", own->computed.bytes.Hex(), ": not this revision"));
    }
  }
  report.labels.push_back({name, is_clean});
}

/// The label sets below the store, each with its own digests.
Status VerifyLabels(const Folders& allowed, const std::string& store, const VerifyOptions& options,
                    const VerifyProgress& progress, VerifyReport& report) {
  PB_ASSIGN_OR_RETURN(const EntryKind kind,
                      EntryKindOf(allowed, StrCat(store, "/", kLabelsFolder)));
  if (kind != EntryKind::kFolder) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const LabelFolders folders, ListLabelFolders(allowed, store));
  const auto fault = [&](const std::string& text) {
    ++report.faults;
    if (report.bad.size() < options.max_listed) report.bad.push_back(text);
  };
  for (const std::string& name : folders.strange) {
    fault(StrCat(kLabelsFolder, "/", name, ": not a label set"));
  }
  for (const std::string& name : folders.revisions) {
    const auto own =
        VerifyStore(allowed, StrCat(store, "/", kLabelsFolder, "/", name), options, progress);
    if (absl::IsCancelled(own.status())) return own.status();
    AddLabels(name, own, options.max_listed, report);
  }
  const StatusOr<std::vector<LabelSet>> sets = ReadLabelSets(allowed, store);
  if (!sets.ok()) {
    fault(StrCat(kLabelsFolder, "/zarr.json: ", MessageOf(sets.status())));
    return absl::OkStatus();
  }
  for (const LabelSet& set : *sets) {
    const bool is_there = std::find(folders.revisions.begin(), folders.revisions.end(),
                                    set.revision) != folders.revisions.end();
    if (!is_there) fault(StrCat(kLabelsFolder, "/", set.revision, ": missing"));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<VerifyReport> VerifyStore(const Folders& allowed, const std::string& store,
                                   const VerifyOptions& options, const VerifyProgress& progress) {
  PB_ASSIGN_OR_RETURN(const OpenedStore opened, OpenStore(allowed, store));
  const std::vector<ShardPlace> places = PlacesOf(opened);
  PB_ASSIGN_OR_RETURN(
      const std::vector<ShardFindings> findings,
      CheckAll(allowed, opened, places, std::clamp(options.threads, 1, kMaxThreads), progress));
  VerifyReport report;
  report.recorded = opened.recorded;
  report.computed = Combine(opened, findings);
  Reporting reporting(opened, options, report);
  for (const std::string& fault : opened.faults) reporting.Fault(fault);
  for (const ShardFindings& f : findings) reporting.Shard(f);
  std::set<std::string> documents, shards;
  for (const auto& [path, document] : opened.documents) documents.insert(path);
  for (const ShardPlace& place : places) shards.insert(opened.FileOf(place));
  for (const auto& [name, digest] : FurtherFiles(opened)) {
    documents.insert(name);
    const Status same = CheckFile(allowed, StrCat(opened.path, "/", name), digest);
    if (!same.ok()) reporting.Fault(StrCat(name, ": ", MessageOf(same)));
  }
  PB_ASSIGN_OR_RETURN(const EntryKind colours,
                      EntryKindOf(allowed, StrCat(opened.path, "/", kStainColoursFile)));
  if (colours != EntryKind::kNothing && opened.recorded) {
    documents.insert(kStainColoursFile);
    const Status same = colours == EntryKind::kFile
                            ? ReadTied(allowed, StrCat(opened.path, "/", kStainColoursFile),
                                       opened.recorded->pixels)
                                  .status()
                            : DataLoss(NameOf(colours));
    if (!same.ok()) reporting.Fault(StrCat(kStainColoursFile, ": ", MessageOf(same)));
  }
  reporting.Strange(FindStrangeEntries(allowed, opened.path, {documents, shards, kLabelsFolder},
                                       options.max_listed));
  reporting.CompareRoots();
  PB_RETURN_IF_ERROR(VerifyLabels(allowed, opened.path, options, progress, report));
  return report;
}

Json ToJson(const VerifyReport& report) {
  Json levels = Json::array();
  for (const VerifyReport::Level& level : report.levels) {
    levels.push_back({{"path", level.path},
                      {"listed", level.listed ? Json(*level.listed) : Json(nullptr)},
                      {"found", level.found},
                      {"missing", level.missing},
                      {"missing_count", level.missing_count},
                      {"surplus", level.surplus},
                      {"surplus_count", level.surplus_count}});
  }
  Json labels = Json::array();
  for (const VerifyReport::Labels& set : report.labels) {
    labels.push_back({{"name", set.name}, {"clean", set.is_clean}});
  }
  Json json = {{"clean", report.Clean()},     {"faults", report.faults},
               {"bad", report.bad},           {"shards", report.shards},
               {"chunks", report.chunks},     {"stored_bytes", report.stored_bytes},
               {"digest", nullptr},           {"pixel_digest", nullptr},
               {"recorded_digest", nullptr},  {"recorded_pixel_digest", nullptr},
               {"labels", std::move(labels)}, {"levels", std::move(levels)}};
  if (report.faults == 0) {
    json["digest"] = report.computed.bytes.Hex();
    json["pixel_digest"] = report.computed.pixels.Hex();
  }
  if (report.recorded) {
    json["recorded_digest"] = report.recorded->bytes.Hex();
    json["recorded_pixel_digest"] = report.recorded->pixels.Hex();
  }
  return json;
}

}  // namespace patchbay::zarr
