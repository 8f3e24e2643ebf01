#include "runtime/model/jobs/local_job_options.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <sstream>
#include <utility>

#include "runtime/core/strings.h"
#include "runtime/model/jobs/label_options.h"
#include "runtime/model/jobs/tissue_options.h"

namespace patchbay {
namespace {

constexpr std::int64_t kMinSlideSide = 256, kMaxSlideSide = 500'000;
constexpr std::int64_t kMaxVolumeSide = 4096;
constexpr std::int64_t kMinSlices = 6, kMinSeriesSide = 16, kMaxSeriesSide = 1024;
constexpr double kMinLengthMm = 0.1, kMaxLengthMm = 10;

Option SeedOption(std::int64_t& seed, std::string help) {
  return {.name = "--seed", .value = "S", .help = std::move(help), .target = &seed, .min = 0};
}

Option SizeOption(Extent& size, std::string help, double min, double max) {
  return {.name = "--size",
          .value = "ZxYxX",
          .help = std::move(help),
          .target = Sides{{&size.z, &size.y, &size.x}},
          .min = min,
          .max = max};
}

}  // namespace

std::vector<Option> SynthSlideOptions::Options() {
  return {{.name = "--size",
           .value = "WxH",
           .help = "pixels of level 0",
           .target = Sides{{&width, &height}},
           .min = kMinSlideSide,
           .max = kMaxSlideSide,
           .unit = "px"},
          SeedOption(seed, "random seed: every seed gives another slide"),
          {.name = "--quality",
           .value = "N",
           .help = "JPEG quality; higher means larger files",
           .target = &quality,
           .min = 1,
           .max = 100}};
}

std::vector<Option> SynthVolumeOptions::Options() {
  return {SizeOption(size, "voxels: slices, rows, columns", 1, kMaxVolumeSide),
          SeedOption(seed, "another seed, another volume")};
}

Status SynthVolumeOptions::Check() const {
  if (size.Pixels() <= kMaxVolumeVoxels) return absl::OkStatus();
  return InvalidArgument("--size ", size.z, "x", size.y, "x", size.x, ": more than ",
                         kMaxVolumeVoxels, " voxels");
}

std::vector<Option> SynthCtOptions::Options() {
  std::istringstream faults{std::string(kCtFaults)};
  return {SizeOption(size, "slices, rows, columns (16 at least)", kMinSlices, kMaxSeriesSide),
          SeedOption(seed, "another seed, another phantom"),
          {.name = "--step",
           .value = "MM",
           .help = "distance between slices",
           .target = &step_mm,
           .min = kMinLengthMm,
           .max = kMaxLengthMm,
           .unit = "mm"},
          {.name = "--pixel",
           .value = "MM",
           .help = "distance between pixels",
           .target = &pixel_mm,
           .min = kMinLengthMm,
           .max = kMaxLengthMm,
           .unit = "mm"},
          {.name = "--fault",
           .value = "NAME",
           .help = "fault of its geometry or format, such as tilt",
           .target = &fault,
           .choices = {std::istream_iterator<std::string>(faults), {}}}};
}

Status SynthCtOptions::Check() const {
  if (std::min(size.y, size.x) >= kMinSeriesSide) return absl::OkStatus();
  return InvalidArgument("--size ", size.z, "x", size.y, "x", size.x, ": rows and columns are ",
                         kMinSeriesSide, " to ", kMaxSeriesSide);
}

std::vector<Option> PreviewOptions::Options() {
  return {{.name = "--patches",
           .value = "N",
           .help = "patches of a run, spread over its first epoch",
           .target = &patches,
           .min = 1,
           .max = kMaxPreviewCards},
          {.name = "--labels",
           .value = "SET",
           .help = "label set drawn over images",
           .target = &labels,
           .otherwise = "the first"},
          {.name = "--tissue",
           .help = "draw the tissue that a profile finds",
           .target = &tissue,
           .choices = TissueProfiles(),
           .otherwise = "the set"},
          {.name = "--option",
           .value = "KEY=VALUE",
           .help = "a setting of that tissue, as of `labels tissue`",
           .target = &options},
          {.name = "--at",
           .value = "Y,X",
           .help = "the square around that pixel of level 0",
           .target = &at,
           .otherwise = "the whole image"},
          {.name = "--um",
           .value = "UM",
           .help = "side of that square",
           .target = &um,
           .min = 1,
           .max = 100'000,
           .unit = "um"}};
}

StatusOr<PreviewPlace> PreviewOptions::Place() const {
  PreviewPlace place;
  const char* const end = at.data() + at.size();
  const auto y = std::from_chars(at.data(), end, place.y);
  const bool has_comma = y.ec == std::errc() && y.ptr != end && *y.ptr == ',';
  const auto x = has_comma ? std::from_chars(y.ptr + 1, end, place.x) : y;
  if (has_comma && x.ec == std::errc() && x.ptr == end && place.y >= 0 && place.x >= 0) {
    return place;
  }
  return InvalidArgument("--at: expected Y,X, such as 12000,8000, not '", at, "'");
}

Status PreviewOptions::Check() const {
  PB_RETURN_IF_ERROR(Annotate(ParseTissueOptions(options).status(), "--option"));
  return at.empty() ? absl::OkStatus() : Place().status();
}

std::vector<Option> ScanOptions::Options() {
  return {{.name = "--hash",
           .help = "read whole slides to fill content_hash, not headers alone",
           .target = &hash}};
}

}  // namespace patchbay
