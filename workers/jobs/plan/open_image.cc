#include "workers/jobs/plan/open_image.h"

#include <memory>
#include <utility>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/format/zarr/store_root.h"
#include "workers/access/stamps.h"
#include "workers/jobs/task/image_digest.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/dicom_slide.h"
#include "workers/sources/zarr_source.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kStoreKind = "zarr";  ///< ImageLayout::kind

/// Refuses a store that records another part of its slide than the row chooses. A row that chooses
/// nothing takes any store.
Status CheckPart(const Json& own, const SlideChoice& wanted) {
  if (!wanted.IsMade()) return absl::OkStatus();
  constexpr const char* kMade = "codec_plan";  // the settings of its ingest
  const auto part =
      FromJson<SlideChoice>(own.value(kMade, Json::object()), kMade, UnknownKeys::kSkipped)
          .value_or(SlideChoice{});
  if (part.IsSameAs(wanted)) return absl::OkStatus();
  return InvalidArgument("columns '", kFocalPlaneColumn, "' and '", kOpticalPathColumn, "' choose ",
                         wanted.ToString(), ", and its store was made of ",
                         part.IsMade() ? part.ToString() : std::string("the whole slide"),
                         ": ingest the row into another folder, or take it without its store");
}

StatusOr<OpenedImage> OpenImageForPlan(TaskContext& context, const std::string& listed,
                                       const SlideChoice& choice) {
  OpenedImage opened;
  PB_ASSIGN_OR_RETURN(const std::string path, context.MayRead(listed));
  const StatusOr<SeenFiles> seen = LookAtFiles(context.allowed, path, ProgressOf(context));
  if (!zarr::IsStore(context.allowed, path)) opened.choice = choice;
  PB_ASSIGN_OR_RETURN(const std::unique_ptr<ImageSource> image,
                      seen.ok() && seen->root
                          ? OpenZarrImage(context.allowed, path, *seen->root)
                          : OpenChosenSlide(context.allowed, path, opened.choice));
  PB_RETURN_IF_ERROR(seen.status());
  opened.stamp = seen->stamp;
  opened.own = seen->root ? zarr::OwnAttributes(*seen->root) : Json::object();
  opened.layout = image->layout();
  if (opened.layout.kind == kStoreKind) PB_RETURN_IF_ERROR(CheckPart(opened.own, choice));
  if (const auto recorded = DigestIn(opened.own)) {
    opened.digest = *recorded;
    return opened;
  }
  PB_ASSIGN_OR_RETURN(opened.digest, ImageDigest(context, path));
  return opened;
}

StatusOr<OpenedImage> OpenRowForPlan(TaskContext& context, const ImageList& list,
                                     const plan::PlannedRow& row, const std::string& listed,
                                     std::size_t number) {
  const std::string& content = row.content;
  StatusOr<OpenedImage> opened = OpenImageForPlan(context, listed, row.choice);
  if (absl::IsNotFound(opened.status()) && list.has_stores) {
    return WithAdvice(opened.status(), content.empty()
                                           ? "the table has no content_hash that tells its store "
                                             "(`patchbay scan --hash` makes one that has)"
                                           : "no store has the row's content_hash either");
  }
  if (!opened.ok()) return opened;
  if (opened->layout.kind == kStoreKind) {
    const Json source = opened->own.value("source_sha256", Json());
    const std::string made_from = source.is_string() ? source.get<std::string>() : "";
    if (content.empty() || made_from.substr(0, plan::kContentDigits) == content) return opened;
    return InvalidArgument("the store was made from other content than the row's content_hash");
  }
  const std::string found = opened->digest.Hex().substr(0, plan::kContentDigits);
  if (!content.empty() && found != content) {
    return InvalidArgument("its content (SHA-256 ", opened->digest.Hex().substr(0, 12),
                           "...) differs from the row's content_hash: it was changed or replaced "
                           "since; correct the table");
  }
  const auto store = list.stores.find(found);
  if (store == list.stores.end()) return opened;
  context.subjects.Add(store->second, {SubjectKind::kImage, number, ""});
  opened = OpenImageForPlan(context, store->second, row.choice);
  if (opened.ok()) opened->path = store->second;
  return opened;
}

}  // namespace

StatusOr<OpenedImage> OpenForPlan(TaskContext& context, const ImageList& list,
                                  const plan::PlannedRow* row, const std::string& listed,
                                  std::size_t number) {
  if (row == nullptr) return OpenImageForPlan(context, listed, {});
  return OpenRowForPlan(context, list, *row, listed, number);
}

}  // namespace patchbay::workers
