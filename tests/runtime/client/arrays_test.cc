// The arrays of a batch as a user sees them, and the digest of what a stream delivered.
#include <span>

#include "gtest/gtest.h"
#include "runtime/client/stream_digest.h"
#include "tests/runtime/client/streaming_cluster.h"

namespace patchbay::client {
namespace {

using namespace testing;  // NOLINT: the fixture of this folder

StreamOptions ArraysOptions() {
  StreamOptions options;
  options.job = kJob;
  options.heartbeat_ms = 20;
  return options;
}

StreamGeometry Padded(std::uint32_t batch) {
  StreamGeometry g = TestGeometry();
  g.tail = Tail::kPad;
  g.global_batch = batch;
  return g;
}

/// The bytes that the played workers make of one patch, all arrays in order.
Digest ExpectedPatch(std::uint32_t epoch, std::uint64_t ordinal) {
  const std::vector<std::byte> bytes(TestLayout().PatchBytes(), PatchByte(epoch, ordinal));
  return Sha256Of(bytes);
}

TEST(Batch, HasTheArraysOfItsLayout) {
  StreamingCluster cluster;
  cluster.StartWorkers(1);
  const auto stream = Stream::AttachOver(cluster.Opener(), ArraysOptions());
  ASSERT_TRUE(stream.ok()) << stream.status();
  EXPECT_EQ((*stream)->layout(), TestLayout());
  const auto batch = (*stream)->Next(kPatience);
  ASSERT_TRUE(batch.ok()) << batch.status();
  const std::vector<BatchArray> arrays = batch->arrays();
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_EQ(arrays[0].name, "image");
  const auto image = batch->array("image");
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->tensor.data, arrays[0].tensor.data);
  EXPECT_EQ(image->tensor.rank, 4);
  const std::array<std::int64_t, 4> shape = {8, 3, 4, 5};
  EXPECT_TRUE(std::equal(shape.begin(), shape.end(), image->tensor.shape.begin()));
  EXPECT_EQ(image->tensor.stride_bytes[0], 3 * 4 * 5 * 2);
  const auto ordinal = batch->array("ordinal");
  ASSERT_TRUE(ordinal.ok()) << ordinal.status();
  EXPECT_EQ(ordinal->memory, ArrayMemory::kHost);
  EXPECT_EQ(ordinal->tensor.rank, 1);
  EXPECT_EQ(ordinal->tensor.shape[0], 8);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(ordinal->tensor.data) % kArrayAlignment, 0u);
  const Status missing = batch->array("label").status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_EQ(MessageOf(missing), "find array: label: the batch has image, ordinal");
  EXPECT_TRUE(Batch().arrays().empty());
}

TEST(Batch, PointersToArraysStayWhereTheyAre) {
  StreamingCluster cluster;
  cluster.StartWorkers(2);
  const auto stream = Stream::AttachOver(cluster.Opener(), ArraysOptions());
  ASSERT_TRUE(stream.ok()) << stream.status();
  std::set<std::byte*> images, ordinals;
  for (int i = 0; i < 12; ++i) {
    const auto batch = (*stream)->Next(kPatience);
    ASSERT_TRUE(batch.ok()) << batch.status();
    images.insert(batch->array("image")->tensor.data);
    ordinals.insert(batch->array("ordinal")->tensor.data);
  }
  EXPECT_LE(images.size(), 4u) << "as many as slots";
  EXPECT_EQ(images.size(), ordinals.size());
}

TEST(StreamDigest, IsThatOfThePatchesForAnyBatchSize) {
  Sha256 expected;
  for (std::uint64_t ordinal = 0; ordinal < TestGeometry().patches_per_epoch; ++ordinal) {
    const Digest patch = ExpectedPatch(0, ordinal);
    expected.Update(std::as_bytes(std::span(patch.bytes)));
  }
  const Digest wanted = expected.Finish();
  for (const std::uint32_t size : {8u, 5u}) {
    StreamingCluster cluster(Padded(size));
    cluster.StartWorkers(2);
    const auto stream = Stream::AttachOver(cluster.Opener(), ArraysOptions());
    ASSERT_TRUE(stream.ok()) << stream.status();
    StreamDigest digest;
    std::uint64_t real = 0;
    for (std::uint64_t i = 0; i < (*stream)->batches_per_epoch(); ++i) {
      const auto batch = (*stream)->Next(kPatience);
      ASSERT_TRUE(batch.ok()) << batch.status();
      EXPECT_EQ(batch->count(), size);
      real += batch->real_count();
      ASSERT_TRUE(digest.Add(*batch).ok());
    }
    EXPECT_EQ(real, 22u) << "the rest is padding";
    EXPECT_EQ(digest.Finish(), wanted) << "batches of " << size;
  }
}

}  // namespace
}  // namespace patchbay::client
