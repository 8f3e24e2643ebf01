#include "workers/jobs/labels/image.h"

#include "runtime/base/json.h"
#include "runtime/base/strings.h"
#include "runtime/zarr/opened_store.h"
#include "workers/jobs/task/find_images.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {
namespace {

Status Refuse(const std::string& store, std::string_view cause) {
  return absl::InvalidArgumentError(StrCat("import labels: ", store, ": ", cause));
}

/// attributes.patchbay of the root, an object.
Json PatchbayOf(const zarr::OpenedStore& opened) {
  const Json& root = opened.documents.at("zarr.json");
  const Json attributes = root.value("attributes", Json::object());
  Json patchbay = attributes.is_object() ? attributes.value("patchbay", Json()) : Json();
  return patchbay.is_object() ? patchbay : Json::object();
}

/// The slide's size in its own pixels.
Status FindSource(const Json& patchbay, LabelledImage& image) {
  image.source = image.levels[0];
  const Json size = patchbay.value("source_size", Json());
  if (size.is_array() && size.size() == 2 && size[0].is_number_integer() &&
      size[1].is_number_integer()) {
    image.source = Flat(size[0].get<std::int64_t>(), size[1].get<std::int64_t>());
    if (!image.source.Covers(image.levels[0])) return Refuse(image.store, "source_size is wrong");
    return absl::OkStatus();
  }
  const Json plan = patchbay.value("codec_plan", Json());
  const bool may_differ = plan.is_object() && !plan.value("mpp", Json()).is_null();
  if (!may_differ) return absl::OkStatus();
  return Refuse(image.store,
                "made with --mpp by an earlier version, which did not record the slide's size: "
                "ingest the slide again");
}

}  // namespace

StatusOr<LabelledImage> OpenLabelledImage(const std::string& store) {
  if (!IsStore(store)) {
    return Refuse(store, "not a store: `patchbay ingest` makes one from a slide");
  }
  const auto opened = zarr::OpenStore(store);
  if (!opened.ok()) return Refuse(store, MessageOf(opened.status()));
  if (!opened->recorded) return Refuse(store, "not a store of `patchbay ingest`");
  PB_ASSIGN_OR_RETURN(const auto source, OpenImage(store));
  LabelledImage image;
  image.store = store;
  image.pixel_digest = opened->recorded->pixels.Hex();
  for (const LevelLayout& level : source->layout().levels) {
    if (level.size.z != 1) return Refuse(store, "a volume: annotations are of flat images");
    image.levels.push_back(level.size);
  }
  image.spacing = source->layout().spacing;
  PB_RETURN_IF_ERROR(FindSource(PatchbayOf(*opened), image));
  return image;
}

}  // namespace patchbay::workers
