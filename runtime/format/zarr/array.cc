#include "runtime/format/zarr/array.h"

#include <algorithm>
#include <mutex>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/codec/chunk_codec.h"
#include "runtime/format/zarr/file_byte_store.h"
#include "runtime/format/zarr/shard_list.h"

namespace patchbay::zarr {
namespace {

Status CheckRegion(const ArrayMetadata& array, const Region& region) {
  for (int i = 0; i < array.rank(); ++i) {
    const auto a = static_cast<std::size_t>(i);
    const bool inside = region.origin[a] >= 0 && region.shape[a] >= 0 &&
                        region.origin[a] <= array.shape[a] &&
                        region.shape[a] <= array.shape[a] - region.origin[a];
    if (!inside) {
      return InvalidArgument("read region: axis ", i, ": [", region.origin[a], ", +",
                             region.shape[a], ") reaches outside the extent ", array.shape[a]);
    }
  }
  return absl::OkStatus();
}

Status CheckView(const ArrayMetadata& array, const Region& region, const TensorView& out) {
  bool same = out.dtype == array.dtype && out.rank == array.rank();
  for (int i = 0; same && i < array.rank(); ++i) {
    const auto a = static_cast<std::size_t>(i);
    same = out.shape[a] == region.shape[a];
  }
  if (same) return absl::OkStatus();
  return InvalidArgument("read region: the view is not ", NameOf(array.dtype),
                         " of the region's shape");
}

bool IsEmpty(const ArrayMetadata& array, const Region& region) {
  return std::any_of(region.shape.begin(), region.shape.begin() + array.rank(),
                     [](std::int64_t n) { return n == 0; });
}

/// Calls visit(chunk) for every inner chunk that meets the region, last axis fastest.
template <typename Visit>
Status ForEachChunk(const ArrayMetadata& array, const Region& region, const Visit& visit) {
  if (IsEmpty(array, region)) return absl::OkStatus();
  Coordinates first{}, last{}, at{};
  for (int i = 0; i < array.rank(); ++i) {
    const auto a = static_cast<std::size_t>(i);
    first[a] = region.origin[a] / array.chunk_shape[a];
    last[a] = (region.origin[a] + region.shape[a] - 1) / array.chunk_shape[a];
  }
  at = first;
  while (true) {
    PB_RETURN_IF_ERROR(visit(at));
    int axis = array.rank() - 1;
    for (; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      if (++at[a] <= last[a]) break;
      at[a] = first[a];
    }
    if (axis < 0) return absl::OkStatus();
  }
}

/// The part of `chunk` inside the region, as a place in `out`; false when they do not meet.
bool TargetOf(const ArrayMetadata& array, const Coordinates& chunk, const Region& region,
              const TensorView& out, ChunkTarget& target) {
  target.to = out.data;
  for (int i = 0; i < array.rank(); ++i) {
    const auto a = static_cast<std::size_t>(i);
    const std::int64_t begin = chunk[a] * array.chunk_shape[a];
    const std::int64_t from = std::max(begin, region.origin[a]);
    const std::int64_t end =
        std::min(begin + array.chunk_shape[a], region.origin[a] + region.shape[a]);
    if (end <= from) return false;
    target.from[a] = from - begin;
    target.shape[a] = end - from;
    target.stride_bytes[a] = out.stride_bytes[a];
    target.to += (from - region.origin[a]) * out.stride_bytes[a];
  }
  return true;
}

}  // namespace

std::uint64_t MaxEncodedBytes(const ArrayMetadata& array) {
  return 2 * static_cast<std::uint64_t>(array.ChunkBytes()) + (std::uint64_t{1} << 20);
}

struct Array::State {
  std::shared_ptr<ByteStore> store;
  std::string key;  ///< key of the array in the store; empty: the store itself is the array
  ArrayMetadata metadata;
  std::uint64_t max_encoded_bytes = 0;
  std::shared_ptr<IndexCache> indexes;
  std::uint64_t number = 0;  ///< among the arrays of `indexes`
  /// Whether a shard has a file, by the shard's number; empty: not known.
  std::vector<bool> has_file;
  std::vector<ShardMarks> marks;

  std::mutex mu;
  std::vector<std::pair<FetchedRegion, ChunkScratch>> spare;  // guarded by mu

