// A stream as a worker needs it to make any of its shards: the plan, the compiled ops and where the
// images lie on this node.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ops/chain/chain.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan.h"
#include "runtime/protocol/messages.h"
#include "workers/access/path_rights.h"
#include "workers/access/planned_images.h"
#include "workers/stream/image_cache.h"

namespace patchbay::workers {

/// Everything a worker keeps of one stream. Immutable but for what it remembers about its images;
/// thread-safe; shared by the shards that are being made.
class StreamContext {
 public:
  /// InvalidArgument when plan, digest, geometry, capacity and manifest do not belong together.
  /// `images` must outlive the context.
  static StatusOr<std::shared_ptr<StreamContext>> Build(const protocol::StreamDescribed& described,
                                                        ImageCache& images);

  std::uint64_t stream() const { return stream_; }
  const plan::Plan& plan() const { return plan_; }
  const ops::Chain& chain() const { return chain_; }
  const BatchLayout& layout() const { return plan_.layout(); }
  const StreamGeometry& geometry() const { return geometry_; }
  const std::vector<protocol::TrainerEndpoint>& trainers() const { return trainers_; }
  /// The endpoint of a rank; NotFound when it is not attached.
  StatusOr<const protocol::TrainerEndpoint*> TrainerOf(std::uint32_t rank) const;

  /// Image `index` of the plan, open. PermissionDenied outside the submitter's folders, DataLoss
  /// when what lies there changed since it was planned, as far as its stamp shows (see
  /// planned_images.h); looked at whenever the image is opened.
  StatusOr<std::shared_ptr<const ImageSource>> Image(std::uint32_t index);
  bool has_labels() const { return !plan_.config().labels.set.empty(); }
  /// The revision of the label set that the plan names for image `index`, open. NotFound when it
  /// was pruned, DataLoss when it is another.
  StatusOr<std::shared_ptr<const ImageSource>> Labels(std::uint32_t index);
  /// An error about image `index` as it may travel: the image's path becomes "image N".
  Status WithoutPath(const Status& status, std::uint32_t index) const;

 private:
  StreamContext(plan::Plan plan, ops::Chain chain, ImageCache& images)
      : plan_(std::move(plan)), chain_(std::move(chain)), images_(images) {}

  StatusOr<std::string> CheckedPath(std::uint32_t index);
  Status CheckUnchanged(std::uint32_t index, const std::string& path) const;
  Status CheckAsPlanned(std::uint32_t index, const ImageLayout& layout) const;

  std::uint64_t stream_ = 0;
  StreamGeometry geometry_;
  plan::Plan plan_;
  ops::Chain chain_;
  ImageCache& images_;
  PathRights rights_;
  PlannedImages where_;
  std::vector<protocol::TrainerEndpoint> trainers_;
  std::mutex checked_mu_;
  std::vector<std::string> checked_paths_;  // guarded by checked_mu_; empty = not checked yet
};

}  // namespace patchbay::workers
