// The cards of preview sheets: pictures, outlines of labels, slices of volumes, facts of patches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "ops/chain/chain.h"
#include "runtime/core/extent.h"
#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"
#include "runtime/model/plan/plan.h"
#include "runtime/os/folders.h"
#include "workers/plots/preview_sheet.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// `pixels` is (height, width, channels). RGB of uint8 is unchanged; other types are stretched from
/// their smallest to their largest value; one channel is shown as grey, of more channels the first
/// three.
Picture PictureOf(const ConstTensorView& pixels);

/// `picture` with the class colour over every pixel of `mask`, which has its size; ignored pixels
/// are unchanged.
Picture Overlaid(const Picture& picture, const std::vector<std::uint8_t>& mask);

/// Writes a finished sheet, with a mark of the images that it shows. PermissionDenied outside the
/// task's rights.
StatusOr<std::uint64_t> WriteSheet(const Folders& allowed, const std::string& path, std::string png,
                                   const std::set<Digest>& images);

/// Sets whose classes are outlined; the others are named alone.
inline constexpr std::size_t kMaxSetsDrawn = 4;

/// The part of an image that its card shows.
struct ShownLevel {
  int level = 0;
  Extent size;             ///< size of the level
  Box box;                 ///< the part, which may reach past its edges
  AfterPiece after_piece;  ///< called after each piece that is read
};

/// Adds the current label sets of the store at `path`, or `only` one of them, at its level `shown`:
/// one area per class, with its colour and share of the picture. Adds nothing without label sets.
/// DataLoss and InvalidArgument name the set; NotFound where the one set is not there. @return
/// whether one of them is the set `tissue`
StatusOr<bool> AddLabelOutlines(const Folders& allowed, const std::string& path,
                                const std::string& only, const ShownLevel& shown, ImageCard& card);

/// An axial, a coronal and a sagittal slice of the store at `path`, whose image is `image`, through
/// the middle of the labelled voxels, or of the volume; Hounsfield units of -160 to 240 as grey,
/// voxels as large as their spacing. `set` is the label set to overlay; "": the first existing one,
/// if any. InvalidArgument: the store has no such set.
StatusOr<PatchCard> VolumeCardOf(const Folders& allowed, const std::string& path,
                                 const ImageSource& image, const std::string& set,
                                 const AfterPiece& after_piece);

/// Adds geometry, colour and key of the patch, as `chain` draws them.
void AddDraws(const plan::Plan& plan, const ops::Chain& chain, const plan::PatchSpec& spec,
              PatchCard& card);

/// Adds the classes of a patch's mask of labels.Sets()[set] by their share, and for the first set
/// its label by labels.label.rule.
void AddMaskFacts(const plan::Plan& plan, const plan::PatchSpec& spec, std::size_t set,
                  const std::vector<std::uint8_t>& mask, PatchCard& card);

}  // namespace patchbay::workers
