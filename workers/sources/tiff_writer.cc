#include "workers/sources/tiff_writer.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include "runtime/core/hash.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/file_byte_store.h"
#include "runtime/os/file_names.h"
#include "runtime/os/folder_listing.h"
#include "runtime/os/temporary_file.h"
#include "workers/sources/tiff_index.h"

namespace patchbay::workers {
namespace {

constexpr std::uint16_t kAscii = 2, kShort = 3, kLong = 4, kRational = 5, kUndefined = 7,
                        kLong8 = 16;
constexpr std::uint16_t kOffsets = 0xFFFF;  ///< LONG or LONG8, by the kind of file
constexpr std::size_t kFlushBytes = 4u << 20;

std::size_t WidthOf(std::uint16_t type) {
  switch (type) {
    case kShort:
      return 2;
    case kLong:
      return 4;
    case kRational:
    case kLong8:
      return 8;
    default:
      return 1;
  }
}

void Put(std::vector<std::byte>& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

std::vector<std::uint64_t> Widen(std::string_view bytes) {
  std::vector<std::uint64_t> values;
  for (char c : bytes) values.push_back(static_cast<unsigned char>(c));
  return values;
}

// Tags and values of TIFF 6.0.
constexpr std::uint16_t kWidthTag = 256, kHeightTag = 257, kBitsTag = 258, kCompressionTag = 259,
                        kPhotometricTag = 262, kDescriptionTag = 270, kSamplesTag = 277,
                        kTileWidthTag = 322, kTileHeightTag = 323, kTileOffsetsTag = 324,
                        kTileBytesTag = 325;
constexpr std::uint16_t kDeflate = 8, kBlackIsZero = 1;

}  // namespace

void TiffFields::Short(std::uint16_t tag, std::vector<std::uint16_t> values) {
  fields_.push_back({tag, kShort, {values.begin(), values.end()}});
}
void TiffFields::Long(std::uint16_t tag, std::uint32_t value) {
  fields_.push_back({tag, kLong, {value}});
}
void TiffFields::Rational(std::uint16_t tag, std::uint32_t numerator, std::uint32_t denominator) {
  fields_.push_back({tag, kRational, {numerator | std::uint64_t{denominator} << 32}});
}
void TiffFields::Text(std::uint16_t tag, std::string_view text) {
  fields_.push_back({tag, kAscii, Widen(text)});
  fields_.back().values.push_back(0);
}
void TiffFields::Bytes(std::uint16_t tag, std::string_view bytes) {
  fields_.push_back({tag, kUndefined, Widen(bytes)});
}
void TiffFields::Offsets(std::uint16_t tag, std::vector<std::uint64_t> values) {
  fields_.push_back({tag, kOffsets, std::move(values)});
}

TiffWriter::TiffWriter(Folders allowed, std::string path, UniqueFd fd, bool is_big)
    : allowed_(std::move(allowed)), path_(std::move(path)), fd_(std::move(fd)), is_big_(is_big) {
  for (char c : std::string_view("II")) buffer_.push_back(static_cast<std::byte>(c));
  Put(buffer_, is_big ? 43 : 42, 2);
  if (is_big) Put(buffer_, 8, 4);
  Put(buffer_, 0, is_big ? 8 : 4);  // first directory, filled in by Commit
}

TiffWriter::TiffWriter(TiffWriter&& other) noexcept
    : allowed_(other.allowed_),
      path_(std::move(other.path_)),
      partial_path_(std::exchange(other.partial_path_, {})),
      fd_(std::move(other.fd_)),
      is_big_(other.is_big_),
      flushed_(other.flushed_),
      buffer_(std::move(other.buffer_)),
      directories_(std::move(other.directories_)) {}

TiffWriter::~TiffWriter() {
  if (!partial_path_.empty()) RemoveFile(allowed_, partial_path_).IgnoreError();
}

StatusOr<TiffWriter> TiffWriter::Create(const Folders& allowed, const std::string& path,
                                        bool is_big) {
  PB_ASSIGN_OR_RETURN(TemporaryFile file, CreateBeside(allowed, path, ".partial"));
  TiffWriter writer(allowed, path, std::move(file.fd), is_big);
  writer.partial_path_ = std::move(file.path);
  return writer;
}

Status TiffWriter::Flush() {
  PB_RETURN_IF_ERROR(WriteAt(fd_.get(), flushed_, buffer_, path_));
  flushed_ += buffer_.size();
  buffer_.clear();
  return absl::OkStatus();
}

StatusOr<std::uint64_t> TiffWriter::Append(std::span<const std::byte> bytes) {
  if (buffer_.size() % 2 != 0) buffer_.push_back(std::byte{0});
  const std::uint64_t offset = flushed_ + buffer_.size();
  if (!is_big_ && offset + bytes.size() > 0xFFFFFFFFu) {
    return ErrorAbout(absl::StatusCode::kResourceExhausted, "write tiff", path_,
                      "more than 4 GiB in a classic TIFF");
  }
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  if (buffer_.size() >= kFlushBytes) PB_RETURN_IF_ERROR(Flush());
  return offset;
}

/// Values that do not fit an entry come before the table.
StatusOr<std::uint64_t> TiffWriter::AppendDirectory(TiffFields& fields) {
  const std::size_t word = is_big_ ? 8 : 4;
  std::sort(fields.fields_.begin(), fields.fields_.end(),
            [](const auto& a, const auto& b) { return a.tag < b.tag; });
  std::vector<std::byte> table;
  Put(table, fields.fields_.size(), is_big_ ? 8 : 2);
  for (const auto& field : fields.fields_) {
    const std::uint16_t type = field.type != kOffsets ? field.type : is_big_ ? kLong8 : kLong;
    std::vector<std::byte> values;
    for (std::uint64_t v : field.values) Put(values, v, WidthOf(type));
    Put(table, field.tag, 2);
    Put(table, type, 2);
    Put(table, field.values.size(), word);
    if (values.size() <= word) {
      values.resize(word);
      table.insert(table.end(), values.begin(), values.end());
    } else {
      PB_ASSIGN_OR_RETURN(const std::uint64_t offset, Append(values));
      Put(table, offset, word);
    }
  }
  Put(table, 0, word);
  return Append(table);
}

/// Writes a directory, then the link of the one before.
/// @return where its own link lies.
StatusOr<std::uint64_t> TiffWriter::WriteDirectory(TiffFields& fields, std::uint64_t link_at) {
  const std::size_t word = is_big_ ? 8 : 4;
  PB_ASSIGN_OR_RETURN(const std::uint64_t offset, AppendDirectory(fields));
  const std::uint64_t end = flushed_ + buffer_.size();
  PB_RETURN_IF_ERROR(Flush());
  std::vector<std::byte> link;
  Put(link, offset, word);
  PB_RETURN_IF_ERROR(WriteAt(fd_.get(), link_at, link, path_));
  return end - word;
}

Status TiffWriter::Commit() {
  PB_RETURN_IF_ERROR(Flush());
  std::uint64_t link_at = is_big_ ? 8 : 4;
  for (TiffFields& fields : directories_) {
    PB_ASSIGN_OR_RETURN(link_at, WriteDirectory(fields, link_at));
  }
  if (fsync(fd_.get()) != 0) return FromErrno("sync", path_, errno);
  PB_RETURN_IF_ERROR(RenameFile(allowed_, partial_path_, path_));
  partial_path_.clear();
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  return SyncDirectory(allowed_, folder.empty() ? "." : folder.string());
}

Status DeflateTile(std::span<const std::byte> raw, std::vector<std::byte>& out) {
  uLongf bytes = compressBound(static_cast<uLong>(raw.size()));
  out.resize(bytes);
  const int failed = compress2(reinterpret_cast<Bytef*>(out.data()), &bytes,
                               reinterpret_cast<const Bytef*>(raw.data()),
                               static_cast<uLong>(raw.size()), Z_BEST_SPEED);
  if (failed != Z_OK) return Internal("write tiff: deflate failed");
  out.resize(bytes);
  return absl::OkStatus();
}

StatusOr<MaskTiff> MaskTiff::Create(const Folders& allowed, const std::string& path,
                                    const Extent& size) {
  PB_ASSIGN_OR_RETURN(TiffWriter writer, TiffWriter::Create(allowed, path, true));
  return MaskTiff(std::move(writer), path, size);
}

Status MaskTiff::AddBand(std::span<const std::uint8_t> rows) {
  const std::int64_t height = static_cast<std::int64_t>(rows.size()) / size_.x;
  std::vector<std::uint8_t> tile(static_cast<std::size_t>(kTile * kTile));
  std::vector<std::byte> packed;
  for (std::int64_t x = 0; x < size_.x; x += kTile) {
    const std::int64_t width = std::min(kTile, size_.x - x);
    std::fill(tile.begin(), tile.end(), std::uint8_t{0});
    for (std::int64_t y = 0; y < height; ++y) {
      std::copy_n(rows.data() + y * size_.x + x, width, tile.data() + y * kTile);
    }
    PB_RETURN_IF_ERROR(DeflateTile(std::as_bytes(std::span(tile)), packed));
    PB_ASSIGN_OR_RETURN(offsets_.emplace_back(), writer_.Append(packed));
    bytes_.push_back(packed.size());
  }
  return absl::OkStatus();
}

StatusOr<std::uint64_t> MaskTiff::Commit() {
  TiffFields fields;
  fields.Long(kWidthTag, static_cast<std::uint32_t>(size_.x));
  fields.Long(kHeightTag, static_cast<std::uint32_t>(size_.y));
  fields.Short(kBitsTag, {8});
  fields.Short(kCompressionTag, {kDeflate});
  fields.Short(kPhotometricTag, {kBlackIsZero});
  fields.Text(kDescriptionTag, kExportedMask);
  fields.Short(kSamplesTag, {1});
  fields.Long(kTileWidthTag, static_cast<std::uint32_t>(kTile));
  fields.Long(kTileHeightTag, static_cast<std::uint32_t>(kTile));
  fields.Offsets(kTileOffsetsTag, std::move(offsets_));
  fields.Offsets(kTileBytesTag, std::move(bytes_));
  writer_.AddDirectory(std::move(fields));
  PB_RETURN_IF_ERROR(writer_.Commit());
  return SizeOf(writer_.allowed(), path_).value_or(0);
}

bool IsExportedMask(const Folders& allowed, const std::string& path) {
  const auto file = zarr::OpenStoredFile(allowed, path);
  if (!file.ok()) return false;
  const auto index = TiffIndex::Read(*file);
  if (!index.ok() || index->directories().empty()) return false;
  const auto description = index->ReadDescription(index->directories().front());
  return description.ok() && *description == kExportedMask;
}

}  // namespace patchbay::workers
