#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/format/zarr/image_store.h"
#include "runtime/format/zarr/publish.h"
#include "runtime/model/source/modality.h"
#include "runtime/os/folder_listing.h"
#include "runtime/os/temporary_file.h"
#include "workers/jobs/synth/abdomen.h"
#include "workers/jobs/synth/synth.h"
#include "workers/jobs/task/volume_writer.h"

namespace patchbay::workers {
namespace {

constexpr double kSliceMm = 2.5, kPixelMm = 0.78125;

zarr::ImageStoreSpec SpecOf(const SynthVolumeOptions& options) {
  zarr::ImageStoreSpec spec;
  spec.settings = zarr::VolumeSettings(DType::kInt16);
  spec.levels = VolumeLevels(options.size, spec.settings);
  spec.spacing.z = AxisSpacing{kSliceMm, LengthUnit::kMillimeter};
  spec.spacing.y = spec.spacing.x = AxisSpacing{kPixelMm, LengthUnit::kMillimeter};
  spec.attributes["source_kind"] = "synthetic";
  spec.attributes["modality"] = JsonOf(ModalityRecord{{"CT", "HU"}, "synthetic"});
  return spec;
}

}  // namespace

Status SynthVolume(const Folders& allowed, const std::string& path,
                   const SynthVolumeOptions& options, const SynthProgress& progress) {
  if (Exists(allowed, path, false)) {
    return ErrorAbout(absl::StatusCode::kAlreadyExists, "synth volume", path,
                      "something of that name is already there");
  }
  PB_ASSIGN_OR_RETURN(const PartialFolder staging, PartialFolder::Make(allowed, path));
  const AbdomenField field(options.size, options.seed);
  const auto row = [&field](const Point& at, std::int64_t count, std::byte* out) {
    auto* voxels = reinterpret_cast<std::int16_t*>(out);
    for (std::int64_t x = 0; x < count; ++x) voxels[x] = field.At({at.z, at.y, at.x + x});
  };
  PB_RETURN_IF_ERROR(
      WriteVolumeStore(allowed, staging.path(), SpecOf(options), row, progress).status());
  return zarr::PublishStore(allowed, staging.path(), path, [] {});
}

}  // namespace patchbay::workers
