#include "workers/jobs/plan/tile_patches.h"

#include "runtime/core/strings.h"
#include "runtime/model/plan/image_views.h"

namespace patchbay::workers {
namespace {

/// "224 x 224".
std::string TextOf(const Extent& size) { return StrCat(size.y, " x ", size.x); }

}  // namespace

Status CheckTilePatches(const plan::RunConfig& config, const plan::PlannedImage& image,
                        const Extent& tile) {
  const Extent patch = plan::SourceOf(config, image);
  const auto refuse = [&](std::string_view key, std::string_view cause) {
    return InvalidArgument("key '", key, "': the store has tiles of ", TextOf(tile), " pixels, ",
                           cause);
  };
  if (config.mpp.size() > 1) return refuse("patch.mpp", "and there is nothing around them");
  if (patch.y > tile.y || patch.x > tile.x) {
    return refuse(config.mpp.empty() ? "patch.size" : "patch.mpp",
                  StrCat("and a patch would take ", TextOf(patch)));
  }
  switch (config.positions) {
    case plan::Positions::kRandom:
      return refuse("sampling.positions",
                    "which random patches would cross: grid, or the table positions.csv");
    case plan::Positions::kGrid:
      if (patch == tile && plan::StepOf(config, image).y % tile.y == 0) return absl::OkStatus();
      return refuse(patch == tile ? "sampling.stride" : "patch.size",
                    StrCat("which a grid takes whole: state patch.size: [", tile.y, ", ", tile.x,
                           "] and no stride, or list the patches in a table"));
    case plan::Positions::kListed:
      for (const plan::PlanePoint& at : image.listed) {
        if (at.y % tile.y + patch.y <= tile.y && at.x + patch.x <= tile.x) continue;
        return refuse("sampling.positions", StrCat("and the patch at x ", at.x, ", y ", at.y,
                                                   " would cross from one to another"));
      }
      break;
  }
  return absl::OkStatus();
}

}  // namespace patchbay::workers
