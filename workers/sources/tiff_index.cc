#include "workers/sources/tiff_index.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <span>

#include "runtime/core/strings.h"
#include "runtime/os/file.h"

namespace patchbay::workers {
namespace {

constexpr std::uint16_t kTagSubfile = 254, kTagWidth = 256, kTagHeight = 257, kTagBits = 258,
                        kTagCompression = 259, kTagPhotometric = 262, kTagFillOrder = 266,
                        kTagDescription = 270, kTagStripOffsets = 273, kTagOrientation = 274,
                        kTagSamples = 277, kTagRowsPerStrip = 278, kTagStripCounts = 279,
                        kTagXResolution = 282, kTagYResolution = 283, kTagPlanar = 284,
                        kTagResolutionUnit = 296, kTagPredictor = 317, kTagTileWidth = 322,
                        kTagTileHeight = 323, kTagTileOffsets = 324, kTagTileCounts = 325,
                        kTagSubIfds = 330, kTagSampleFormat = 339, kTagJpegTables = 347,
                        kTagImageDepth = 32997, kTagIccProfile = 34675;
constexpr std::size_t kMaxSubDirectories = 64;
constexpr std::uint64_t kMaxSamples = 64;

/// Bytes of one value of a TIFF field type; 0 for types that do not exist.
std::size_t TypeBytes(std::uint16_t type) {
  constexpr std::size_t kBytes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
  return type < std::size(kBytes) ? kBytes[type] : 0;
}

bool IsIntegerType(std::uint16_t type) {
  return type == 1 || type == 3 || type == 4 || type == 13 || type == 16 || type == 18;
}

const TiffEntry* FindEntry(const TiffDirectory& directory, std::uint16_t tag) {
  for (const TiffEntry& entry : directory.entries) {
    if (entry.tag == tag) return &entry;
  }
  return nullptr;
}

constexpr std::size_t kBlock = 64;
constexpr std::uint64_t kMost32 = 0xFFFFFFFF;

bool FollowOneAnother(const TiffPieces& pieces, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin + 1; i < end; ++i) {
    if (pieces.size_bytes[i - 1] >= kMost32) return false;
    if (pieces.offset[i] != pieces.offset[i - 1] + pieces.size_bytes[i - 1]) return false;
  }
  return true;
}

}  // namespace

Status TiffIndex::ReadExactly(std::uint64_t offset, void* out, std::size_t size) const {
  if (offset > file_bytes() || size > file_bytes() - offset) {
    return MalformedTiff(StrCat(size, " bytes at offset ", offset,
                                " lie past the end of the file (", file_bytes(), " bytes)"));
  }
  return file_->Read(offset, {static_cast<std::byte*>(out), size}, "tiff");
}

std::uint64_t TiffIndex::Load(const unsigned char* p, std::size_t size) const {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value = (value << 8) | p[big_endian_ ? i : size - 1 - i];
  }
  return value;
}

StatusOr<TiffIndex> TiffIndex::Read(std::shared_ptr<const zarr::StoredBytes> file) {
  TiffIndex index;
  index.file_ = std::move(file);
  PB_RETURN_IF_ERROR(index.ReadHeader());
  PB_RETURN_IF_ERROR(index.ReadChain());
  return index;
}

Status TiffIndex::ReadHeader() {
  unsigned char header[16] = {};
  PB_RETURN_IF_ERROR(ReadExactly(0, header, 8));
  if (!((header[0] == 'I' && header[1] == 'I') || (header[0] == 'M' && header[1] == 'M'))) {
    return MalformedTiff("no TIFF byte order mark");
  }
  big_endian_ = header[0] == 'M';
  const std::uint64_t version = Load(header + 2, 2);
  if (version == 42) {
    first_directory_ = Load(header + 4, 4);
    return absl::OkStatus();
  }
  if (version != 43) return MalformedTiff(StrCat("version ", version, ", not 42 or 43"));
  big_ = true;
  PB_RETURN_IF_ERROR(ReadExactly(0, header, 16));
  if (Load(header + 4, 2) != 8 || Load(header + 6, 2) != 0) {
    return MalformedTiff("a BigTIFF whose offsets are not 8 bytes");
  }
  first_directory_ = Load(header + 8, 8);
  return absl::OkStatus();
}

