// The connected components of each class of one volume. Sampling by component draws places from
// them, so that a small lesion counts as much as a large one. Stored with the label image.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/extent.h"
#include "runtime/core/status.h"
#include "runtime/model/positions/cell_set.h"

namespace patchbay::plan {

/// The file's name in the folder of a revision of a label set.
inline constexpr char kComponentIndexFile[] = "components.index";
inline constexpr std::size_t kMaxComponentIndexBytes = std::size_t{256} << 20;
/// Most components of one class. More are noise, or no things: such a class is not indexed.
inline constexpr std::size_t kMaxComponents = std::size_t{1} << 16;
/// Most runs of voxels along x in all components of one class.
inline constexpr std::size_t kMaxComponentRuns = CellSet::kMaxRuns;

/// Voxels of one class that touch by a face, an edge or a corner are one component.
struct ClassComponents {
  std::uint8_t value = 0;
  std::string name;
  bool is_indexed = true;           ///< false: too many components or runs, none is kept
  std::vector<CellSet> components;  ///< step 1; ordered by their first voxel in row order

  bool operator==(const ClassComponents&) const = default;
};

struct ComponentIndex {
  Extent size;                           ///< size of level 0
  std::vector<ClassComponents> classes;  ///< sorted by value

  const ClassComponents* Find(std::string_view name) const;
  bool operator==(const ComponentIndex&) const = default;
};

/// A compact text with a checksum at its end; equal indexes give equal bytes.
std::string EncodeComponentIndex(const ComponentIndex& index);
/// InvalidArgument for anything but the output of EncodeComponentIndex; DataLoss when the checksum
/// differs.
StatusOr<ComponentIndex> DecodeComponentIndex(std::string_view text);

}  // namespace patchbay::plan
