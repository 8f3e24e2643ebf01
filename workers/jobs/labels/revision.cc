#include "workers/jobs/labels/revision.h"

#include <algorithm>

#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/format/zarr/publish.h"

namespace patchbay::workers {
namespace {

/// Version of the painting rules: raise it when the same annotations would give other pixels.
constexpr int kLabelRule = 1;

/// Whether the table has values of masks that are that site's.
bool MeansBySite(const plan::ClassTable& table, const std::string& site) {
  const auto has_site = [&](const plan::LabelClass& one) { return one.from.contains(site); };
  return !site.empty() && std::any_of(table.classes.begin(), table.classes.end(), has_site);
}

}  // namespace

zarr::ImageStoreSpec RevisionSpec(const LabelsRequest& request, const ImportRow& row,
                                  const std::array<std::uint64_t, 256>& pixels) {
  zarr::ImageStoreSpec spec;
  spec.levels = row.image.levels;
  spec.spacing = row.image.spacing;
  Json counts = Json::object(), properties = Json::array();
  for (const plan::LabelClass& one : request.classes.classes) {
    if (one.value == plan::kIgnoreClass) continue;
    counts[one.name] = pixels[static_cast<std::size_t>(one.value)];
    properties.push_back({{"label-value", one.value}, {"class", one.name}});
  }
  Json labels = {{"set", request.set},
                 {"classes", JsonOf(request.classes)},
                 {"rule", kLabelRule},
                 {"image_pixel_digest", row.image.pixel_digest},
                 {"pixels", std::move(counts)}};
  if (MeansBySite(request.classes, row.site)) labels["site"] = row.site;
  spec.attributes["labels"] = std::move(labels);
  spec.image_label = {{"properties", properties}, {"source", {{"image", "../../"}}}};
  return spec;
}

StatusOr<bool> PublishRevision(TaskContext& context, const LabelsFolder& folder,
                               const LabelsRequest& request, const ImportRow& row,
                               const Digest& digest) {
  const std::string revision = zarr::RevisionName(request.set, digest);
  PB_RETURN_IF_ERROR(ShareFiles(context.allowed, folder.Staging(), context.sharing));
  const Status published =
      zarr::PublishStore(context.allowed, folder.Staging(), folder.Of(revision),
                         [&context] { context.AddProgress(); });
  const bool was_there = absl::IsAlreadyExists(published);
  if (was_there) {
    PB_RETURN_IF_ERROR(
        zarr::OpenLabelRevision(context.allowed, row.image.store, request.set, digest).status());
  } else {
    PB_RETURN_IF_ERROR(published);
  }
  PB_RETURN_IF_ERROR(zarr::MakeCurrent(context.allowed, row.image.store, {request.set, revision}));
  return was_there;
}

}  // namespace patchbay::workers
