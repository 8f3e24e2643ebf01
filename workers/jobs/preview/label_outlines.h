// The label sets of a store on its card: outlines of tissue and classes, and their legend.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/core/extent.h"
#include "runtime/core/status.h"
#include "runtime/os/folders.h"
#include "workers/plots/preview_sheet.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// Sets whose classes are outlined; the others are named alone.
inline constexpr std::size_t kMaxSetsDrawn = 4;

/// The level of an image that its card shows.
struct ShownLevel {
  int level = 0;
  Extent size;
  AfterPiece after_piece;  ///< called after each piece that is read
};

/// Adds the current label sets of the store at `path`, or `only` one of them, at its level `shown`:
/// one area per class, with its colour and share of the picture. Adds nothing without label sets.
/// DataLoss and InvalidArgument name the set; NotFound where the one set is not there. @return
/// whether one of them is the set `tissue`
StatusOr<bool> AddLabelOutlines(const Folders& allowed, const std::string& path,
                                const std::string& only, const ShownLevel& shown, ImageCard& card);

}  // namespace patchbay::workers