Status TiffIndex::ReadChain() {
  std::set<std::uint64_t> seen;
  std::size_t entries = 0;
  std::uint64_t offset = first_directory_;
  while (offset != 0) {
    if (!seen.insert(offset).second) {
      return MalformedTiff(
          StrCat("directory ", directories_.size(), " loops back to offset ", offset));
    }
    if (directories_.size() == kMaxTiffDirectories) {
      return MalformedTiff(StrCat("more than ", kMaxTiffDirectories, " directories"));
    }
    std::uint64_t next = 0;
    auto directory = ReadDirectory(offset, &next);
    if (!directory.ok()) {
      return Annotate(directory.status(), StrCat("directory ", directories_.size()));
    }
    entries += directory->entries.size();
    if (entries > kMaxTiffEntriesInAll) {
      return MalformedTiff(
          StrCat("more than ", kMaxTiffEntriesInAll, " entries in all directories"));
    }
    directories_.push_back(*std::move(directory));
    offset = next;
  }
  if (directories_.empty()) return MalformedTiff("no directories");
  return absl::OkStatus();
}

StatusOr<TiffDirectory> TiffIndex::ReadDirectory(std::uint64_t offset, std::uint64_t* next) const {
  const std::size_t count_bytes = big_ ? 8 : 2, entry_bytes = big_ ? 20 : 12,
                    word_bytes = big_ ? 8 : 4;
  unsigned char word[8];
  PB_RETURN_IF_ERROR(ReadExactly(offset, word, count_bytes));
  const std::uint64_t count = Load(word, count_bytes);
  if (count == 0 || count > kMaxTiffEntries) {
    return MalformedTiff(
        StrCat("a directory with ", count, " entries: 1 to ", kMaxTiffEntries, " are supported"));
  }
  std::vector<unsigned char> table(count * entry_bytes + word_bytes);
  PB_RETURN_IF_ERROR(ReadExactly(offset + count_bytes, table.data(), table.size()));
  TiffDirectory directory;
  directory.entries.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned char* p = table.data() + i * entry_bytes;
    TiffEntry entry;
    entry.tag = static_cast<std::uint16_t>(Load(p, 2));
    entry.type = static_cast<std::uint16_t>(Load(p + 2, 2));
    entry.count = Load(p + 4, word_bytes);
    const std::size_t size = TypeBytes(entry.type);
    if (size == 0) continue;  // a type this version of the format does not have: not for us
    const bool is_inline = entry.count <= word_bytes / size;
    entry.offset = is_inline ? offset + count_bytes + i * entry_bytes + 4 + word_bytes
                             : Load(p + 4 + word_bytes, word_bytes);
    directory.entries.push_back(entry);
  }
  *next = Load(table.data() + count * entry_bytes, word_bytes);
  PB_RETURN_IF_ERROR(Interpret(directory));
  return directory;
}

StatusOr<std::vector<std::uint64_t>> TiffIndex::Integers(const TiffEntry& entry,
                                                         std::uint64_t most) const {
  if (!IsIntegerType(entry.type)) {
    return MalformedTiff(StrCat("tag ", entry.tag, " has type ", entry.type, ", not an integer"));
  }
  if (entry.count > most) {
    return MalformedTiff(
        StrCat("tag ", entry.tag, " has ", entry.count, " values, at most ", most));
  }
  const std::size_t size = TypeBytes(entry.type);
  if (entry.offset > file_bytes() || entry.count * size > file_bytes() - entry.offset) {
    return MalformedTiff(StrCat("the values of tag ", entry.tag, " lie past the end of the file"));
  }
  std::vector<unsigned char> raw(entry.count * size);
  PB_RETURN_IF_ERROR(ReadExactly(entry.offset, raw.data(), raw.size()));
  std::vector<std::uint64_t> values(entry.count);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = Load(raw.data() + i * size, size);
  return values;
}

