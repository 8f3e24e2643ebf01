// An image a worker can cut patches from: a slide file or a store. Reading is two stages, so that
// the bytes of the next patch are fetched while this one is decoded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ops/icc_to_srgb/icc_lookup.h"
#include "runtime/core/box.h"
#include "runtime/core/dtype.h"
#include "runtime/core/extent.h"
#include "runtime/core/spacing.h"
#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"
#include "runtime/format/tiles/tile_format.h"
#include "runtime/format/zarr/store_files.h"  // wide: the interface of every source
#include "runtime/os/folders.h"
#include "workers/sources/read_caches.h"

namespace patchbay::workers {

/// One pyramid level. Level 0 is the finest.
struct LevelLayout {
  Extent size;              ///< pixels
  double downsample = 1.0;  ///< mean of the y and x ratios to level 0
  /// Voxels of level 0 for one along z, y and x, as a store's metadata states them.
  std::array<double, 3> steps = {1, 1, 1};
  Extent chunk;  ///< native tile or inner chunk; reads aligned to it are cheapest
};

struct ImageLayout {
  std::string kind;  ///< "zarr", "aperio", "tiff", "png", "jpeg", "openslide:<vendor>"
  DType dtype = DType::kUint8;
  int channels = 3;
  std::vector<std::string> channel_names;  ///< in the order of channels; empty: not named
  std::vector<LevelLayout> levels;
  Spacing spacing;                        ///< spacing of level 0, as far as the file states it
  std::optional<double> objective_power;  ///< as the scanner states it (20, 40); never derived
};

/// Whether the pixels are colours: three channels of uint8 that have no names of their own.
bool IsRgb(const ImageLayout& layout);

/// One native tile or inner chunk as it lies on disk.
struct EncodedPiece {
  Point chunk;                            ///< place in the level's chunk grid
  std::size_t begin = 0, size_bytes = 0;  ///< its bytes in EncodedPatch::bytes
  bool absent = false;                    ///< the file marks it as absent: fill value, no bytes
  int plane = 0;  ///< the channel, if a file stores channels separately; otherwise 0
};

/// Called on the fetching thread after everything that is read; its error ends the fetch.
using AfterPiece = std::function<Status()>;

/// A patch's encoded bytes on their way from the read stage to decode. Reused from patch to patch
/// so that its memory is allocated once; `bytes` never shrinks; each piece has its range of it.
struct EncodedPatch {
  int level = 0;
  Box box;
  std::vector<EncodedPiece> pieces;
  std::vector<std::byte> bytes;
  AfterPiece after_piece = {};  ///< set by who fetches; kept from fetch to fetch
  /// The channels that are wanted, in their order; empty: all. Set and kept likewise; images heed
  /// it where ReadsChosenChannels.
  std::vector<int> channels = {};
};

/// Per-thread decoder state (libjpeg objects, scratch tiles). Made by the source that uses it.
class DecodeScratch {
 public:
  virtual ~DecodeScratch() = default;
};

/// All methods are const and thread-safe as long as each thread has its own EncodedPatch and
/// DecodeScratch.
class ImageSource {
 public:
  virtual ~ImageSource() = default;

  virtual const ImageLayout& layout() const = 0;
  /// Approximate memory in bytes without the shared caches, as image caches count it.
  virtual std::size_t MemoryBytes() const { return std::size_t{1} << 20; }
  virtual std::unique_ptr<DecodeScratch> MakeScratch() const = 0;
  /// The lookup of the image's ICC profile for its colours; null without a profile. Read and made
  /// again at every call. InvalidArgument when the profile is damaged or not of RGB.
  virtual StatusOr<std::shared_ptr<const ops::IccLookup>> ToSrgb() const { return nullptr; }
  /// From now on a store's file that is not as listed is Aborted: of many files that no digest
  /// vouches for, each may have changed before it is first opened. Call before other threads read.
  virtual void Expect(std::shared_ptr<const zarr::StoreFiles> files) { (void)files; }
  /// From now on a patch of a store of tiles has the pixels of the tile that the centre of its box
  /// lies in, and `fill` around them: what an op reads beside a tile is no other tile. Call before
  /// other threads read.
  virtual void KeepToTiles() {}

  /// How the pieces of a level are compressed that Fetch gives, where each is a JPEG or JPEG 2000
  /// tile of all channels. Unimplemented, with the reason, where they are none.
  virtual StatusOr<tiles::TileFormat> TilesOf(int level) const;

  /// Whether Fetch and Decode read and decode EncodedPatch::channels alone. Otherwise both take
  /// all.
  virtual bool ReadsChosenChannels() const { return false; }

  /// I/O only: the bytes of every piece that `box` (level pixels; may reach past the image)
  /// touches. Aborted, also by Decode where a library reads the file: a file changed since it was
  /// opened, and the bytes must not be used.
  virtual Status Fetch(int level, const Box& box, EncodedPatch& out) const = 0;

  /// CPU only: the pixels of patch.box into `out`, shape (depth, height, width, channels), or
  /// without the depth where the box is one slice deep; of the chosen channels where there are
  /// some; any strides, dtype layout().dtype. Pixels outside the image and absent pieces get `fill`
  /// in every channel. InvalidArgument for a fill that is not a value of the type; DataLoss names
  /// level, row and column.
  virtual Status Decode(const EncodedPatch& patch, const TensorView& out, double fill,
                        DecodeScratch& scratch) const = 0;
};

/// Opens a slide or store by its content, never by its name. The image takes descriptors and shard
/// indexes from `caches`. InvalidArgument: not a supported image, or malformed; Unimplemented: a
/// known but unsupported layout; both messages give the reason.
StatusOr<std::unique_ptr<ImageSource>> OpenImage(
    const Folders& allowed, const std::string& path,
    const ReadCaches& caches = ReadCaches::ForOneImage());

}  // namespace patchbay::workers
