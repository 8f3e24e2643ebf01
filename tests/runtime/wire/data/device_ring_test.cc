// Device slots: a shard in the staging area is copied to the device before it counts.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/memory/device_block.h"
#include "runtime/memory/gpu.h"
#include "runtime/wire/data/mapped_ring.h"
#include "runtime/wire/data/ring_server.h"
#include "tests/runtime/wire/data/stream_fixture.h"

namespace patchbay::data {
namespace {

using namespace testing;  // NOLINT: the fixture of this folder

std::unique_ptr<Ring> MakeDeviceRing(const SlotTableOptions& options) {
  const auto slot = SlotLayout::Of(SmallLayout(), Capacity(options.geometry), true);
  const auto bytes = RingBytesOf(*slot, options.slots + options.spares);
  auto memory = MakeDeviceRingMemory(0, *bytes);
  EXPECT_TRUE(memory.ok()) << memory.status();
  return memory.ok() ? std::move(*Ring::Create(options, SmallLayout(), std::move(*memory)))
                     : nullptr;
}

/// Fills the header's ranges of the staging area and counts it, as a CPU worker does.
void DeliverToRing(Ring& ring, const ShardHeader& header, int value) {
  const SlotLayout& layout = ring.layout();
  const auto slot =
      ring.memory().host().subspan(layout.host_stride() * header.grant.slot, layout.host_stride());
  for (std::size_t i = 0; i < layout.arrays(); ++i) {
    const ByteRange range = layout.InHost(i, header.grant.place, header.grant.count);
    const auto bytes = slot.subspan(range.offset_bytes, range.size_bytes);
    std::fill(bytes.begin(), bytes.end(), static_cast<std::byte>(value));
  }
  ASSERT_TRUE(ring.CountWritten(header).ok());
}

/// The images of the batch, from the device; the ordinals must lie in host memory.
std::vector<std::byte> OnDevice(const TakenBatch& batch) {
  std::vector<std::byte> bytes(batch.patches * kImageBytes);
  auto stream = memory::OwnedGpuStream::Create();
  EXPECT_TRUE(stream.ok());
  EXPECT_TRUE(memory::CopyToHost(bytes, batch.arrays[0], stream->get()).ok());
  EXPECT_TRUE(stream->WaitSync().ok());
  return bytes;
}

/// Half of the batch's ordinals have one byte everywhere, the others another.
void ExpectOrdinals(const TakenBatch& batch, int first, int second) {
  for (std::size_t i = 0; i < 4 * sizeof(std::int64_t); ++i) {
    EXPECT_EQ(batch.arrays[1][i], std::byte(i < 2 * sizeof(std::int64_t) ? first : second)) << i;
  }
}

TEST(DeviceRing, SaysWhyThereIsNoneWithoutAGpu) {
  if (!memory::ListGpus().empty()) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_FALSE(MakeDeviceRingMemory(0, RingBytes{8192, 4096}).ok());
}

TEST(DeviceRingOnGpu, StagesShardsOfCpuWorkers) {
  if (memory::ListGpus().empty()) GTEST_SKIP() << "no GPU on this machine";
  auto ring = MakeDeviceRing(SmallOptions());
  ASSERT_NE(ring, nullptr);
  ASSERT_TRUE(ring->memory().device_handle().has_value());
  DeliverToRing(*ring, HeaderOf({0, 0}, 0, 0, 1, 1), 5);
  DeliverToRing(*ring, HeaderOf({0, 0}, 1, 0, 1, 2), 6);
  const auto batch = ring->Next(0);
  ASSERT_TRUE(batch.ok()) << batch.status();
  const auto bytes = OnDevice(*batch);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), std::byte{5}), 2000);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), std::byte{6}), 2000);
  ExpectOrdinals(*batch, 5, 6);
}

TEST(DeviceRingOnGpu, MovesCountedShardsOnTheDevice) {
  if (memory::ListGpus().empty()) GTEST_SKIP() << "no GPU on this machine";
  auto ring = MakeDeviceRing(SmallOptions());
  ASSERT_NE(ring, nullptr);
  DeliverToRing(*ring, HeaderOf({0, 0}, 0, 0, 1, 1), 5);
  const ShardHeader lost = HeaderOf({0, 0}, 1, 0, 1, 2);
  ASSERT_TRUE(ring->Fence(lost.shard, lost.lease));
  ASSERT_EQ(*ring->Evacuate(lost.shard, lost.grant), 0u);
  DeliverToRing(*ring, HeaderOf({0, 0}, 1, 3, 1, 3), 6);
  const auto batch = ring->Next(0);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->slot, 3u);
  const auto bytes = OnDevice(*batch);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), std::byte{5}), 2000);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), std::byte{6}), 2000);
  ExpectOrdinals(*batch, 5, 6);
}

/// The other side of the next test: a worker that writes on until the trainer has hung up, and a
/// little longer.
TEST(DeviceRingOnGpu, DISABLED_WriteUntilToldToLetGo) {
  MappedRing::Options options;
  options.socket_name = std::getenv("PATCHBAY_TEST_RING");
  options.stream = kStream;
  options.layout = SmallLayout();
  options.capacity = Capacity(SmallOptions().geometry);
  options.secret = SecretOf(1);
  auto ring = MappedRing::Connect(options);
  ASSERT_TRUE(ring.ok()) << ring.status();
  ASSERT_TRUE((*ring)->offer().device.has_value());
  auto block = memory::DeviceBlock::Import(*(*ring)->offer().device);
  auto stream = memory::OwnedGpuStream::Create();
  ASSERT_TRUE(block.ok() && stream.ok());
  for (int after = 0; after < 200; after += (*ring)->Closed() ? 1 : 0) {
    ASSERT_TRUE(memory::FillDevice(block->d_data(), 7, block->size_bytes(), stream->get()).ok());
    ASSERT_TRUE(stream->WaitSync().ok());
  }
  block = memory::DeviceBlock();  // before the socket
}

TEST(DeviceRingOnGpu, IsNotFreedWhileAWorkerHasItOpen) {
  if (memory::ListGpus().empty()) GTEST_SKIP() << "no GPU on this machine";
  auto ring = MakeDeviceRing(SmallOptions());
  RingServer::Options options;
  options.secret = SecretOf(1);
  options.stream = kStream;
  auto server = RingServer::Start(*ring, options);
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string command =
      StrCat("PATCHBAY_TEST_RING=", (*server)->socket_name(), " '",
             std::filesystem::read_symlink("/proc/self/exe").string(),
             "' --gtest_also_run_disabled_tests --gtest_brief=1 "
             "--gtest_filter=DeviceRingOnGpu.DISABLED_WriteUntilToldToLetGo");
  int ended = -1;
  std::thread worker([&] { ended = std::system(command.c_str()); });
  EXPECT_TRUE(Comes("worker", [&] { return (*server)->Holders().size() > 0; }));
  server->reset();
  ring.reset();
  worker.join();
  EXPECT_EQ(ended, 0) << "the device says what the worker did with memory that was freed";
}

TEST(DeviceRing, HostRingsRefuseDeviceLandings) {
  auto ring = MakeRing(SmallOptions());
  ShardHeader header = HeaderOf({0, 0}, 0, 0, 1, 1);
  header.landing = Landing::kDevice;
  EXPECT_TRUE(absl::IsInvalidArgument(ring->CountWritten(header)));
  EXPECT_EQ(ring->stats().shards_refused, 1u);
}

}  // namespace
}  // namespace patchbay::data
