#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "ops/chain/device_chain.h"
#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/outcome.h"
#include "runtime/memory/gpu.h"
#include "workers/stream/gpu_lane.h"
#include "workers/stream/making_timer.h"
#include "workers/stream/patch_maker.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kLanes = 2;      ///< one is filled while the other is on the GPU
constexpr std::size_t kChainsMax = 4;  ///< streams whose tables stay on the GPU

/// A failure, and the way to smaller patches where the GPU has no room.
Status Explained(const Status& status) {
  if (!absl::IsResourceExhausted(status)) return status;
  return WithAdvice(status,
                    "a GPU worker has no room for such patches: make patch.size smaller, or set "
                    "numerics: cpu");
}

class GpuPatchMaker final : public PatchMaker {
 public:
  explicit GpuPatchMaker(PatchEnded ended) : ended_(std::move(ended)) {}
  ~GpuPatchMaker() override { Flush(); }

  Status Open(const std::string& gpu_uuid, std::size_t lane_bytes) {
    PB_ASSIGN_OR_RETURN(const int index, memory::GpuIndexOf(gpu_uuid));
    PB_RETURN_IF_ERROR(memory::SelectGpu(index));
    for (GpuLane& lane : lanes_) PB_RETURN_IF_ERROR(lane.Open(lane_bytes));
    PB_ASSIGN_OR_RETURN(last_made_, memory::GpuEvent::CreateTimed());
    return absl::OkStatus();
  }

  std::size_t patches_at_once() const override { return kLanePatchesMax; }

  void Make(std::span<std::unique_ptr<FetchedPatch>> patches) override {
    while (!patches.empty()) patches = patches.subspan(MakeSome(patches));
  }

  void Flush() override {
    for (std::size_t i = 0; i < kLanes; ++i) Retire(lanes_[(next_ + i) % kLanes]);
  }

 private:
  /// Makes the first patches, as many as are of one stream and fit a lane; returns their number.
  std::size_t MakeSome(std::span<std::unique_ptr<FetchedPatch>> patches) {
    GpuLane& lane = lanes_[next_];
    if (has_room_for_all_) next_ = (next_ + 1) % kLanes;
    Retire(lane);
    const StreamContext& context = patches.front()->work->context();
    const StatusOr<const ops::DeviceChain*> chain = ChainOf(context);
    const auto other = [&context](const auto& patch) {
      return &patch->work->context() != &context;
    };
    const auto end = std::find_if(patches.begin(), patches.end(), other);
    const std::span of_stream(patches.begin(), end);
    StatusOr<std::size_t> taken = chain.ok() ? lane.Begin(of_stream) : chain.status();
    if (chain.ok() && FreesOthers(lane, taken.status())) taken = lane.Begin(of_stream);
    if (!taken.ok()) {
      ended_(std::move(patches.front()), Explained(taken.status()));
      return 1;
    }
    for (std::unique_ptr<FetchedPatch>& patch : patches.first(*taken)) {
      StageOne(lane, std::move(patch));
    }
    const std::int64_t begun_ns = SteadyNowNs();
    Status launched = lane.Launch(**chain);
    if (FreesOthers(lane, launched)) launched = lane.Launch(**chain);
    lane.Charge(SteadyNowNs() - begun_ns);
    if (!launched.ok()) End(lane, Explained(launched));
    return *taken;
  }

  /// Where the GPU has no room for all lanes, one is enough: whether others gave theirs back to
  /// `lane`, which from then on is the only one.
  bool FreesOthers(GpuLane& lane, const Status& failure) {
    if (!absl::IsResourceExhausted(failure) || !has_room_for_all_) return false;
    LogWarning(StrCat(MessageOf(failure),
                      ": the GPU has room for one lane of patches: from here on copies do not "
                      "overlap kernels"));
    has_room_for_all_ = false;
    (void)lane.WaitForAllSync();  // work that was queued before the failure
    for (GpuLane& other : lanes_) {
      if (&other == &lane) continue;
      Retire(other);
      other.Free();
    }
    next_ = static_cast<std::size_t>(&lane - lanes_.data());
    return true;
  }

  void StageOne(GpuLane& lane, std::unique_ptr<FetchedPatch> patch) {
    const bool wanted = patch->work->Wanted();
    const MakingTimer timer(decoder_, patch->work->spent);
    const Status staged = wanted ? lane.Stage(*patch, decoder_, labels_) : absl::OkStatus();
    timer.Stop();
    if (wanted && staged.ok()) {
      lane.Add(std::move(patch));
    } else {
      ended_(std::move(patch), staged);
    }
  }

  void Retire(GpuLane& lane) {
    if (lane.empty()) return;
    const std::int64_t begun_ns = SteadyNowNs();
    const Status done = lane.WaitSync();
    lane.Charge(SteadyNowNs() - begun_ns);
    if (done.ok()) lane.ChargeGpu(last_made_);
    for (auto& patch : lane.Take()) ended_(std::move(patch), done);
  }

  /// Waits first: copies and kernels queued before the failure may still read the lane.
  void End(GpuLane& lane, const Status& failure) {
    (void)lane.WaitForAllSync();
    for (auto& patch : lane.Take()) ended_(std::move(patch), failure);
  }

  /// The tables of the stream's plan on this GPU; equal plans share them.
  StatusOr<const ops::DeviceChain*> ChainOf(const StreamContext& context) {
    for (const auto& [digest, chain] : chains_) {
      if (digest == context.plan().digest()) return chain.get();
    }
    const memory::GpuStream stream = lanes_.front().stream();
    PB_ASSIGN_OR_RETURN(ops::DeviceChain chain, ops::DeviceChain::Create(context.chain(), stream));
    if (chains_.size() >= kChainsMax) {
      Flush();
      chains_.erase(chains_.begin());
    }
    // Other lanes use it too.
    PB_RETURN_IF_ERROR(lanes_.front().WaitForAllSync());
    chains_.emplace_back(context.plan().digest(),
                         std::make_unique<const ops::DeviceChain>(std::move(chain)));
    return chains_.back().second.get();
  }

  const PatchEnded ended_;
  TileDecoder decoder_;
  LabelArrays labels_;
  std::vector<std::pair<Digest, std::unique_ptr<const ops::DeviceChain>>> chains_;
  std::array<GpuLane, kLanes> lanes_;
  memory::GpuEvent last_made_;  ///< the end of the work that was retired last
  std::size_t next_ = 0;
  bool has_room_for_all_ = true;  ///< false: lanes_[next_] alone is used
};

}  // namespace

StatusOr<std::unique_ptr<PatchMaker>> MakeGpuPatchMaker(const std::string& gpu_uuid,
                                                        PatchEnded ended, std::size_t lane_bytes) {
  auto maker = std::make_unique<GpuPatchMaker>(std::move(ended));
  PB_RETURN_IF_ERROR(maker->Open(gpu_uuid, lane_bytes));
  return std::unique_ptr<PatchMaker>(std::move(maker));
}

}  // namespace patchbay::workers
