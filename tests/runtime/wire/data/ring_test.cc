// The ring without a peer: refusals, counts and messages.
#include "runtime/wire/data/ring.h"

#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/runtime/wire/data/stream_fixture.h"

namespace patchbay::data {
namespace {

using namespace testing;  // NOLINT: the fixture of this folder

/// Counts both shards of a batch in the slot.
void Fill(Ring& ring, Position at, std::uint32_t slot, std::uint64_t generation) {
  for (std::uint32_t shard = 0; shard < 2; ++shard) {
    ASSERT_TRUE(ring.CountWritten(HeaderOf(at, shard, slot, generation, shard + 1)).ok());
  }
}

TEST(Ring, NeedsMemoryForAllItsSlots) {
  const SlotTableOptions options = SmallOptions();
  const auto slot = SlotLayout::Of(SmallLayout(), Capacity(options.geometry), false);
  const std::uint64_t bytes = RingBytesOf(*slot, options.slots + options.spares)->host;
  const auto make = [&](std::uint64_t size) {
    return Ring::Create(options, SmallLayout(), *MakeHostRingMemory(size)).status();
  };
  EXPECT_TRUE(make(bytes).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(make(bytes - 4096)));
  EXPECT_TRUE(absl::IsInvalidArgument(Ring::Create(options, SmallLayout(), nullptr).status()));
}

TEST(Ring, RefusesAShardOfFewerArraysThanTheStreamHas) {
  auto ring = MakeRing(SmallOptions());
  ShardHeader few = HeaderOf({0, 0}, 0, 0, 1, 1);
  few.arrays = 1;
  EXPECT_TRUE(absl::IsInvalidArgument(ring->CountWritten(few)));
  few.array = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(ring->BeginReceive(few).status()));
  EXPECT_EQ(ring->stats().shards_refused, 2u);
  EXPECT_EQ(ring->stats().shards_counted, 0u);
}

TEST(Ring, CountsWhatMovedToASpare) {
  auto ring = MakeRing(SmallOptions());
  const ShardHeader lost = HeaderOf({0, 0}, 1, 0, 1, 2);
  ASSERT_TRUE(ring->CountWritten(HeaderOf({0, 0}, 0, 0, 1, 1)).ok());
  ASSERT_TRUE(ring->Fence(lost.shard, lost.lease));
  EXPECT_EQ(ring->stats().batches_moved, 0u);
  const auto resting = ring->Evacuate(lost.shard, lost.grant);
  ASSERT_TRUE(resting.ok()) << resting.status();
  EXPECT_EQ(*resting, 0u);
  EXPECT_EQ(ring->stats().batches_moved, 1u);
}

TEST(Ring, NamesWhoHoldsASlotAndNotWhoHeldItBefore) {
  SlotTableOptions options = SmallOptions();
  options.slots = 1;
  auto ring = MakeRing(options);
  Fill(*ring, {0, 0}, 0, 1);
  const auto first = ring->Next(kPatience);
  ASSERT_TRUE(first.ok()) << first.status();
  ring->NameHolder(0, "validation cache");
  const Status held = ring->Next(kPatience, 0).status();
  EXPECT_TRUE(absl::IsResourceExhausted(held)) << held;
  EXPECT_NE(MessageOf(held).find("validation cache"), std::string_view::npos) << held;
  ring->Release(0, first->generation);
  Fill(*ring, {0, 1}, 0, 2);
  ASSERT_TRUE(ring->Next(kPatience).ok());
  const Status again = ring->Next(kPatience, 0).status();
  EXPECT_TRUE(absl::IsResourceExhausted(again)) << again;
  EXPECT_EQ(MessageOf(again).find("validation cache"), std::string_view::npos) << again;
}

TEST(Ring, TheFirstFailureIsTheOneThatIsSaid) {
  auto ring = MakeRing(SmallOptions());
  ring->Fail(absl::DataLossError("the cause"));
  ring->Fail(absl::UnavailableError("what came of it"));
  EXPECT_TRUE(absl::IsDataLoss(ring->Next(kPatience).status()));
}

/// A device that takes no copy.
class BrokenDevice final : public RingMemory {
 public:
  explicit BrokenDevice(const RingBytes& bytes) : host_(bytes.host), device_(bytes.device) {}
  std::span<std::byte> host() const override { return host_; }
  int host_fd() const override { return -1; }
  std::byte* device() const override { return device_.data(); }
  Status StageSync(std::uint64_t, std::uint64_t, std::uint64_t) override {
    return absl::InternalError("copy to the device: it is lost");
  }

 private:
  mutable std::vector<std::byte> host_, device_;
};

TEST(Ring, ACopyToTheDeviceThatFailsEndsTheStream) {
  const SlotTableOptions options = SmallOptions();
  const auto slot = SlotLayout::Of(SmallLayout(), Capacity(options.geometry), true);
  const auto bytes = RingBytesOf(*slot, options.slots + options.spares);
  auto ring = Ring::Create(options, SmallLayout(), std::make_unique<BrokenDevice>(*bytes));
  ASSERT_TRUE(ring.ok()) << ring.status();
  EXPECT_FALSE((*ring)->CountWritten(HeaderOf({0, 0}, 0, 0, 1, 1)).ok());
  EXPECT_EQ((*ring)->stats().shards_counted, 0u);
  EXPECT_TRUE(absl::IsInternal((*ring)->Next(kPatience).status()));
}

}  // namespace
}  // namespace patchbay::data
