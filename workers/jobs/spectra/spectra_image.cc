#include "workers/jobs/spectra/spectra_image.h"

#include "runtime/core/dtype.h"
#include "runtime/core/strings.h"
#include "workers/jobs/spectra/engine.h"

namespace patchbay::workers {
namespace {

Status CheckPixels(const ImageLayout& layout, const SpectraTask& task) {
  const SpectraSettings& settings = task.settings;
  const auto refuse = [&](std::string_view cause) {
    return task.Error(absl::StatusCode::kUnimplemented, cause);
  };
  if (layout.dtype != DType::kUint8) {
    return refuse(StrCat("its pixels are ", NameOf(layout.dtype), ", only uint8 is measured"));
  }
  if (layout.channels != 1 && layout.channels != 3) {
    return refuse(StrCat(layout.channels, " channels, only 1 (grey) and 3 (rgb) are measured"));
  }
  if (layout.levels.front().size.z != 1) {
    return refuse("a volume, only single planes are measured");
  }
  if (layout.channels == 1 && settings.channel == plan::SpectralChannel::kRgb) {
    return refuse("one channel, nothing to measure as rgb");
  }
  if (layout.channels == 1 && settings.tissue_only) {
    return refuse("one channel; tissue is found by colour, in RGB slides only");
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<SpectraImage> OpenSpectraImage(const SpectraTask& task) {
  PB_RETURN_IF_ERROR(CheckSpectraStamp(task));
  SpectraImage image;
  PB_ASSIGN_OR_RETURN(image.source, OpenImage(task.folders.allowed, task.path));
  const ImageLayout& layout = image.source->layout();
  PB_RETURN_IF_ERROR(CheckPixels(layout, task));
  image.grid = GridOf(layout.levels.front(), task.settings, SpectraPaceOf(task.settings));
  if (image.grid.Frames() > 0) return image;
  return task.Error(absl::StatusCode::kInvalidArgument,
                    StrCat(image.grid.width, " x ", image.grid.height,
                           " pixels, smaller than a frame of ", image.grid.options.frame));
}

std::optional<double> MppOf(const ImageLayout& layout) { return layout.spacing.MeanMpp(); }

}  // namespace patchbay::workers
