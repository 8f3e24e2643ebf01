#include "workers/jobs/labels/mean_probability.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/array.h"
#include "runtime/os/available_memory.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/labels/class_map.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {
namespace {

/// Rows of a map decoded at a time, as many as its chunks have.
constexpr std::int64_t kBandRows = 128;
constexpr double kOne = 254;              ///< probability 1 of bytes
constexpr std::uint8_t kUncovered = 255;  ///< as a byte; NaN in halves

/// A line of an outline crosses the centres of a row between columns x - 1 and x. Sums from the
/// row's beginning to its crossings, those of lines downwards less those of lines upwards, are the
/// sum within.
struct Crossing {
  std::int32_t channel, y, x;
  std::int32_t polygon;
  bool is_down;
};

void AddCrossings(const Ring& ring, Crossing one, std::vector<Crossing>& out) {
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const Vertex &a = ring[i], &b = ring[(i + 1) % ring.size()];
    if (a.y == b.y) continue;
    one.is_down = a.y < b.y;
    const double slope = (b.x - a.x) / (b.y - a.y);  // 0, 1 or -1 as traced
    const double end = std::max(a.y, b.y);
    for (double y = std::ceil(std::min(a.y, b.y) - 0.5); y + 0.5 < end; ++y) {
      one.y = static_cast<std::int32_t>(y);
      one.x = static_cast<std::int32_t>(std::lround(a.x + (y + 0.5 - a.y) * slope));
      out.push_back(one);
    }
  }
}

std::vector<Crossing> CrossingsOf(const std::vector<TracedPolygon>& polygons, int first_class,
                                  std::int64_t channels) {
  std::vector<Crossing> out;
  for (std::size_t i = 0; i < polygons.size(); ++i) {
    const int channel = polygons[i].value - first_class;
    if (channel < 0 || channel >= channels) continue;
    const Crossing own{channel, 0, 0, static_cast<std::int32_t>(i), false};
    for (const Ring& ring : polygons[i].rings) AddCrossings(ring, own, out);
  }
  std::sort(out.begin(), out.end(), [](const Crossing& a, const Crossing& b) {
    return std::pair(a.channel, a.y) < std::pair(b.channel, b.y);
  });
  return out;
}

/// A positive half.
double FromHalf(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, rest = bits & 1023;
  if (exponent == 31) return std::numeric_limits<double>::quiet_NaN();
  return exponent == 0 ? std::ldexp(rest, -24) : std::ldexp(rest + 1024, exponent - 25);
}

/// Sums over the first pixels of a row: of the probabilities that there are, and their number.
struct Sums {
  double total = 0, count = 0;
};

/// Rows of a map's channels in pixels of the image, as sums.
class ProbabilityRows {
 public:
  static StatusOr<ProbabilityRows> Open(TaskContext& context, const OpenedLabels& labels) {
    const std::string& path = labels.map->probabilities;
    PB_RETURN_IF_ERROR(CheckNoLinks(context, path));
    PB_ASSIGN_OR_RETURN(zarr::Array array, zarr::Array::Open(context.allowed, path + "/0"));
    const zarr::ArrayMetadata& m = array.metadata();
    const Extent& size = labels.map->size;
    const bool is_known = m.dtype == DType::kUint8 || m.dtype == DType::kFloat16;
    if (!is_known || m.shape.size() != 3 || m.shape[1] != size.y || m.shape[2] != size.x) {
      return ErrorAbout(absl::StatusCode::kInvalidArgument, "export labels", path,
                        "it is not the map of the class map beside it");
    }
    return ProbabilityRows(context, labels, std::move(array));
  }

  std::int64_t channels() const { return array_.metadata().shape[0]; }

