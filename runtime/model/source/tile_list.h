// A dataset of tiles: pictures of one size in a folder for each class.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/source/file_kind.h"
#include "runtime/os/folders.h"

namespace patchbay {

inline constexpr std::size_t kMaxTiles = 1'000'000;
/// Class 255 of labels is ignored by losses.
inline constexpr std::size_t kMaxTileClasses = 255;

/// Pictures by class.
struct TileList {
  /// "ADI/a.png": below the dataset's folder, class by class, sorted by name. The first part is the
  /// class. Empty: the folder is no dataset of tiles.
  std::vector<std::string> files;
  FilesByKind skipped;  ///< other files, by their kind
  /// InvalidArgument about the first path for which the tiles cannot be taken.
  Status fault;

  /// Whether nothing there could be a slide or a volume, by the kinds of the skipped files.
  bool IsOfPicturesAlone() const;
};

/// The class of a file of a TileList.
std::string_view ClassOfTile(std::string_view file);

/// The PNG and JPEG pictures, by the ends of their names, in the subfolders of `folder`, nested
/// ones too; names that begin with a dot are left out. No picture there, or pictures in `folder`
/// alone: an empty list. At fault are a class without a picture, pictures beside the folders of
/// classes, links to folders, classes whose names differ in case alone, and more than
/// kMaxTileClasses or kMaxTiles. `after_entry` is called for every entry; its error ends the work.
StatusOr<TileList> ListTiles(const Folders& allowed, const std::string& folder,
                             const std::function<Status()>& after_entry = {});

}  // namespace patchbay
