#include "workers/jobs/synth/volume.h"

#include <sys/stat.h>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/image_store.h"
#include "runtime/format/zarr/publish.h"
#include "runtime/os/temporary_file.h"
#include "workers/jobs/synth/abdomen.h"
#include "workers/jobs/task/volume_writer.h"

namespace patchbay::workers {
namespace {

constexpr double kSliceMm = 2.5, kPixelMm = 0.78125;

Status Refuse(std::string_view cause) {
  return absl::InvalidArgumentError(StrCat("synth volume: ", cause));
}

Status CheckSize(const Extent& size) {
  for (const std::int64_t side : {size.z, size.y, size.x}) {
    if (side < 1 || side > kMaxVolumeSide) {
      return Refuse(
          StrCat("size: ", size.z, "x", size.y, "x", size.x, ": sides are 1 to ", kMaxVolumeSide));
    }
  }
  if (size.Pixels() <= kMaxVolumeVoxels) return absl::OkStatus();
  return Refuse(StrCat("size: ", size.z, "x", size.y, "x", size.x, ": more than ", kMaxVolumeVoxels,
                       " voxels"));
}

zarr::ImageStoreSpec SpecOf(const SynthVolumeOptions& options) {
  zarr::ImageStoreSpec spec;
  spec.settings = zarr::VolumeSettings(DType::kInt16);
  spec.levels = VolumeLevels(options.size, spec.settings);
  spec.spacing.z = AxisSpacing{kSliceMm, LengthUnit::kMillimeter};
  spec.spacing.y = spec.spacing.x = AxisSpacing{kPixelMm, LengthUnit::kMillimeter};
  spec.attributes["source_kind"] = "synthetic";
  return spec;
}

}  // namespace

StatusOr<SynthVolumeOptions> SynthVolumeOptionsFromJson(const Json& json) {
  SynthVolumeOptions options;
  if (!json.is_object()) return Refuse("options: no object");
  for (const auto& [key, value] : json.items()) {
    if (key == "seed" && value.is_number_unsigned()) {
      options.seed = value.get<std::uint64_t>();
    } else if (key == "size" && value.is_array() && value.size() == 3 &&
               value[0].is_number_integer() && value[1].is_number_integer() &&
               value[2].is_number_integer()) {
      options.size = {value[0].get<std::int64_t>(), value[1].get<std::int64_t>(),
                      value[2].get<std::int64_t>()};
    } else {
      return Refuse(StrCat("option '", key, "': unknown, or not of its type"));
    }
  }
  PB_RETURN_IF_ERROR(CheckSize(options.size));
  return options;
}

Status SynthVolume(const Folders& allowed, const std::string& path,
                   const SynthVolumeOptions& options, const SynthProgress& progress) {
  PB_RETURN_IF_ERROR(CheckSize(options.size));
  struct stat there {};
  if (lstat(path.c_str(), &there) == 0) {
    return FileError(absl::StatusCode::kAlreadyExists, "synth volume", path,
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
