#include "runtime/format/zarr/inspect.h"

#include "runtime/core/spacing.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/format/zarr/codec/tile_codec.h"
#include "runtime/format/zarr/downsample.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/format/zarr/metadata.h"
#include "runtime/format/zarr/ngff.h"
#include "runtime/os/folder_listing.h"

namespace patchbay::zarr {
namespace {

/// A member of attributes.patchbay, where it is there and of that type.
template <typename T>
std::optional<T> Said(const Json& own, const char* key) {
  return FromJson<std::optional<T>>(own.value(key, Json()), key).value_or(std::nullopt);
}

void LeaveOutCounts(Json& channels) {
  if (!channels.is_array()) return;
  for (Json& channel : channels) {
    if (!channel.is_object()) continue;
    for (const char* key : {"value_histogram", "value_statistics", "body_histogram"}) {
      channel.erase(key);
    }
  }
}

std::optional<std::size_t> AxisNamed(const Multiscales& multiscales, std::string_view name) {
  for (std::size_t i = 0; i < multiscales.axes.size(); ++i) {
    if (multiscales.axes[i].name == name) return i;
  }
  return std::nullopt;
}

/// Value and unit along an axis, or nothing.
std::optional<AxisSpacing> SpacingAlong(const Multiscales& multiscales, const char* name) {
  const auto axis = AxisNamed(multiscales, name);
  const auto unit = axis ? LengthUnitFromName(multiscales.axes[*axis].unit) : std::nullopt;
  if (!unit) return std::nullopt;
  return AxisSpacing{multiscales.levels.front().scale[*axis], *unit};
}

/// Axes of level 0 among z, y and x.
std::vector<AxisReport> SpacingOf(const Multiscales& multiscales) {
  std::vector<AxisReport> out;
  for (const char* name : {"z", "y", "x"}) {
    if (!AxisNamed(multiscales, name)) continue;
    AxisReport& axis = out.emplace_back(AxisReport{name, {}, {}});
    const auto along = SpacingAlong(multiscales, name);
    if (along) axis = {name, along->value, std::string(NameOf(along->unit))};
  }
  return out;
}

double DownsampleOf(const Multiscales& multiscales, const NgffLevel& level,
                    const std::vector<std::int64_t>& finest,
                    const std::vector<std::int64_t>& shape) {
  const std::vector<double>& first = multiscales.levels.front().scale;
  double sum = 0;
  int axes = 0;
  for (const char* name : {"y", "x"}) {
    const auto axis = AxisNamed(multiscales, name);
    if (!axis || *axis >= shape.size() || *axis >= finest.size() || shape[*axis] == 0) continue;
    sum += DownsampleAlong(finest[*axis], shape[*axis], level.scale[*axis] / first[*axis]);
    ++axes;
  }
  return axes == 0 ? 1.0 : sum / axes;
}

std::uint64_t BytesOnDisk(const Folders& allowed, const std::string& store) {
  std::uint64_t total = 0;
  const auto add = [&](const FolderEntry& entry) -> StatusOr<bool> {
    if (entry.is_file()) total += static_cast<std::uint64_t>(entry.st.st_size);
    return true;
  };
  WalkTree(allowed, store, Links::kOfFiles, add).IgnoreError();
  return total;
}

/// The labels of omero, where every channel has one.
std::vector<std::string> ChannelsOf(const Json& attributes) {
  const Json ome = attributes.value("ome", attributes);
  const Json omero = ome.is_object() ? ome.value("omero", Json()) : Json();
  const Json channels = omero.is_object() ? omero.value("channels", Json()) : Json();
  std::vector<std::string> names;
  for (const Json& channel : channels.is_array() ? channels : Json::array()) {
    const Json label = channel.is_object() ? channel.value("label", Json()) : Json();
    if (!label.is_string()) return {};
    names.push_back(label.get<std::string>());
  }
  return names;
}

}  // namespace

StatusOr<ImageReport> InspectStore(const Folders& allowed, const std::string& store) {
  PB_ASSIGN_OR_RETURN(const GroupMetadata group, ReadGroupMetadata(allowed, store));
  PB_ASSIGN_OR_RETURN(const Multiscales multiscales, ParseMultiscales(group.attributes, store));
  const Json said = group.attributes.value("patchbay", Json());
  const Json own = said.is_object() ? said : Json::object();
  ImageReport report;
  PB_RETURN_IF_ERROR(
      ReadJson(own, JsonPlace(store, UnknownKeys::kSkipped), static_cast<RecordedFacts&>(report)));
  if (report.icc_to_srgb.is_object()) report.icc_to_srgb.erase("values");
  LeaveOutCounts(report.channels);
  report.digest = Said<std::string>(own, "digest");
  report.pixel_digest = Said<std::string>(own, "pixel_digest");
  report.source = {Said<std::string>(own, "source_kind"), Said<std::uint64_t>(own, "source_bytes")};
  report.stored_bytes = BytesOnDisk(allowed, store);
  report.channel_names = ChannelsOf(group.attributes);
  report.objective_power = Said<double>(own, "objective_power");
  if (const auto sets = ReadLabelSets(allowed, store); sets.ok()) {
    for (const LabelSet& set : *sets) report.label_sets.push_back(set.name);
  }
  for (const NgffLevel& level : multiscales.levels) {
    PB_ASSIGN_OR_RETURN(const ArrayMetadata array,
                        ReadArrayMetadata(allowed, store + "/" + level.path));
    if (report.levels.empty()) report.dtype = NameOf(array.dtype);
    if (array.chain.tile) report.codec = NameOf(array.chain.tile->codec);
    LevelReport& row = report.levels.emplace_back(LevelReport{array.shape, array.chunk_shape});
    row.downsample = DownsampleOf(multiscales, level, report.levels[0].shape, row.shape);
  }
  for (const NgffAxis& axis : multiscales.axes) report.axes.push_back(axis.name);
  report.spacing = SpacingOf(multiscales);
  const auto y = SpacingAlong(multiscales, "y"), x = SpacingAlong(multiscales, "x");
  if (y && x) report.mpp = {y->Micrometres(), x->Micrometres()};
  return report;
}

}  // namespace patchbay::zarr
