// The offer of a ring. Workers compute their windows from it, so impossible values are refused.
#include "runtime/wire/data/ring_greeting.h"

#include "gtest/gtest.h"
#include "runtime/memory/host_buffer.h"
#include "runtime/model/stream/limits.h"
#include "tests/runtime/wire/data/stream_fixture.h"

namespace patchbay::data {
namespace {

using testing::SecretOf;

RingOffer SampleOffer() {
  RingOffer offer;
  offer.slots = 5;
  offer.capacity = 16;
  offer.host_stride = 3 * 4096;
  offer.device_stride = 2 * 4096;
  offer.layout = Sha256Of("the layout");
  memory::DeviceBlockHandle device;
  device.ipc.fill(std::byte{7});
  device.gpu_uuid = "GPU-1234";
  device.size_bytes = 5 * 2 * 4096;
  offer.device = device;
  return offer;
}

StatusOr<RingOffer> Through(const RingOffer& offer) {
  const Nonce nonce{std::byte{1}};
  return DecodeRingOffer(EncodeRingOffer(offer, nonce, SecretOf(1)), nonce, SecretOf(1));
}

TEST(RingOffer, ComesBackAsItWasWritten) {
  const auto offer = Through(SampleOffer());
  ASSERT_TRUE(offer.ok()) << offer.status();
  EXPECT_EQ(offer->slots, 5u);
  EXPECT_EQ(offer->capacity, 16u);
  EXPECT_EQ(offer->host_stride, 3u * 4096);
  EXPECT_EQ(offer->device_stride, 2u * 4096);
  EXPECT_EQ(offer->layout, SampleOffer().layout);
  EXPECT_EQ(offer->RingHostBytes(), 15u * 4096);
  ASSERT_TRUE(offer->device.has_value());
  EXPECT_EQ(offer->device->gpu_uuid, "GPU-1234");
  EXPECT_EQ(offer->device->size_bytes, 10u * 4096);
  RingOffer on_host = SampleOffer();
  on_host.device.reset();
  on_host.device_stride = 0;
  EXPECT_FALSE(Through(on_host)->device.has_value());
}

TEST(RingOffer, RefusesRingsThatCannotBe) {
  const auto refused = [](auto change) {
    RingOffer offer = SampleOffer();
    change(offer);
    return absl::IsInvalidArgument(Through(offer).status());
  };
  EXPECT_TRUE(refused([](RingOffer& o) { o.slots = 0; }));
  EXPECT_TRUE(refused([](RingOffer& o) { o.slots = kMaxRingSlots + 1; }));
  EXPECT_TRUE(refused([](RingOffer& o) { o.slots = 6; })) << "the device block is of 5";
  EXPECT_TRUE(refused([](RingOffer& o) { o.host_stride = 0; }));
  EXPECT_TRUE(refused([](RingOffer& o) { o.host_stride = memory::kMaxBlockBytes / 4; }));
  EXPECT_TRUE(refused([](RingOffer& o) { o.host_stride = ~std::uint64_t{0}; }));
  EXPECT_TRUE(refused([](RingOffer& o) { o.device_stride = ~std::uint64_t{0} / 5 + 1; }));
  EXPECT_TRUE(refused([](RingOffer& o) { o.device_stride = 0; }));
  EXPECT_TRUE(refused([](RingOffer& o) { o.device.reset(); }));
  EXPECT_FALSE(refused([](RingOffer&) {}));
}

TEST(RingOffer, RefusesSlotsThatTheLimitAloneForbids) {
  RingOffer on_host = SampleOffer();
  on_host.device.reset();
  on_host.device_stride = 0;
  on_host.slots = kMaxRingSlots;
  EXPECT_TRUE(Through(on_host).ok());
  on_host.slots = kMaxRingSlots + 1;
  EXPECT_TRUE(absl::IsInvalidArgument(Through(on_host).status()));
  RingOffer small = SampleOffer();
  small.slots = 4;
  EXPECT_TRUE(absl::IsInvalidArgument(Through(small).status())) << "the device block is of 5";
}

TEST(Greeting, RefusesOtherSizesAndVersions) {
  const std::vector<std::byte> good = EncodeChallenge(Challenge{Nonce{std::byte{3}}});
  ASSERT_TRUE(DecodeChallenge(good).ok());
  for (const int more : {-1, 1, 100}) {
    std::vector<std::byte> bytes = good;
    bytes.resize(static_cast<std::size_t>(static_cast<int>(good.size()) + more));
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeChallenge(bytes).status())) << more;
  }
  for (const int version : {0, 1, 2, 255}) {
    std::vector<std::byte> bytes = good;
    bytes[4] = static_cast<std::byte>(version);
    EXPECT_NE(
        MessageOf(DecodeChallenge(bytes).status())
            .find(StrCat("version ", version, ", this program knows 3; run the same release")),
        std::string_view::npos);
  }
}

TEST(RingOffer, RefusesEveryFlippedBit) {
  const Nonce nonce{};
  const auto good = EncodeRingOffer(SampleOffer(), nonce, SecretOf(1));
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    EXPECT_FALSE(DecodeRingOffer(bad, nonce, SecretOf(1)).ok()) << "bit " << bit;
  }
}

}  // namespace
}  // namespace patchbay::data
