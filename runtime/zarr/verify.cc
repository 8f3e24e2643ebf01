#include "runtime/zarr/verify.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include <fcntl.h>

#include "runtime/base/file.h"
#include "runtime/zarr/array.h"
#include "runtime/zarr/chunk_encoder.h"
#include "runtime/zarr/ngff.h"
#include "runtime/zarr/shard_index.h"
#include "runtime/zarr/store_metadata.h"

namespace patchbay::zarr {
namespace {

constexpr std::size_t kHashBlockBytes = std::size_t{1} << 20;
constexpr int kMaxThreads = 256;

struct Level {
  std::string path;  ///< below the store
  Array array;
  LevelSize size;
};

struct OpenedStore {
  std::string path;
  MetadataDocuments documents;
  ImageStoreSettings settings;  ///< dtype, channels, chunk_px and shard_px only
  std::vector<Level> levels;
  std::optional<StoreRoots> recorded;
};

/// What one shard came to. Made by one thread.
struct ShardFindings {
  ShardPlace place;
  Digest digest;
  std::uint64_t size_bytes = 0;
  std::vector<Digest> chunks;
  std::vector<std::string> bad;
};

Status NotOurs(const std::string& store, std::string_view cause) {
  return absl::UnimplementedError(
      StrCat("verify store: ", store, ": not a store of Patchbay's image writer: ", cause));
}

StatusOr<Json> ReadDocument(const std::string& path) {
  PB_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxMetadataBytes));
  return ParseJson(text, path);
}

/// The writer's layout, or a refusal that says what differs.
StatusOr<ImageStoreSettings> SettingsOf(const ArrayMetadata& array, const std::string& store) {
  const bool image = array.zarr_format == 3 && array.rank() == 3 && array.sharded &&
                     array.chain.order == std::vector<int>{1, 2, 0};
  if (!image)
    return NotOurs(store, "an array that is not sharded (c, y, x) with interleaved chunks");
  ImageStoreSettings s;
  s.dtype = array.dtype;
  s.channels = static_cast<int>(array.shape[0]);
  s.chunk_px = array.chunk_shape[1];
  s.shard_px = array.shard_shape[1];
  const bool square = array.chunk_shape[2] == s.chunk_px && array.shard_shape[2] == s.shard_px &&
                      array.chunk_shape[0] == array.shape[0] &&
                      array.shard_shape[0] == array.shape[0];
  if (!square) return NotOurs(store, "chunks that are not square or not of all channels");
  PB_RETURN_IF_ERROR(Validate(s));
  return s;
}

std::optional<StoreRoots> RecordedRoots(const Json& root) {
  const Json* patchbay = &root;
  for (const char* key : {"attributes", "patchbay"}) {
    if (!patchbay->is_object() || !patchbay->contains(key)) return std::nullopt;
    patchbay = &(*patchbay)[key];
  }
  const auto digest = [&](const char* key) -> std::optional<Digest> {
    if (!patchbay->is_object() || !patchbay->contains(key)) return std::nullopt;
    const Json& value = (*patchbay)[key];
    const auto parsed = value.is_string() ? Digest::FromHex(value.get<std::string>())
                                          : StatusOr<Digest>(absl::NotFoundError(""));
    return parsed.ok() ? std::optional(*parsed) : std::nullopt;
  };
  const auto bytes = digest("digest"), pixels = digest("pixel_digest");
  if (!bytes || !pixels) return std::nullopt;
  return StoreRoots{*bytes, *pixels};
}

StatusOr<OpenedStore> OpenStore(const std::string& path) {
  OpenedStore out;
  out.path = path;
  PB_ASSIGN_OR_RETURN(const Multiscales multiscales, ReadMultiscales(path));
  PB_ASSIGN_OR_RETURN(out.documents["zarr.json"], ReadDocument(path + "/zarr.json"));
  out.recorded = RecordedRoots(out.documents["zarr.json"]);
  ImageStoreSpec spec;
  for (const NgffLevel& level : multiscales.levels) {
    const std::string folder = path + "/" + level.path;
    const std::string document = level.path + "/zarr.json";
    PB_ASSIGN_OR_RETURN(out.documents[document], ReadDocument(path + "/" + document));
    PB_ASSIGN_OR_RETURN(Array array, Array::Open(folder));
    PB_ASSIGN_OR_RETURN(const ImageStoreSettings settings, SettingsOf(array.metadata(), path));
    const LevelSize size{array.metadata().shape[1], array.metadata().shape[2]};
    const bool same =
        settings.dtype == out.settings.dtype && settings.channels == out.settings.channels &&
        settings.chunk_px == out.settings.chunk_px && settings.shard_px == out.settings.shard_px;
    if (!out.levels.empty() && !same) return NotOurs(path, "levels of different layouts");
    out.settings = settings;
    spec.levels.push_back(size);
    out.levels.push_back({level.path, std::move(array), size});
  }
  spec.settings = out.settings;
  PB_RETURN_IF_ERROR(BuildMetadata(spec).status());  // the size limits of the writer hold here too
  return out;
}

