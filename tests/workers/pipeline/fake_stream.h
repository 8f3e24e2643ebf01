// A stream without files or trainers: images that are formulas, windows that are vectors.
#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "runtime/core/hash.h"
#include "runtime/format/json/described.h"
#include "runtime/model/plan/planned_manifest.h"
#include "runtime/os/folders.h"
#include "tests/contract/known_ops.h"
#include "workers/access/stamps.h"
#include "workers/stream/image_cache.h"
#include "workers/stream/pipeline.h"
#include "workers/stream/shard_work.h"
#include "workers/stream/stream_context.h"

namespace patchbay::workers {

inline constexpr std::int64_t kFakeHeight = 64, kFakeWidth = 96;
inline constexpr std::int64_t kPatchSide = 16;
inline constexpr std::uint32_t kBatch = 12;
inline constexpr std::uint32_t kUnevenBatch = 10;  ///< does not divide an epoch

/// Callbacks of a test in the stages of a stream; the defaults do nothing.
struct FakeHooks {
  std::function<Status(const Box&)> on_fetch = [](const Box&) { return absl::OkStatus(); };
  std::function<Status(const Box&)> on_decode = [](const Box&) { return absl::OkStatus(); };
  int pieces = 1;                 ///< reads of each patch
  std::size_t encoded_bytes = 0;  ///< size of each patch on storage
};

inline std::uint8_t FakePixel(std::int64_t y, std::int64_t x, int c) {
  return static_cast<std::uint8_t>((y * 31 + x * 7 + c * 101) & 0xff);
}

class FakeImage final : public ImageSource {
 public:
  explicit FakeImage(const FakeHooks& hooks) : hooks_(hooks) {
    layout_.kind = "fake";
    layout_.levels.push_back(
        {.size = Flat(kFakeHeight, kFakeWidth), .chunk = Flat(kPatchSide, kPatchSide)});
  }
  const ImageLayout& layout() const override { return layout_; }
  std::unique_ptr<DecodeScratch> MakeScratch() const override {
    return std::make_unique<DecodeScratch>();
  }
  Status Fetch(int level, const Box& box, EncodedPatch& out) const override {
    out.level = level;
    out.box = box;
    out.bytes.resize(hooks_.encoded_bytes);
    for (int i = 0; i < hooks_.pieces; ++i) {
      PB_RETURN_IF_ERROR(hooks_.on_fetch(box));
      PB_RETURN_IF_ERROR(out.after_piece());
    }
    return absl::OkStatus();
  }
  Status Decode(const EncodedPatch& patch, const TensorView& view, double fill,
                DecodeScratch&) const override {
    const TensorView out = view.rank == 4 ? SliceOf(view, 0) : view;
    for (std::int64_t y = 0; y < patch.box.height; ++y) {
      for (std::int64_t x = 0; x < patch.box.width; ++x) {
        const std::int64_t py = patch.box.y + y, px = patch.box.x + x;
        const bool inside = py < kFakeHeight && px < kFakeWidth;
        for (int c = 0; c < 3; ++c) {
          out.data[y * out.stride_bytes[0] + x * out.stride_bytes[1] + c * out.stride_bytes[2]] =
              static_cast<std::byte>(inside ? FakePixel(py, px, c)
                                            : static_cast<std::uint8_t>(fill));
        }
      }
    }
    return hooks_.on_decode(patch.box);
  }

 private:
  const FakeHooks& hooks_;
  ImageLayout layout_;
};

/// Windows in this process's memory. Thread-safe.
class FakeDelivery final : public Delivery {
 public:
  struct Delivered {
    ShardId shard;
    std::vector<std::byte> bytes;                ///< bytes of the image
    std::vector<std::vector<std::byte>> arrays;  ///< bytes of every array, the image first
    StageTimes times;
  };

  StatusOr<std::unique_ptr<ShardWindow>> Open(const StreamContext& context,
                                              const protocol::ShardLease& lease) override {
    PB_RETURN_IF_ERROR(on_open(lease));
    return std::unique_ptr<ShardWindow>(new Window(*this, context, lease));
  }