  /// Where a chunk lies: its shard's place in the shard grid and its place in the shard.
  struct Place {
    Coordinates shard{};
    std::uint64_t shard_number = 0;
    std::size_t chunk_in_shard = 0;
  };
  Place Locate(const Coordinates& chunk) const;
  std::string KeyOf(const Place& place) const {
    std::string shard = metadata.ShardKey(place.shard.data());
    return key.empty() ? shard : StrCat(key, "/", shard);
  }
  std::string FileOf(const Place& place) const { return store->NameOf(KeyOf(place)); }
  /// Whether a shard that has no file may have none; NotFound when it is lost.
  Status CheckAbsence(const Place& place) const {
    if (has_file.empty() || !has_file[place.shard_number]) return absl::OkStatus();
    return NotFound("missing, although the store lists this file");
  }
  StatusOr<std::shared_ptr<const StampedIndex>> ReadIndexOf(const Place& place,
                                                            const StoredBytes* file) const;
  Status CheckReplaced(const Place& place, const StoredBytes* file) const;
  Status FetchOnce(const Place& place, FetchedChunk& chunk, std::vector<std::byte>& bytes) const;
  Status FetchWhole(const Place& place, FetchedChunk& chunk, std::vector<std::byte>& bytes) const;
  Status FetchInner(const Place& place, FetchedChunk& chunk, std::vector<std::byte>& bytes) const;
  Status ReadInto(const StoredBytes& file, std::uint64_t offset, FetchedChunk& chunk,
                  std::vector<std::byte>& bytes) const;
};

Array::State::Place Array::State::Locate(const Coordinates& chunk) const {
  Place place;
  for (int i = 0; i < metadata.rank(); ++i) {
    const auto a = static_cast<std::size_t>(i);
    const std::int64_t per_shard = metadata.shard_shape[a] / metadata.chunk_shape[a];
    place.shard[a] = chunk[a] / per_shard;
    place.shard_number = place.shard_number * static_cast<std::uint64_t>(metadata.ShardGrid(i)) +
                         static_cast<std::uint64_t>(place.shard[a]);
    place.chunk_in_shard = place.chunk_in_shard * static_cast<std::size_t>(per_shard) +
                           static_cast<std::size_t>(chunk[a] % per_shard);
  }
  return place;
}

/// The index of a shard; empty where the shard has no file.
StatusOr<std::shared_ptr<const StampedIndex>> Array::State::ReadIndexOf(
    const Place& place, const StoredBytes* file) const {
  auto index = std::make_shared<StampedIndex>();
  if (file != nullptr) {
    const std::uint32_t* seal = marks.empty() ? nullptr : &marks[place.shard_number].seal;
    PB_ASSIGN_OR_RETURN(index->entries, ReadIndex(metadata, *file, {FileOf(place), seal}));
    index->stamp = file->stamp();
  } else {
    PB_RETURN_IF_ERROR(CheckAbsence(place));
  }
  indexes->Insert({number, place.shard_number}, index);
  return std::shared_ptr<const StampedIndex>(std::move(index));
}

/// Whether a shard whose index was read of another file, or of this one before it changed, may be
/// read on. A seal alone would not tell: a file that is being overwritten has its index last.
Status Array::State::CheckReplaced(const Place& place, const StoredBytes* file) const {
  if (file == nullptr) {
    PB_RETURN_IF_ERROR(CheckAbsence(place));
    return Aborted("shard is gone since its index was read");
  }
  if (marks.empty()) return Aborted("shard changed since its index was read");
  PB_ASSIGN_OR_RETURN(const Digest digest, DigestOf(*file, FileOf(place)));
  const std::uint32_t found = FirstBitsOf(digest), listed = marks[place.shard_number].file_bits;
  if (found == listed) return absl::OkStatus();
  return Aborted(
      "shard changed since its index was read, to another than the store lists (its SHA-256 begins "
      "with ",
      HexOf(found), ", ", HexOf(listed), " listed)");
}

/// Reads the chunk's size_bytes bytes at `offset` to its `begin`.
Status Array::State::ReadInto(const StoredBytes& file, std::uint64_t offset, FetchedChunk& chunk,
                              std::vector<std::byte>& bytes) const {
  if (chunk.size_bytes > max_encoded_bytes) {
    return DataLoss(chunk.size_bytes, " encoded bytes, more than a chunk of ",
                    metadata.ChunkBytes(), " bytes can need");
  }
  const std::size_t end = chunk.begin + chunk.size_bytes;
  if (bytes.size() < end) bytes.resize(std::max(end, 2 * bytes.size()));
  return file.Read(offset, std::span(bytes).subspan(chunk.begin, chunk.size_bytes), "shard");
}

Status Array::State::FetchWhole(const Place& place, FetchedChunk& chunk,
                                std::vector<std::byte>& bytes) const {
  PB_ASSIGN_OR_RETURN(const std::shared_ptr<const StoredBytes> file, store->Open(KeyOf(place)));
  chunk.absent = file == nullptr;
  if (chunk.absent) return CheckAbsence(place);
  chunk.size_bytes = static_cast<std::size_t>(file->size_bytes());
  return ReadInto(*file, 0, chunk, bytes);
}

/// The bytes of a chunk are used only under the stamp its index was read under.
Status Array::State::FetchOnce(const Place& place, FetchedChunk& chunk,
                               std::vector<std::byte>& bytes) const {
  const auto is_absent = [&](const StampedIndex& index) {
    return index.entries.empty() || index.entries[place.chunk_in_shard].Absent();
  };
  std::shared_ptr<const StampedIndex> index = indexes->Find({number, place.shard_number});
  chunk.absent = index != nullptr && is_absent(*index);
  if (chunk.absent) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const std::shared_ptr<const StoredBytes> file, store->Open(KeyOf(place)));
  const bool is_same = index != nullptr && file != nullptr && index->stamp == file->stamp();
  if (!is_same) {
    if (index != nullptr) PB_RETURN_IF_ERROR(CheckReplaced(place, file.get()));
    PB_ASSIGN_OR_RETURN(index, ReadIndexOf(place, file.get()));
    chunk.absent = is_absent(*index);
    if (chunk.absent) return absl::OkStatus();
  }
  const IndexEntry& entry = index->entries[place.chunk_in_shard];
  chunk.size_bytes = static_cast<std::size_t>(entry.size_bytes);
  return ReadInto(*file, entry.offset, chunk, bytes);
}

