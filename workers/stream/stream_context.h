// A stream as a worker needs it to make any of its shards: the plan, the compiled ops and where the
// images lie on this node.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/chain/chain.h"
#include "runtime/core/lru_cache.h"
#include "runtime/model/plan/plan.h"
#include "runtime/os/folders.h"
#include "runtime/wire/protocol/messages.h"
#include "workers/access/path_rights.h"
#include "workers/access/planned_images.h"
#include "workers/functions/function_policy.h"
#include "workers/stream/function_stages.h"  // wide: all that a worker knows of a stream
#include "workers/stream/image_cache.h"

namespace patchbay::workers {

/// Memory for the places that sampling draws from; larger means fewer indexes read again.
inline constexpr std::size_t kMaxPlacesBytes = std::size_t{64} << 20;
/// The most lookups kept, the least recently used one dropped first; slides of one scanner share
/// one. Each takes 0.8 MB.
inline constexpr std::size_t kMaxIccLookups = 32;

/// A worker's state of one stream. Immutable except for its caches of images; thread-safe; shared
/// by the shards in the making.
class StreamContext {
 public:
  /// InvalidArgument when plan, digest, geometry, capacity and manifest do not belong together.
  /// `ops` and `images` must outlive the context.
  static StatusOr<std::shared_ptr<StreamContext>> Build(const plan::OpTable& ops,
                                                        const protocol::StreamDescribed& described,
                                                        ImageCache& images);

  std::uint64_t stream() const { return stream_; }
  const plan::Plan& plan() const { return plan_; }
  const ops::Chain& chain() const { return chain_; }
  /// The user's own functions, and the parts of the chain around them.
  const FunctionStages& functions() const { return functions_; }
  /// The file of function `index`, where `policy` lets it run; InvalidArgument elsewhere.
  StatusOr<FunctionFile> FileOfFunction(const FunctionPolicy& policy, std::size_t index) const;
  const BatchLayout& layout() const { return plan_.layout(); }
  const StreamGeometry& geometry() const { return geometry_; }
  const std::vector<protocol::TrainerEndpoint>& trainers() const { return trainers_; }
  /// The endpoint of a rank; NotFound when it is not attached.
  StatusOr<const protocol::TrainerEndpoint*> TrainerOf(std::uint32_t rank) const;

  /// The patch at an ordinal. Reads the indexes of its image where sampling uses them; DataLoss
  /// when they differ from the plan's.
  StatusOr<plan::PatchSpec> Spec(std::uint32_t epoch, std::uint64_t ordinal);
  /// Image `index` of the plan, open. PermissionDenied outside the submitter's folders. DataLoss
  /// when the stamp shows that the file has changed since planning (see planned_images.h); checked
  /// whenever the image is opened. `after_file` is called after each file that is examined; its
  /// error ends the work.
  StatusOr<std::shared_ptr<const ImageSource>> Image(std::uint32_t index,
                                                     const AfterPiece& after_file = {});
  /// The lookup to sRGB that the plan names for image `index`; null without icc_to_srgb, and for an
  /// image that keeps its colours. DataLoss when this node computes another lookup for the image.
  StatusOr<std::shared_ptr<const ops::IccLookup>> ToSrgb(std::uint32_t index);
  /// Label sets whose images patches need read: those of the config, or none.
  std::size_t label_sets() const {
    const plan::LabelsConfig& labels = plan_.config().labels;
    const bool has_labels = labels.mask || labels.rule.has_value();
    return has_labels ? 1 + labels.further_sets.size() : 0;
  }
  bool has_labels() const { return label_sets() != 0; }
  /// The revision of label set `set` that the plan names for image `index`, open. NotFound when it
  /// was pruned, DataLoss when it is another.
  StatusOr<std::shared_ptr<const ImageSource>> Labels(std::uint32_t index, std::size_t set);
  /// Call after a read of image `index` was Aborted because its files changed while they were open.
  /// OK when the present content is proven to be the planned one, which for a slide needs a read of
  /// all of it. Otherwise DataLoss that describes the change; always for stores without a recorded
  /// digest.
  Status CheckContent(std::uint32_t index, const Status& aborted, const AfterPiece& after_block);
  /// Forgets the open image `index`, which could not be read or decoded: the file now under its
  /// name is opened when it is wanted next, since it may have been mended. Null: none.
  void Forget(std::uint32_t index, const ImageSource* image);
  /// The same of its label set `set`.
  void ForgetLabels(std::uint32_t index, std::size_t set, const ImageSource* labels);
  /// An error about image `index` as it may travel: by the image's number.
  Status WithImage(const Status& status, std::uint32_t index) const;

 private:
  StreamContext(plan::Plan plan, ops::Chain chain, ImageCache& images, PathRights rights)
      : plan_(std::move(plan)),
        chain_(std::move(chain)),
        images_(images),
        rights_(std::move(rights)),
        allowed_(AllowedFoldersOf(rights_)),
        set_names_(plan_.config().labels.Sets()) {}

  StatusOr<std::string> CheckedPath(std::uint32_t index);
  std::string ImageStamp(std::uint32_t index, const std::string& path) const;
  std::string LabelsPath(std::uint32_t index, std::size_t set, const std::string& store) const;
  /// A stamp for the cache of images that also names the folder of the key: streams of other keys
  /// do not get images opened below it, since its links may lead out of their own folders.
  std::string StampBelow(const std::string& path, const std::string& stamp) const;
  /// `opened`: the image that is to be read as it is now; null: none yet.
  Status CheckUnchanged(std::uint32_t index, const std::string& path, ImageSource* opened,
                        const AfterPiece& after_file) const;
  Status Changed(std::uint32_t index, std::string_view how) const;
  Status LabelsChanged(std::uint32_t index, const std::string& path, const Status& why) const;
  Status CheckAsPlanned(std::uint32_t index, const ImageLayout& layout) const;

  using SharedPlaces = std::shared_ptr<const plan::ImagePlaces>;
  StatusOr<SharedPlaces> Places(std::uint32_t index);

  std::uint64_t stream_ = 0;
  StreamGeometry geometry_;
  plan::Plan plan_;
  ops::Chain chain_;
  FunctionStages functions_;
  ImageCache& images_;
  const PathRights rights_;
  const Folders allowed_;  ///< folders of rights_, for every file opened
  const std::vector<std::string> set_names_;
  PlannedImages where_;
  std::vector<protocol::TrainerEndpoint> trainers_;
  std::mutex checked_mu_;
  std::vector<std::string> checked_paths_;  // guarded by checked_mu_; empty = not checked yet
  std::mutex places_mu_;
  LruCache<std::uint32_t, SharedPlaces> places_{kMaxPlacesBytes};  // guarded by places_mu_
  std::mutex lookups_mu_;
  LruCache<Digest, std::shared_ptr<const ops::IccLookup>> lookups_{
      kMaxIccLookups};  // guarded by lookups_mu_
};

}  // namespace patchbay::workers