  std::vector<Delivered> delivered() const {
    const std::lock_guard lock(mu_);
    return delivered_;
  }

  std::function<Status(const protocol::ShardLease&)> on_open = [](const protocol::ShardLease&) {
    return absl::OkStatus();
  };
  std::function<Status()> on_deliver = [] { return absl::OkStatus(); };
  bool blocks = false;  ///< windows say that their delivery waits for the network

 private:
  class Window final : public ShardWindow {
   public:
    Window(FakeDelivery& owner, const StreamContext& context, const protocol::ShardLease& lease)
        : owner_(owner), shard_(lease.shard) {
      for (const ArrayLayout& array : context.layout().arrays) {
        arrays_.emplace_back(lease.grant.count * array.PatchBytes(), std::byte{0xEE});
      }
    }
    std::span<std::byte> host(std::size_t array) const override { return arrays_[array]; }
    bool DeliverBlocks() const override { return owner_.blocks; }
    Status Deliver(const StageTimes& times) override {
      PB_RETURN_IF_ERROR(owner_.on_deliver());
      const std::lock_guard lock(owner_.mu_);
      owner_.delivered_.push_back({shard_, arrays_[0], arrays_, times});
      return absl::OkStatus();
    }

   private:
    FakeDelivery& owner_;
    const ShardId shard_;
    mutable std::vector<std::vector<std::byte>> arrays_;
  };

  mutable std::mutex mu_;
  std::vector<Delivered> delivered_;  // guarded by mu_
};

/// Collects the outcomes of shards, and waits for them.
class Endings {
 public:
  ShardEnded Recorder() {
    return [this](const protocol::ShardLease& lease, const Status& status,
                  const protocol::WorkCost& cost) {
      const std::lock_guard lock(mu_);
      costs_[lease.lease] = cost;
      EXPECT_TRUE(by_lease_.emplace(lease.lease, status).second) << "ended twice";
      changed_.notify_all();
    };
  }
  protocol::WorkCost CostOf(const LeaseNumber& lease) {
    const std::lock_guard lock(mu_);
    return costs_.at(lease);
  }
  Status WaitFor(const LeaseNumber& lease) {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return by_lease_.contains(lease); });
    return by_lease_.at(lease);
  }
  std::size_t count() const {
    const std::lock_guard lock(mu_);
    return by_lease_.size();
  }

 private:
  mutable std::mutex mu_;
  std::condition_variable changed_;
  std::map<LeaseNumber, Status> by_lease_;           // guarded by mu_
  std::map<LeaseNumber, protocol::WorkCost> costs_;  // guarded by mu_
};

/// An event that happens once; threads that wait for it go on.
class Event {
 public:
  void Set() {
    const std::lock_guard lock(mu_);
    is_set_ = true;
    changed_.notify_all();
  }
  void Wait() {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [this] { return is_set_; });
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  bool is_set_ = false;  // guarded by mu_
};

