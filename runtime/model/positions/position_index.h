// The positions of tissue and classes in one image. Sampling by tissue and by class draws places
// from it, without reading a pixel. Stored with the label image that it is made from, and read
// lazily.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/extent.h"
#include "runtime/core/status.h"
#include "runtime/model/positions/cell_set.h"
#include "runtime/model/positions/checked_text.h"

namespace patchbay::plan {

/// The file's name in the folder of a revision of a label set (runtime/format/zarr/label_sets.h).
inline constexpr char kPositionIndexFile[] = "positions.index";
inline constexpr std::size_t kMaxPositionIndexBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMaxIndexClasses = 255;

/// The places of one class.
struct ClassCells {
  std::uint8_t value = 0;    ///< value of the class in the label image
  std::string name;          ///< name in the class table and in class_weights
  std::uint64_t pixels = 0;  ///< exact count in level 0
  /// Cells with the class at their centre. A class of few pixels has a finer step than one of many,
  /// so that none is lost; a class that has pixels has cells.
  CellSet cells;

  bool operator==(const ClassCells&) const = default;
};

/// The positions of one image, in pixels of its level 0. A mask of tissue is an index with one
/// class besides "background".
struct PositionIndex {
  Extent size;                      ///< size of level 0
  std::vector<ClassCells> classes;  ///< sorted by value

  const ClassCells* Find(std::string_view name) const;
  /// Adds the positions of another part of the same image: unions and sums. InvalidArgument when
  /// sizes, steps or the names of a value differ.
  Status Merge(const PositionIndex& other);
  std::size_t MemoryBytes() const;
  bool operator==(const PositionIndex&) const = default;
};

/// A compact text with a checksum at its end; equal indexes give equal bytes, so the SHA-256 of it
/// names the index.
std::string EncodePositionIndex(const PositionIndex& index);
/// InvalidArgument for anything but the output of EncodePositionIndex; DataLoss when the checksum
/// differs, where that is compared.
StatusOr<PositionIndex> DecodePositionIndex(std::string_view text,
                                            VouchedBy vouched = VouchedBy::kChecksum);

/// Appends the common record of the files of a label set: value and name of a class, the size of
/// the image.
void AppendClassName(std::uint8_t value, const std::string& name, std::string& out);
Status TakeClassName(std::string_view& text, std::uint8_t& value, std::string& name);
void AppendExtent(const Extent& size, std::string& out);
StatusOr<Extent> TakeExtent(std::string_view& text);

}  // namespace patchbay::plan