/// "0/c/0/1/2 chunk (0,3,1): cause" from a status of the reader.
std::string FaultText(const OpenedStore& store, const Status& status) {
  std::string text(MessageOf(status));
  if (const auto at = text.find(store.path + "/"); at != std::string::npos) {
    text.erase(0, at + store.path.size() + 1);
  }
  return text;
}

StatusOr<Digest> HashFile(const CachedFile& file, const std::string& name) {
  Sha256 hash;
  std::vector<std::byte> block(kHashBlockBytes);
  for (std::uint64_t at = 0; at < file.size_bytes; at += block.size()) {
    const auto part = std::span(block).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), file.size_bytes - at)));
    PB_RETURN_IF_ERROR(ReadAt(file.fd.get(), at, part, name));
    hash.Update(part);
  }
  return hash.Finish();
}

/// Entries that share bytes: each chunk may decode, yet the file is not what a writer made.
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

/// Checks one shard after another on one thread.
class ShardChecker {
 public:
  explicit ShardChecker(const OpenedStore& store) : store_(store), hasher_(store.settings) {}

  ShardFindings Check(const ShardPlace& place) {
    ShardFindings out;
    out.place = place;
    const Level& level = store_.levels[static_cast<std::size_t>(place.level)];
    const std::string name = StrCat(level.path, "/c/0/", place.row, "/", place.column);
    const auto file = files_.Open(store_.path + "/" + name);
    if (!file.ok()) out.bad.push_back(FaultText(store_, file.status()));
    if (file.ok() && *file != nullptr && !CheckFile(level, **file, name, out)) return out;
    if (file.ok()) CheckChunks(level, out);
    return out;
  }

 private:
  /// False when the file is too broken for its chunks to be looked at one by one.
  bool CheckFile(const Level& level, const CachedFile& file, const std::string& name,
                 ShardFindings& out) {
    out.size_bytes = file.size_bytes;
    const auto digest = HashFile(file, store_.path + "/" + name);
    if (!digest.ok()) {
      out.bad.push_back(FaultText(store_, digest.status()));
      return false;
    }
    out.digest = *digest;
    const auto index = ReadIndex(level.array.metadata(), file, store_.path + "/" + name);
    if (!index.ok()) {
      out.bad.push_back(FaultText(store_, index.status()));
      return false;
    }
    if (const auto overlap = Overlap(*index)) out.bad.push_back(StrCat(name, ": ", *overlap));
    return true;
  }

  void CheckChunks(const Level& level, ShardFindings& out) {
    const ImageStoreSettings& s = store_.settings;
    const LevelSize grid = ChunkGridOf(s, level.size);
    const std::int64_t per_side = s.shard_px / s.chunk_px;
    const std::int64_t top = out.place.row * per_side, left = out.place.column * per_side;
    for (std::int64_t r = top; r < std::min(top + per_side, grid.height); ++r) {
      for (std::int64_t c = left; c < std::min(left + per_side, grid.width); ++c) {
        const auto digest = CheckChunk(level, r, c);
        if (!digest.ok()) out.bad.push_back(FaultText(store_, digest.status()));
        out.chunks.push_back(digest.ok() ? *digest : Digest{});
      }
    }
  }

  StatusOr<Digest> CheckChunk(const Level& level, std::int64_t row, std::int64_t column) {
    const ImageStoreSettings& s = store_.settings;
    const std::int64_t height = std::min(s.chunk_px, level.size.height - row * s.chunk_px);
    const std::int64_t width = std::min(s.chunk_px, level.size.width - column * s.chunk_px);
    const auto channels = static_cast<std::int64_t>(s.channels);
    pixels_.resize(static_cast<std::size_t>(height * width * channels) * SizeOf(s.dtype));
    const TensorView image = ContiguousView<3>(pixels_.data(), s.dtype, {height, width, channels});
    TensorView planes = image;
    planes.shape = {channels, height, width};
    planes.stride_bytes = {image.stride_bytes[2], image.stride_bytes[0], image.stride_bytes[1]};
    const Coordinates chunk{0, row, column};
    PB_ASSIGN_OR_RETURN(const FetchedChunk fetched, level.array.FetchChunk(chunk, encoded_, 0));
    const Region region{{0, row * s.chunk_px, column * s.chunk_px}, {channels, height, width}};
    PB_RETURN_IF_ERROR(level.array.DecodeChunk(
        fetched, std::span(encoded_).first(fetched.size_bytes), region, planes, scratch_));
    return hasher_.Hash(image, fetched.absent);
  }

  const OpenedStore& store_;
  PixelHasher hasher_;
  FileCache files_{1};
  ChunkScratch scratch_;
  std::vector<std::byte> encoded_, pixels_;
};

