// Writes TIFF slides piece by piece: pixels in the order of writing, directories at the end, as
// scanners do.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/extent.h"
#include "runtime/core/status.h"
#include "runtime/os/file.h"
#include "runtime/os/folders.h"

namespace patchbay::workers {

/// The fields of one directory. A field set twice is written twice: callers keep tags distinct.
class TiffFields {
 public:
  void Short(std::uint16_t tag, std::vector<std::uint16_t> values);
  void Long(std::uint16_t tag, std::uint32_t value);
  void Rational(std::uint16_t tag, std::uint32_t numerator, std::uint32_t denominator);
  void Text(std::uint16_t tag, std::string_view text);
  void Bytes(std::uint16_t tag, std::string_view bytes);
  /// LONG in classic TIFF, LONG8 in BigTIFF.
  void Offsets(std::uint16_t tag, std::vector<std::uint64_t> values);

 private:
  friend class TiffWriter;
  struct Field {
    std::uint16_t tag = 0, type = 0;
    std::vector<std::uint64_t> values;
  };
  std::vector<Field> fields_;
};

/// A little-endian TIFF under construction. It has a temporary name next to its final one until
/// Commit, and is removed if the writer is destroyed before.
class TiffWriter {
 public:
  /// `is_big`: BigTIFF. A classic file refuses to pass 4 GiB (ResourceExhausted).
  static StatusOr<TiffWriter> Create(const Folders& allowed, const std::string& path, bool is_big);
  TiffWriter(TiffWriter&& other) noexcept;
  TiffWriter& operator=(TiffWriter&&) = delete;
  ~TiffWriter();

  /// Adds bytes and returns their offset.
  StatusOr<std::uint64_t> Append(std::span<const std::byte> bytes);

  /// Writes a directory outside the chain, one that another names (tag 330), and returns its
  /// offset.
  StatusOr<std::uint64_t> AppendDirectory(TiffFields& fields);

  /// The next directory of the chain; written by Commit.
  void AddDirectory(TiffFields fields) { directories_.push_back(std::move(fields)); }

  /// Writes the directories, makes the file durable and renames it to its final name.
  Status Commit();

  const Folders& allowed() const { return allowed_; }

 private:
  TiffWriter(Folders allowed, std::string path, UniqueFd fd, bool is_big);
  Status Flush();
  StatusOr<std::uint64_t> WriteDirectory(TiffFields& fields, std::uint64_t link_at);

  Folders allowed_;
  std::string path_, partial_path_;
  UniqueFd fd_;
  bool is_big_;
  std::uint64_t flushed_ = 0;
  std::vector<std::byte> buffer_;
  std::vector<TiffFields> directories_;
};

/// A tile of compression 8 (Deflate), fast rather than small; `out` is replaced.
Status DeflateTile(std::span<const std::byte> raw, std::vector<std::byte>& out);

/// The mark of a mask that `labels export` wrote.
inline constexpr std::string_view kExportedMask = "patchbay label set: 255 is ignored";

class MaskTiff {
 public:
  static constexpr std::int64_t kTile = 512;

  /// Creates the file under a temporary name, which Commit replaces.
  static StatusOr<MaskTiff> Create(const Folders& allowed, const std::string& path,
                                   const Extent& size);
  /// The next kTile rows, fewer only at the end. Every row is as wide as the mask.
  Status AddBand(std::span<const std::uint8_t> rows);
  /// Writes the directory and renames the file to its final name; returns its size in bytes.
  StatusOr<std::uint64_t> Commit();

 private:
  MaskTiff(TiffWriter writer, const std::string& path, const Extent& size)
      : writer_(std::move(writer)), path_(path), size_(size) {}

  TiffWriter writer_;
  std::string path_;
  Extent size_;
  std::vector<std::uint64_t> offsets_, bytes_;
};

/// True for a TIFF that MaskTiff wrote, in which 255 means not annotated. False if it cannot be
/// read.
bool IsExportedMask(const Folders& allowed, const std::string& path);

}  // namespace patchbay::workers