  /// The sums up to each column of the image, and one more. Rows of one channel in order.
  StatusOr<const Sums*> Row(std::int64_t channel, std::int64_t y) {
    const std::int64_t row = y_(y), band = row / kBandRows;
    if (channel != channel_ || band != band_) PB_RETURN_IF_ERROR(ReadBand(channel, band));
    if (row == row_) return sums_.data();
    row_ = row;
    const std::byte* from = band_values_.data() + row % kBandRows * x_.side * bytes_;
    for (std::size_t x = 0; x < columns_.size(); ++x) {
      const double value = ValueAt(from + columns_[x] * bytes_);
      const bool is_there = !std::isnan(value);
      sums_[x + 1] = {sums_[x].total + (is_there ? value : 0), sums_[x].count + (is_there ? 1 : 0)};
    }
    return sums_.data();
  }

 private:
  ProbabilityRows(TaskContext& context, const OpenedLabels& labels, zarr::Array array)
      : context_(context),
        array_(std::move(array)),
        bytes_(static_cast<std::int64_t>(SizeOf(array_.metadata().dtype))),
        y_{labels.map->per_pixel[1], labels.map->size.y},
        x_{labels.map->per_pixel[2], labels.map->size.x} {
    for (std::int64_t x = 0; x < labels.image.levels[0].x; ++x) columns_.push_back(x_(x));
    sums_.resize(columns_.size() + 1);
  }

  double ValueAt(const std::byte* at) const {
    if (bytes_ == 1) {
      const auto value = static_cast<std::uint8_t>(*at);
      return value == kUncovered ? std::numeric_limits<double>::quiet_NaN() : value;
    }
    std::uint16_t bits = 0;
    std::memcpy(&bits, at, sizeof(bits));
    return FromHalf(bits) * kOne;
  }

  Status ReadBand(std::int64_t channel, std::int64_t band) {
    PB_RETURN_IF_ERROR(StepOf(context_));
    const std::int64_t top = band * kBandRows, height = std::min(kBandRows, y_.side - top);
    zarr::Region region{{channel, top, 0}, {1, height, x_.side}};
    const auto bytes = static_cast<std::size_t>(height * x_.side * bytes_);
    if (bytes > band_values_.size()) {
      PB_RETURN_IF_ERROR(CheckMemoryFits("export labels", bytes, AvailableMemory()));
    }
    band_values_.resize(bytes);
    const DType dtype = array_.metadata().dtype;
    const TensorView view =
        ContiguousView<3>(band_values_.data(), dtype, {std::int64_t{1}, height, x_.side});
    PB_RETURN_IF_ERROR(array_.ReadRegion(region, view));
    channel_ = channel, band_ = band, row_ = -1;
    return absl::OkStatus();
  }

  TaskContext& context_;
  zarr::Array array_;
  std::int64_t bytes_;
  NearestPixel y_, x_;
  std::vector<std::int64_t> columns_;
  std::int64_t channel_ = -1, band_ = -1, row_ = -1;
  std::vector<std::byte> band_values_;
  std::vector<Sums> sums_;
};

}  // namespace

StatusOr<std::vector<std::optional<double>>> MeanProbabilities(
    TaskContext& context, const OpenedLabels& labels, const std::vector<TracedPolygon>& polygons) {
  std::vector<std::optional<double>> means(polygons.size());
  if (!labels.map || !Exists(context.allowed, labels.map->probabilities)) return means;
  PB_ASSIGN_OR_RETURN(ProbabilityRows rows, ProbabilityRows::Open(context, labels));
  std::vector<Sums> within(polygons.size());
  for (const Crossing& one : CrossingsOf(polygons, labels.map->first_class, rows.channels())) {
    PB_ASSIGN_OR_RETURN(const Sums* sums, rows.Row(one.channel, one.y));
    Sums& own = within[static_cast<std::size_t>(one.polygon)];
    const double sign = one.is_down ? 1 : -1;
    own.total += sign * sums[one.x].total;
    own.count += sign * sums[one.x].count;
  }
  for (std::size_t i = 0; i < polygons.size(); ++i) {
    if (within[i].count > 0) means[i] = within[i].total / within[i].count / kOne;
  }
  return means;
}

}  // namespace patchbay::workers