/// A shard with known marks is opened again when its file changed, since a chmod changes no pixel.
Status Array::State::FetchInner(const Place& place, FetchedChunk& chunk,
                                std::vector<std::byte>& bytes) const {
  const Status read = FetchOnce(place, chunk, bytes);
  if (!absl::IsAborted(read) || marks.empty()) return read;
  return FetchOnce(place, chunk, bytes);
}

Array::Array(std::unique_ptr<State> state) : state_(std::move(state)) {}
Array::Array(Array&&) noexcept = default;
Array& Array::operator=(Array&&) noexcept = default;
Array::~Array() = default;

StatusOr<Array> Array::Open(std::shared_ptr<ByteStore> store, const std::string& key,
                            const ArrayOptions& options) {
  auto state = std::make_unique<State>();
  PB_ASSIGN_OR_RETURN(state->metadata, ReadArrayMetadata(*store, key));
  state->metadata.attributes = Json::object();
  state->store = std::move(store);
  state->key = key;
  state->max_encoded_bytes = MaxEncodedBytes(state->metadata);
  state->indexes = options.indexes ? options.indexes : std::make_shared<IndexCache>(kOwnIndexBytes);
  state->number = state->indexes->AddArray();
  return Array(std::move(state));
}

StatusOr<Array> Array::Open(const Folders& allowed, const std::string& path,
                            const ArrayOptions& options) {
  auto files = std::make_shared<FileCache>(kOwnOpenFiles);
  return Open(std::make_shared<FileByteStore>(allowed, path, std::move(files)), "", options);
}

Status Array::ExpectFiles(std::vector<bool> has_file, std::vector<ShardMarks> marks) {
  std::size_t shards = 1;
  bool countable = true;
  for (int i = 0; i < state_->metadata.rank(); ++i) {
    countable =
        countable && !__builtin_mul_overflow(shards, state_->metadata.ShardGrid(i), &shards);
  }
  if (!countable || shards != has_file.size()) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "open array", path(),
                      StrCat("the array does not have ", has_file.size(), " shards"));
  }
  const bool can_be_sealed = state_->metadata.sharded && state_->metadata.index_at_end;
  if (!marks.empty() && (!can_be_sealed || marks.size() != shards)) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "open array", path(),
                      "not an array whose shards are sealed");
  }
  state_->has_file = std::move(has_file);
  state_->marks = std::move(marks);
  return absl::OkStatus();
}

const ArrayMetadata& Array::metadata() const { return state_->metadata; }
std::string Array::path() const { return state_->store->NameOf(state_->key); }

