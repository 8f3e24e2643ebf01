// The report of `patchbay inspect` on a store: metadata and file sizes, no pixels.
#include <optional>

#include "runtime/core/spacing.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/downsample.h"
#include "runtime/format/zarr/metadata.h"
#include "runtime/format/zarr/ngff.h"
#include "runtime/format/zarr/verify.h"
#include "runtime/os/folder_listing.h"

namespace patchbay::zarr {
namespace {

/// A member of attributes.patchbay, or null.
Json Said(const Json& attributes, const char* key) {
  const auto patchbay = attributes.find("patchbay");
  if (patchbay == attributes.end() || !patchbay->is_object()) return nullptr;
  const auto found = patchbay->find(key);
  return found == patchbay->end() ? Json(nullptr) : *found;
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

/// Micrometres per pixel of level 0 along y and x, or null.
Json MppOf(const Multiscales& multiscales) {
  const auto y = SpacingAlong(multiscales, "y"), x = SpacingAlong(multiscales, "x");
  if (!y || !x) return nullptr;
  return {y->Micrometres(), x->Micrometres()};
}

/// [{axis, value, unit}] of level 0; value and unit are null where the store gives no length.
Json SpacingJson(const Multiscales& multiscales) {
  Json out = Json::array();
  for (const char* name : {"z", "y", "x"}) {
    if (!AxisNamed(multiscales, name)) continue;
    const auto along = SpacingAlong(multiscales, name);
    out.push_back({{"axis", name},
                   {"value", along ? Json(along->value) : Json(nullptr)},
                   {"unit", along ? Json(NameOf(along->unit)) : Json(nullptr)}});
  }
  return out;
}

Json AxisNames(const Multiscales& multiscales) {
  Json names = Json::array();
  for (const NgffAxis& axis : multiscales.axes) names.push_back(axis.name);
  return names;
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

}  // namespace

StatusOr<Json> InspectStore(const Folders& allowed, const std::string& store) {
  PB_ASSIGN_OR_RETURN(const GroupMetadata group, ReadGroupMetadata(allowed, store));
  PB_ASSIGN_OR_RETURN(const Multiscales multiscales, ParseMultiscales(group.attributes, store));
  Json levels = Json::array();
  std::vector<std::int64_t> finest;
  Json dtype = nullptr;
  for (const NgffLevel& level : multiscales.levels) {
    PB_ASSIGN_OR_RETURN(const ArrayMetadata array,
                        ReadArrayMetadata(allowed, store + "/" + level.path));
    if (finest.empty()) {
      finest = array.shape;
      dtype = NameOf(array.dtype);
    }
    levels.push_back({{"shape", array.shape},
                      {"chunk", array.chunk_shape},
                      {"downsample", DownsampleOf(multiscales, level, finest, array.shape)}});
  }
  Json row = {{"digest", Said(group.attributes, "digest")},
              {"pixel_digest", Said(group.attributes, "pixel_digest")},
              {"source",
               {{"kind", Said(group.attributes, "source_kind")},
                {"bytes", Said(group.attributes, "source_bytes")}}},
              {"stored_bytes", BytesOnDisk(allowed, store)},
              {"axes", AxisNames(multiscales)},
              {"dtype", dtype},
              {"levels", levels},
              {"spacing", SpacingJson(multiscales)},
              {"mpp", MppOf(multiscales)}};
  for (const char* key :
       {"mpp_assumed", "affine_lps", "affine_ras", "orientation", "acquisition", "value_range",
        "slice_table", "stain", "stain_srgb", "icc_to_srgb", "transform_log", "warnings"}) {
    Json said = Said(group.attributes, key);
    if (said.is_object()) said.erase("values");  // a lookup: its digest identifies the values
    if (!said.is_null()) row[key] = said;
  }
  return row;
}

}  // namespace patchbay::zarr