StatusOr<std::optional<std::uint64_t>> TiffIndex::Integer(const TiffDirectory& directory,
                                                          std::uint16_t tag) const {
  const TiffEntry* entry = FindEntry(directory, tag);
  if (entry == nullptr) return std::optional<std::uint64_t>();
  if (entry->count == 0) return MalformedTiff(StrCat("tag ", tag, " has no value"));
  TiffEntry first = *entry;
  first.count = 1;
  PB_ASSIGN_OR_RETURN(auto values, Integers(first, 1));
  return std::optional<std::uint64_t>(values[0]);
}

StatusOr<std::optional<double>> TiffIndex::Rational(const TiffDirectory& directory,
                                                    std::uint16_t tag) const {
  const TiffEntry* entry = FindEntry(directory, tag);
  if (entry == nullptr || entry->type != 5 || entry->count == 0) return std::optional<double>();
  unsigned char raw[8];
  PB_RETURN_IF_ERROR(ReadExactly(entry->offset, raw, sizeof raw));
  const auto denominator = static_cast<double>(Load(raw + 4, 4));
  const double value = static_cast<double>(Load(raw, 4)) / denominator;
  if (denominator == 0 || value <= 0) return std::optional<double>();
  return std::optional<double>(value);
}

StatusOr<std::string> TiffIndex::Bytes(const TiffEntry& entry, std::size_t most) const {
  if (TypeBytes(entry.type) != 1) {
    return MalformedTiff(StrCat("tag ", entry.tag, " has type ", entry.type, ", not bytes"));
  }
  std::string text(std::min<std::uint64_t>(entry.count, most), '\0');
  PB_RETURN_IF_ERROR(ReadExactly(entry.offset, text.data(), text.size()));
  return text;
}

/// A value for each sample: the one that all have, or 0.
Status TiffIndex::ReadAlike(const TiffDirectory& directory, std::uint16_t tag,
                            std::uint32_t& into) const {
  const TiffEntry* entry = FindEntry(directory, tag);
  if (entry == nullptr) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const auto values, Integers(*entry, kMaxSamples));
  const bool is_one =
      std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
  if (!values.empty()) into = is_one ? static_cast<std::uint32_t>(values[0]) : 0;
  return absl::OkStatus();
}

