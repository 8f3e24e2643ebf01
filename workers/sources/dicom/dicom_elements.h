// The elements of a DICOM file, visited one after another: none is kept, so that a slide of
// millions of them costs no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/zarr/byte_store.h"

namespace patchbay::workers {

inline constexpr std::size_t kMaxDicomDepth = 32;  ///< sequences within sequences, and items
inline constexpr std::size_t kMaxDicomElements = 1 << 25;  ///< before the pixels
inline constexpr std::uint32_t kUndefinedLength = 0xFFFFFFFF;

/// Tags are numbers: 0x00280010 is (0028,0010).
inline constexpr std::uint32_t kDicomPixels = 0x7FE00010;
inline constexpr std::uint32_t kDicomItem = 0xFFFEE000;
inline constexpr std::uint32_t kDicomItemEnd = 0xFFFEE00D;
inline constexpr std::uint32_t kDicomSequenceEnd = 0xFFFEE0DD;

/// The place of an element's value in the file.
struct DicomValue {
  std::uint32_t tag = 0;
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;  ///< kUndefinedLength for pixels in fragments
};

/// The sequences around an element, the outermost first, by tag.
using DicomSequences = std::span<const std::uint32_t>;

struct DicomVisitor {
  /// Called at the beginning of every item, which is of the last of `within`.
  std::function<Status(DicomSequences within)> item;
  /// Called for every element but sequences; false ends the walk.
  std::function<StatusOr<bool>(DicomSequences within, const DicomValue& value)> value;
};

/// An open file. One thread at a time.
class DicomElements {
 public:
  /// Reads the file meta information. InvalidArgument: not a DICOM file; Unimplemented for a
  /// deflated or big-endian data set. Messages hold no value but that of the transfer syntax.
  static StatusOr<DicomElements> Open(std::shared_ptr<const zarr::StoredBytes> file);

  const std::string& transfer_syntax() const { return transfer_syntax_; }
  std::uint64_t file_bytes() const { return file_->size_bytes(); }

  /// Visits the data set up to and with its pixels. InvalidArgument for elements that reach past
  /// the end of the file or of what holds them, for deep nesting, and for more than
  /// kMaxDicomElements.
  Status Walk(const DicomVisitor& visitor);

  /// Text without the padding of its ends. InvalidArgument for more than 1 KiB.
  StatusOr<std::string> Text(const DicomValue& value);
  /// A value of US, or of UL and SL.
  StatusOr<std::uint16_t> Short(const DicomValue& value);
  StatusOr<std::uint32_t> Long(const DicomValue& value);

  /// The tag and length of the item at `offset`.
  struct Item {
    std::uint32_t tag = 0, size_bytes = 0;
  };
  StatusOr<Item> ItemAt(std::uint64_t offset);
  /// Whole numbers of `width` (4 or 8) bytes.
  StatusOr<std::vector<std::uint64_t>> Numbers(std::uint64_t offset, std::size_t count,
                                               std::size_t width);

 private:
  struct Level;
  struct Head;

  explicit DicomElements(std::shared_ptr<const zarr::StoredBytes> file) : file_(std::move(file)) {}
  StatusOr<const std::byte*> Bytes(std::uint64_t offset, std::size_t size);
  StatusOr<Head> HeadAt(std::uint64_t offset, bool is_implicit);
  Status WalkFrom(std::uint64_t offset, bool is_implicit, const DicomVisitor& visitor);

  std::shared_ptr<const zarr::StoredBytes> file_;
  std::string transfer_syntax_;
  std::uint64_t data_set_ = 0;  ///< where it begins
  std::uint64_t window_offset_ = 0;
  std::vector<std::byte> window_;  ///< the part of the file that was read last
};

inline constexpr std::size_t kDicomItemBytes = 8;  ///< tag and length at an item's head

/// Whether the bytes are an item whole: its head, and as many bytes as that states.
bool IsDicomItem(std::span<const std::byte> bytes);

/// "(0028,0010)".
std::string DicomTagName(std::uint32_t tag);

}  // namespace patchbay::workers