/// A plan over one FakeImage, its context, and the leases of its batches.
class FakeStream {
 public:
  explicit FakeStream(Tail tail = Tail::kKeep, bool meta = false, std::uint32_t batch = kBatch) {
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "fake") << "an image";
    Describe(tail, meta, batch);
  }
  ~FakeStream() { std::filesystem::remove_all(folder); }

  void Describe(Tail tail, bool meta = false, std::uint32_t batch = kBatch) {
    plan::PlannedImage image;
    image.kind = "fake";
    image.size = Flat(kFakeHeight, kFakeWidth);
    image.digest = Sha256Of("an image");
    const std::string yaml = StrCat(
        "dataset: fake\nnumerics: cpu\nseed: 11\npatch: {size: [", kPatchSide, ", ", kPatchSide,
        "]}\nbatch: {global_size: ", batch, ", dtype: float32, tail: ", NameOf(tail),
        ", meta: ", meta ? "true" : "false",
        "}\npreprocess: [{normalize: {scale: 255, mean: [0.5, 0.5, 0.5], std: [0.2, 0.2, 0.2]}}]\n"
        "augment: [{flip: {}}]\n");
    Describe(yaml, image);
  }

  /// A run over one image, which `open_image` opens.
  void Describe(const std::string& yaml, const plan::PlannedImage& image) {
    const StatusOr<plan::RunConfig> config = plan::ParseRunConfig(yaml, "test");
    ASSERT_TRUE(config.ok()) << config.status();
    const StatusOr<plan::Plan> plan = plan::Plan::Build(*config, {image});
    ASSERT_TRUE(plan.ok()) << plan.status();
    described.stream = 9;
    described.plan = plan->Text();
    described.plan_digest = plan->digest();
    const std::string path = folder / "fake";
    const StatusOr<std::string> stamp = StampOf(Folders::OfThisUser(), path);
    ASSERT_TRUE(stamp.ok()) << stamp.status();
    described.manifest = DumpJson(JsonOf(plan::PlannedManifest::Of({path}, {*stamp})));
    described.read_prefixes = {folder};
    geometry = *plan->Geometry(1);
    described.geometry = geometry;
    described.capacity = Capacity(geometry);
  }

  std::shared_ptr<StreamContext> Context() {
    auto context = StreamContext::Build(ops::Table(), described, images);
    EXPECT_TRUE(context.ok()) << context.status();
    return context.ok() ? *context : nullptr;
  }

  /// The lease of shard `shard` of batch `batch`, numbered so that no two are equal.
  protocol::ShardLease Lease(std::uint64_t batch, std::uint32_t shard) {
    protocol::ShardLease lease;
    lease.lease = {1, batch * 100 + shard + 1};
    lease.stream = described.stream;
    lease.shard = {0, batch, 0, shard};
    const PatchRun run = ShardRun(geometry, batch, 0, shard);
    lease.first_ordinal = run.first_ordinal;
    lease.grant.place = run.place;
    lease.grant.count = run.count;
    return lease;
  }

  /// The expected bytes of the shard, made patch by patch without a pipeline.
  std::vector<std::byte> Expected(StreamContext& context, const protocol::ShardLease& lease) {
    const ops::Chain& chain = context.chain();
    std::vector<std::byte> bytes(lease.grant.count * chain.patch_bytes()), scratch;
    std::vector<std::byte> tile(kPatchSide * kPatchSide * 3);
    const TensorView view = ContiguousView(tile.data(), DType::kUint8,
                                           std::array<std::int64_t, 3>{kPatchSide, kPatchSide, 3});
    const FakeImage image(no_hooks_);
    DecodeScratch unused;
    for (std::uint32_t i = 0; i < lease.grant.count; ++i) {
      const auto spec = context.plan().DeriveSpec(0, lease.first_ordinal + i);
      EXPECT_TRUE(spec.ok()) << spec.status();
      if (spec->pad) continue;
      EncodedPatch encoded;
      encoded.box = spec->box;
      EXPECT_TRUE(image.Decode(encoded, view, context.plan().fill(), unused).ok());
      const auto out = std::span(bytes).subspan(i * chain.patch_bytes(), chain.patch_bytes());
      EXPECT_TRUE(chain.Run(view, spec->key, out, scratch).ok());
    }
    return bytes;
  }

  StatusOr<std::unique_ptr<Pipeline>> Start(const PipelineOptions& options = {}) {
    return Pipeline::Start(
        options, delivery,
        [](PatchEnded ended) -> StatusOr<std::unique_ptr<PatchMaker>> {
          return MakeCpuPatchMaker(std::move(ended));
        },
        endings.Recorder());
  }

  const std::filesystem::path folder =
      std::filesystem::canonical(std::filesystem::temp_directory_path()) /
      StrCat("fake_stream_", Hex64(RandomU64()));
  FakeHooks hooks;
  std::function<std::unique_ptr<ImageSource>()> open_image = [this] {
    return std::make_unique<FakeImage>(hooks);
  };
  FakeDelivery delivery;
  Endings endings;
  protocol::StreamDescribed described;
  StreamGeometry geometry;
  ImageCache images{4,
                    [this](const Folders&, const std::string&, const SlideChoice&)
                        -> StatusOr<std::unique_ptr<ImageSource>> { return open_image(); }};

 private:
  const FakeHooks no_hooks_;
};

}  // namespace patchbay::workers