/// Reads the plain fields. Their consistency is checked when the image is opened: a directory that
/// is never opened may have any.
Status TiffIndex::Interpret(TiffDirectory& d) const {
  const auto read = [&](std::uint16_t tag, std::uint32_t& into) -> Status {
    PB_ASSIGN_OR_RETURN(auto value, Integer(d, tag));
    if (value.has_value()) into = static_cast<std::uint32_t>(std::min<std::uint64_t>(*value, ~0u));
    return absl::OkStatus();
  };
  const auto read_side = [&](std::uint16_t tag, std::int64_t& into) -> Status {
    PB_ASSIGN_OR_RETURN(auto value, Integer(d, tag));
    if (!value.has_value()) return absl::OkStatus();
    into = static_cast<std::int64_t>(std::min<std::uint64_t>(*value, std::uint64_t{1} << 40));
    return absl::OkStatus();
  };
  PB_RETURN_IF_ERROR(read(kTagSubfile, d.subfile));
  PB_RETURN_IF_ERROR(read(kTagCompression, d.compression));
  PB_RETURN_IF_ERROR(read(kTagPhotometric, d.photometric));
  PB_RETURN_IF_ERROR(read(kTagSamples, d.samples));
  PB_RETURN_IF_ERROR(read(kTagPlanar, d.planar));
  PB_RETURN_IF_ERROR(read(kTagPredictor, d.predictor));
  PB_RETURN_IF_ERROR(read(kTagFillOrder, d.fill_order));
  PB_RETURN_IF_ERROR(read(kTagImageDepth, d.image_depth));
  PB_RETURN_IF_ERROR(read(kTagOrientation, d.orientation));
  PB_RETURN_IF_ERROR(read(kTagResolutionUnit, d.resolution_unit));
  PB_RETURN_IF_ERROR(read_side(kTagWidth, d.width));
  PB_RETURN_IF_ERROR(read_side(kTagHeight, d.height));
  PB_RETURN_IF_ERROR(ReadAlike(d, kTagBits, d.bits));
  PB_RETURN_IF_ERROR(ReadAlike(d, kTagSampleFormat, d.sample_format));
  d.tiled = FindEntry(d, kTagTileWidth) != nullptr;
  if (d.tiled) {
    PB_RETURN_IF_ERROR(read_side(kTagTileWidth, d.piece_width));
    PB_RETURN_IF_ERROR(read_side(kTagTileHeight, d.piece_height));
  } else {
    d.piece_width = d.width;
    d.piece_height = d.height;
    PB_RETURN_IF_ERROR(read_side(kTagRowsPerStrip, d.piece_height));
    d.piece_height = std::min(d.piece_height, d.height);
  }
  PB_ASSIGN_OR_RETURN(d.x_resolution, Rational(d, kTagXResolution));
  PB_ASSIGN_OR_RETURN(d.y_resolution, Rational(d, kTagYResolution));
  if (const TiffEntry* profile = FindEntry(d, kTagIccProfile)) d.icc_profile = *profile;
  return absl::OkStatus();
}

StatusOr<std::vector<TiffDirectory>> TiffIndex::ReadSubDirectories(
    const TiffDirectory& parent) const {
  std::vector<TiffDirectory> children;
  const TiffEntry* entry = FindEntry(parent, kTagSubIfds);
  if (entry == nullptr) return children;
  PB_ASSIGN_OR_RETURN(auto offsets, Integers(*entry, kMaxSubDirectories));
  for (std::uint64_t offset : offsets) {
    std::uint64_t next = 0;
    PB_ASSIGN_OR_RETURN(auto child, ReadDirectory(offset, &next));
    children.push_back(std::move(child));
  }
  return children;
}

StatusOr<TiffPieces> TiffIndex::ReadPieces(const TiffDirectory& directory) const {
  const auto planes = directory.planar == 2 ? std::uint64_t{directory.samples} : 1;
  if (directory.height < 1 || directory.width < 1 || directory.piece_height < 1 ||
      directory.piece_width < 1 || planes == 0) {
    return MalformedTiff("an image whose sides, tiles or samples are 0");
  }
  const auto rows = static_cast<std::uint64_t>(directory.PieceRows());
  const auto columns = static_cast<std::uint64_t>(directory.PieceColumns());
  if (rows > kMaxTiffPieces || columns > kMaxTiffPieces ||
      rows * columns > kMaxTiffPieces / planes) {
    return MalformedTiff(
        StrCat("an image of ", rows, " x ", columns, " tiles or strips: at most ", kMaxTiffPieces));
  }
  const std::uint64_t needed = rows * columns * planes;
  // Some writers state the tiles' places under the tags of strips; libtiff reads both alike.
  const auto find = [&](std::uint16_t of_tiles, std::uint16_t of_strips) {
    const TiffEntry* entry = directory.tiled ? FindEntry(directory, of_tiles) : nullptr;
    return entry != nullptr ? entry : FindEntry(directory, of_strips);
  };
  const TiffEntry* offsets = find(kTagTileOffsets, kTagStripOffsets);
  const TiffEntry* counts = find(kTagTileCounts, kTagStripCounts);
  if (offsets == nullptr || counts == nullptr) {
    return MalformedTiff("an image without tile or strip offsets and byte counts");
  }
  if (offsets->count < needed || counts->count < needed) {
    return MalformedTiff(StrCat("an image of ", needed, " tiles or strips with ", offsets->count,
                                " offsets and ", counts->count, " byte counts"));
  }
  TiffEntry first_offsets = *offsets, first_counts = *counts;
  first_offsets.count = first_counts.count = needed;
  TiffPieces pieces;
  PB_ASSIGN_OR_RETURN(pieces.offset, Integers(first_offsets, kMaxTiffPieces));
  PB_ASSIGN_OR_RETURN(pieces.size_bytes, Integers(first_counts, kMaxTiffPieces));
  return pieces;
}

