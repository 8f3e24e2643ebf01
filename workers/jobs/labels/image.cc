#include "workers/jobs/labels/image.h"

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/json.h"
#include "runtime/format/zarr/opened_store.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/model/source/channel_names.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {
namespace {

Status RefuseStore(const std::string& store, std::string_view cause) {
  return ErrorAbout(absl::StatusCode::kInvalidArgument, "import labels", store, cause);
}

/// attributes.patchbay of the root, an object.
Json PatchbayOf(const zarr::OpenedStore& opened) {
  const Json& root = opened.documents.at("zarr.json");
  const Json attributes = root.value("attributes", Json::object());
  Json patchbay = attributes.is_object() ? attributes.value("patchbay", Json()) : Json();
  return patchbay.is_object() ? patchbay : Json::object();
}

/// The slide's size in its own pixels.
Status FindSourceSize(const Json& patchbay, LabelledImage& image) {
  image.source = image.levels[0];
  const Json size = patchbay.value("source_size", Json());
  if (size.is_array() && size.size() == 2 && size[0].is_number_integer() &&
      size[1].is_number_integer()) {
    image.source = Flat(size[0].get<std::int64_t>(), size[1].get<std::int64_t>());
    if (!image.source.Covers(image.levels[0])) {
      return RefuseStore(image.store, "source_size is wrong");
    }
    return absl::OkStatus();
  }
  const Json plan = patchbay.value("codec_plan", Json());
  const bool may_differ = plan.is_object() && !plan.value("mpp", Json()).is_null();
  if (!may_differ) return absl::OkStatus();
  return RefuseStore(
      image.store,
      "made with --mpp by an earlier version, which did not record the slide's size: "
      "ingest the slide again");
}

/// The scanned area of the slide; `image.source` is known.
Status FindBounds(const Json& patchbay, LabelledImage& image) {
  image.bounds = WholeOf(image.source);
  const Json area = patchbay.value("source_bounds", Json());
  if (area.is_null()) return absl::OkStatus();
  const bool is_box = area.is_array() && area.size() == 4 &&
                      std::all_of(area.begin(), area.end(),
                                  [](const Json& one) { return one.is_number_unsigned(); });
  if (!is_box) return RefuseStore(image.store, "source_bounds is wrong");
  std::array<std::int64_t, 4> found{};  // y, x, height, width
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto value = area[i].get<std::uint64_t>();
    const auto side = static_cast<std::uint64_t>(i % 2 == 0 ? image.source.y : image.source.x);
    if (value > side) return RefuseStore(image.store, "source_bounds is wrong");
    found[i] = static_cast<std::int64_t>(value);
  }
  const Box bounds = Box2D(found[0], found[1], found[2], found[3]);
  if (bounds.Empty() || !image.bounds.Contains(bounds)) {
    return RefuseStore(image.store, "source_bounds is wrong");
  }
  image.bounds = bounds;
  return absl::OkStatus();
}

/// Where the volume lies; its labels have its levels, which are halved one after another.
Status FindPlace(const Json& patchbay, LabelledImage& image) {
  const auto affine = AffineFromLpsJson(patchbay.value("affine_lps", Json()));
  if (!affine.ok()) {
    return RefuseStore(image.store,
                       "it does not say where its voxels lie: ingest the volume again");
  }
  image.affine = *affine;
  image.transform_log = patchbay.value("transform_log", Json::array());
  // The grid is that of the first of several channels.
  const Json channels = patchbay.value(kChannelsKey, Json());
  const bool has_channels = channels.is_array() && !channels.empty() && channels[0].is_object();
  const Json& source = has_channels ? channels[0] : patchbay;
  for (const auto& [key, text] :
       {std::pair{"source_kind", &image.source_kind}, {"source_sha256", &image.source_sha256}}) {
    const Json value = source.value(key, Json());
    if (value.is_string()) *text = value.get<std::string>();
  }
  const Json identity = patchbay.value("identity", Json());
  if (identity.is_object()) {
    const Json frame = identity.value("frame_of_reference", Json());
    for (const Json& one : frame.is_array() ? frame : Json::array({frame})) {
      if (one.is_string()) image.frames_of_reference.push_back(one.get<std::string>());
    }
  }
  for (std::size_t i = 1; i < image.levels.size(); ++i) {
    if (image.levels[i] == HalfOf(image.levels[i - 1])) continue;
    return RefuseStore(image.store, StrCat("level ", i, " is not half of the one before"));
  }
  return absl::OkStatus();
}

}  // namespace

Status CheckFlat(const LabelledImage& image, std::string_view doing) {
  if (!image.is_volume) return absl::OkStatus();
  return ErrorAbout(absl::StatusCode::kInvalidArgument, doing, image.store,
                    "a volume: this is for slides");
}

StatusOr<LabelledImage> OpenLabelledImage(const Folders& allowed, const std::string& store) {
  if (!zarr::IsStore(allowed, store)) {
    return RefuseStore(store,
                       "not a store: name a store in it, or a table of slides with --stores; "
                       "`patchbay ingest` makes stores from slides");
  }
  const auto opened = zarr::OpenStore(allowed, store);
  if (!opened.ok()) {
    return About(WithCode(opened.status(), absl::StatusCode::kInvalidArgument), "import labels",
                 store);
  }
  if (!opened->recorded) return RefuseStore(store, "not a store of `patchbay ingest`");
  PB_ASSIGN_OR_RETURN(const auto source, OpenImage(allowed, store));
  LabelledImage image;
  image.store = store;
  image.pixel_digest = opened->recorded->pixels.Hex();
  for (const LevelLayout& level : source->layout().levels) {
    image.levels.push_back(level.size);
  }
  image.spacing = source->layout().spacing;
  image.is_volume = opened->settings.IsVolume();
  if (image.is_volume) {
    image.source = image.levels[0];
    PB_RETURN_IF_ERROR(FindPlace(PatchbayOf(*opened), image));
    return image;
  }
  PB_RETURN_IF_ERROR(FindSourceSize(PatchbayOf(*opened), image));
  PB_RETURN_IF_ERROR(FindBounds(PatchbayOf(*opened), image));
  return image;
}

}  // namespace patchbay::workers