std::size_t Array::MemoryBytes() const {
  const ArrayMetadata& m = state_->metadata;
  std::size_t bytes =
      sizeof(State) + state_->key.capacity() + m.fill.capacity() + state_->has_file.capacity() / 8 +
      sizeof(ShardMarks) * state_->marks.capacity() + m.chain.codecs.capacity() * sizeof(Codec) +
      m.chain.order.capacity() * 4 + 3 * m.shape.capacity() * sizeof(std::int64_t);
  for (const std::string& name : m.dimension_names) bytes += sizeof(name) + name.capacity();
  return bytes;
}

Status Array::AboutChunk(const Status& status, const Coordinates& chunk) const {
  const std::string file = state_->FileOf(state_->Locate(chunk));
  if (!state_->metadata.sharded) return About(status, "read chunk", file);
  std::string name = "chunk (";
  for (int i = 0; i < state_->metadata.rank(); ++i) {
    name += StrCat(i > 0 ? "," : "", chunk[static_cast<std::size_t>(i)]);
  }
  return About(Annotate(status, name + ")"), "read chunk", file);
}

StatusOr<FetchedChunk> Array::FetchChunk(const Coordinates& chunk, std::vector<std::byte>& bytes,
                                         std::size_t begin) const {
  const State::Place place = state_->Locate(chunk);
  FetchedChunk out;
  out.chunk = chunk;
  out.begin = begin;
  const Status status = state_->metadata.sharded ? state_->FetchInner(place, out, bytes)
                                                 : state_->FetchWhole(place, out, bytes);
  if (status.ok()) return out;
  if (absl::IsNotFound(status)) {
    return About(WithCode(status, absl::StatusCode::kDataLoss), "read chunk",
                 state_->FileOf(place));
  }
  return AboutChunk(status, chunk);
}

Status Array::DecodeChunk(const FetchedChunk& chunk, std::span<const std::byte> bytes,
                          const Region& region, const TensorView& out,
                          ChunkScratch& scratch) const {
  ChunkTarget target;
  if (!TargetOf(state_->metadata, chunk.chunk, region, out, target)) return absl::OkStatus();
  if (chunk.absent) {
    FillChunk(state_->metadata, target);
    return absl::OkStatus();
  }
  const Status status = DecodeChunkInto(state_->metadata, bytes, target, scratch.state());
  if (status.ok()) return status;
  return AboutChunk(status, chunk.chunk);
}

Status Array::Fetch(const Region& region, FetchedRegion& out) const {
  PB_RETURN_IF_ERROR(CheckRegion(state_->metadata, region));
  out.region = region;
  out.chunks.clear();
  std::size_t used = 0;
  return ForEachChunk(state_->metadata, region, [&](const Coordinates& chunk) -> Status {
    PB_ASSIGN_OR_RETURN(const FetchedChunk fetched, FetchChunk(chunk, out.bytes, used));
    used += fetched.size_bytes;
    out.chunks.push_back(fetched);
    return absl::OkStatus();
  });
}

Status Array::Decode(const FetchedRegion& fetched, const TensorView& out,
                     ChunkScratch& scratch) const {
  PB_RETURN_IF_ERROR(CheckView(state_->metadata, fetched.region, out));
  for (const FetchedChunk& chunk : fetched.chunks) {
    const auto bytes = std::span(fetched.bytes).subspan(chunk.begin, chunk.size_bytes);
    PB_RETURN_IF_ERROR(DecodeChunk(chunk, bytes, fetched.region, out, scratch));
  }
  return absl::OkStatus();
}

Status Array::ReadRegion(const Region& region, const TensorView& out) const {
  PB_RETURN_IF_ERROR(CheckRegion(state_->metadata, region));
  PB_RETURN_IF_ERROR(CheckView(state_->metadata, region, out));
  std::pair<FetchedRegion, ChunkScratch> work;
  {
    const std::lock_guard lock(state_->mu);
    if (!state_->spare.empty()) {
      work = std::move(state_->spare.back());
      state_->spare.pop_back();
    }
  }
  auto& [fetched, scratch] = work;
  // Chunk by chunk: the encoded bytes are decoded while they are in the cache.
  const Status status =
      ForEachChunk(state_->metadata, region, [&](const Coordinates& chunk) -> Status {
        PB_ASSIGN_OR_RETURN(const FetchedChunk piece, FetchChunk(chunk, fetched.bytes, 0));
        return DecodeChunk(piece, std::span(fetched.bytes).first(piece.size_bytes), region, out,
                           scratch);
      });
  const std::lock_guard lock(state_->mu);
  state_->spare.push_back(std::move(work));
  return status;
}

}  // namespace patchbay::zarr