StatusOr<std::string> TiffIndex::ReadDescription(const TiffDirectory& directory) const {
  return ReadText(directory, kTagDescription);
}

StatusOr<std::string> TiffIndex::ReadText(const TiffDirectory& directory, std::uint16_t tag) const {
  const TiffEntry* entry = FindEntry(directory, tag);
  if (entry == nullptr || TypeBytes(entry->type) != 1) return std::string();
  PB_ASSIGN_OR_RETURN(std::string text, Bytes(*entry, kMaxTiffTextBytes));
  text.resize(std::min(text.size(), text.find('\0')));
  return text;
}

StatusOr<std::string> TiffIndex::ReadJpegTables(const TiffDirectory& directory) const {
  const TiffEntry* entry = FindEntry(directory, kTagJpegTables);
  if (entry == nullptr) return std::string();
  if (entry->count > kMaxJpegTablesBytes) {
    return MalformedTiff(
        StrCat("JPEG tables of ", entry->count, " bytes: at most ", kMaxJpegTablesBytes));
  }
  return Bytes(*entry, kMaxJpegTablesBytes);
}

TiffPieceTable::TiffPieceTable(const TiffPieces& pieces) {
  const std::size_t count = pieces.offset.size();
  sizes_.reserve(count);
  blocks_.reserve((count + kBlock - 1) / kBlock);
  for (const std::uint64_t size : pieces.size_bytes) {
    sizes_.push_back(static_cast<std::uint32_t>(std::min(size, kMost32)));
  }
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    AddBlock(pieces, begin, std::min(begin + kBlock, count));
  }
  near_.shrink_to_fit();
  far_.shrink_to_fit();
}

void TiffPieceTable::AddBlock(const TiffPieces& pieces, std::size_t begin, std::size_t end) {
  const auto first = pieces.offset.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto last = pieces.offset.begin() + static_cast<std::ptrdiff_t>(end);
  const auto [least, most] = std::minmax_element(first, last);
  Block block{*least};
  if (!FollowOneAnother(pieces, begin, end)) {
    const bool is_near = *most - *least <= kMost32;
    (is_near ? block.near : block.far) =
        static_cast<std::uint32_t>(is_near ? near_.size() : far_.size());
    for (auto offset = first; offset != last; ++offset) {
      if (is_near) near_.push_back(static_cast<std::uint32_t>(*offset - *least));
      if (!is_near) far_.push_back(*offset - *least);
    }
  }
  blocks_.push_back(block);
}

TiffPiece TiffPieceTable::At(std::size_t i) const {
  const Block& block = blocks_[i / kBlock];
  const std::size_t begin = i / kBlock * kBlock;
  TiffPiece piece{block.base, sizes_[i]};
  if (block.near != kNone) {
    piece.offset += near_[block.near + (i - begin)];
  } else if (block.far != kNone) {
    piece.offset += far_[block.far + (i - begin)];
  } else {
    for (std::size_t k = begin; k < i; ++k) piece.offset += sizes_[k];
  }
  return piece;
}

std::size_t TiffPieceTable::MemoryBytes() const {
  return blocks_.capacity() * sizeof(Block) + 4 * (sizes_.capacity() + near_.capacity()) +
         8 * far_.capacity();
}

}  // namespace patchbay::workers