/// Every file of the store must be one the metadata speaks of.
std::vector<std::string> UnexpectedFiles(const OpenedStore& store,
                                         const std::vector<ShardPlace>& places) {
  std::set<std::string> expected;
  for (const auto& [path, document] : store.documents) expected.insert(path);
  for (const ShardPlace& place : places) {
    const Level& level = store.levels[static_cast<std::size_t>(place.level)];
    expected.insert(StrCat(level.path, "/c/0/", place.row, "/", place.column));
  }
  std::vector<std::string> out;
  std::error_code error;
  namespace fs = std::filesystem;
  for (auto it = fs::recursive_directory_iterator(store.path, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (it->is_directory(error)) continue;
    const std::string name = it->path().lexically_relative(store.path).string();
    if (!expected.contains(name)) out.push_back(StrCat(name, ": not a file of this store"));
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<ShardFindings> CheckAll(const OpenedStore& store, const std::vector<ShardPlace>& places,
                                    int threads, const VerifyProgress& progress) {
  std::vector<ShardFindings> findings(places.size());
  std::atomic<std::size_t> next{0};
  std::mutex mu;
  std::int64_t done = 0;  // guarded by mu
  const auto work = [&] {
    ShardChecker checker(store);
    for (std::size_t i = next++; i < places.size(); i = next++) {
      findings[i] = checker.Check(places[i]);
      const std::lock_guard lock(mu);
      ++done;
      if (progress) progress(done, static_cast<std::int64_t>(places.size()));
    }
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  return findings;
}

/// Both roots from what the shards came to.
StoreRoots Combine(const OpenedStore& store, const std::vector<ShardFindings>& findings) {
  std::vector<Digest> bytes_nodes, pixel_nodes;
  std::size_t next = 0;
  for (std::size_t l = 0; l < store.levels.size(); ++l) {
    const LevelSize grid = ChunkGridOf(store.settings, store.levels[l].size);
    const std::int64_t per_side = store.settings.shard_px / store.settings.chunk_px;
    std::vector<ShardLeaf> leaves;
    std::vector<Digest> chunks(static_cast<std::size_t>(grid.height * grid.width));
    for (; next < findings.size() && findings[next].place.level == static_cast<int>(l); ++next) {
      const ShardFindings& f = findings[next];
      if (f.size_bytes > 0) leaves.push_back({f.place.row, f.place.column, f.digest});
      const std::int64_t left = f.place.column * per_side;
      const std::int64_t columns = std::min(per_side, grid.width - left);
      for (std::size_t i = 0; i < f.chunks.size(); ++i) {
        const auto n = static_cast<std::int64_t>(i);
        const std::int64_t row = f.place.row * per_side + n / columns;
        chunks[static_cast<std::size_t>(row * grid.width + left + n % columns)] = f.chunks[i];
      }
    }
    bytes_nodes.push_back(LevelBytesNode(leaves));
    pixel_nodes.push_back(LevelPixelsNode(store.settings, store.levels[l].size, chunks));
  }
  return {BytesRoot(store.documents, bytes_nodes), PixelsRoot(pixel_nodes)};
}

}  // namespace

StatusOr<VerifyReport> VerifyStore(const std::string& store, const VerifyOptions& options,
                                   const VerifyProgress& progress) {
  PB_ASSIGN_OR_RETURN(const OpenedStore opened, OpenStore(store));
  std::vector<ShardPlace> places;
  for (std::size_t l = 0; l < opened.levels.size(); ++l) {
    const LevelSize grid = ShardGridOf(opened.settings, opened.levels[l].size);
    for (std::int64_t i = 0; i < grid.height * grid.width; ++i) {
      places.push_back({static_cast<int>(l), i / grid.width, i % grid.width});
    }
  }
  const auto findings =
      CheckAll(opened, places, std::clamp(options.threads, 1, kMaxThreads), progress);
  VerifyReport report;
  report.recorded = opened.recorded;
  report.computed = Combine(opened, findings);
  const auto list = [&](const std::string& fault) {
    ++report.faults;
    if (report.bad.size() < options.max_listed) report.bad.push_back(fault);
  };
  for (const ShardFindings& f : findings) {
    report.shards += f.size_bytes > 0 ? 1 : 0;
    report.chunks += static_cast<std::int64_t>(f.chunks.size());
    report.stored_bytes += f.size_bytes;
    for (const std::string& fault : f.bad) list(fault);
  }
  for (const std::string& fault : UnexpectedFiles(opened, places)) list(fault);
  if (report.faults == 0 && report.recorded && *report.recorded != report.computed) {
    list(StrCat("zarr.json: digest ", report.recorded->bytes.Hex(), " recorded, ",
                report.computed.bytes.Hex(),
                " computed: metadata was changed, or a shard's file is missing"));
  }
  return report;
}

}  // namespace patchbay::zarr
