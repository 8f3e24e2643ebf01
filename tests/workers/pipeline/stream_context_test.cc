// What a worker accepts as a stream, and which images it opens for it.
#include "workers/stream_context.h"

#include "tests/workers/pipeline/fake_stream.h"

namespace patchbay::workers {
namespace {

TEST(StreamContext, RefusesAPlanThatIsNotTheOneItsDigestNames) {
  FakeStream stream;
  stream.described.plan_digest.bytes[0] ^= 1;
  EXPECT_EQ(StreamContext::Build(stream.described, stream.images).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(StreamContext, RefusesAManifestOfAnotherLength) {
  FakeStream stream;
  stream.described.manifest = R"({"images": ["/a", "/b"]})";
  EXPECT_EQ(StreamContext::Build(stream.described, stream.images).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(StreamContext, RefusesAPathOutsideTheSubmittersFolders) {
  FakeStream stream;
  stream.described.read_prefixes = {"/another-folder"};
  EXPECT_EQ(stream.Context()->Image(0).status().code(), absl::StatusCode::kPermissionDenied);
  stream.described.read_prefixes = {};
  EXPECT_EQ(stream.Context()->Image(0).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST(StreamContext, RefusesAnImageThatIsNotTheOneThatWasPlanned) {
  FakeStream stream;
  class Other final : public ImageSource {
   public:
    Other() {
      layout_.kind = "fake";
      layout_.levels.push_back({1, kFakeHeight + 1, kFakeWidth, 1.0, 16, 16});
    }
    const ImageLayout& layout() const override { return layout_; }
    std::unique_ptr<DecodeScratch> MakeScratch() const override { return nullptr; }
    Status Fetch(int, const Box&, EncodedPatch&) const override { return absl::OkStatus(); }
    Status Decode(const EncodedPatch&, const TensorView&, std::uint8_t,
                  DecodeScratch&) const override {
      return absl::OkStatus();
    }

   private:
    ImageLayout layout_;
  };
  ImageCache others(1, [](const std::string&) -> StatusOr<std::unique_ptr<ImageSource>> {
    return std::unique_ptr<ImageSource>(std::make_unique<Other>());
  });
  const auto context = StreamContext::Build(stream.described, others);
  ASSERT_TRUE(context.ok()) << context.status();
  EXPECT_EQ((*context)->Image(0).status().code(), absl::StatusCode::kDataLoss);
}

TEST(StreamContext, NamesTheRankThatIsNotAttached) {
  FakeStream stream;
  stream.described.trainers = {protocol::TrainerEndpoint{}};
  const auto context = stream.Context();
  EXPECT_TRUE(context->TrainerOf(0).ok());
  EXPECT_EQ(context->TrainerOf(1).status().code(), absl::StatusCode::kNotFound);
}

TEST(ImageCache, KeepsTheMostRecentlyUsedImagesOpen) {
  int opened = 0;
  FakeHooks hooks;
  ImageCache cache(2, [&](const std::string&) -> StatusOr<std::unique_ptr<ImageSource>> {
    ++opened;
    return std::unique_ptr<ImageSource>(std::make_unique<FakeImage>(hooks));
  });
  const auto first = cache.Get("/a");
  ASSERT_TRUE(cache.Get("/b").ok());
  ASSERT_TRUE(cache.Get("/a").ok());  // now /b is the oldest
  ASSERT_TRUE(cache.Get("/c").ok());
  EXPECT_EQ(opened, 3);
  EXPECT_EQ(*cache.Get("/a"), *first);
  EXPECT_EQ(opened, 3);
  ASSERT_TRUE(cache.Get("/b").ok());
  EXPECT_EQ(opened, 4);
  EXPECT_EQ(cache.size(), 2u);
}

TEST(ImageCache, RemembersNoFailure) {
  bool fail = true;
  FakeHooks hooks;
  ImageCache cache(2, [&](const std::string&) -> StatusOr<std::unique_ptr<ImageSource>> {
    if (fail) return absl::UnavailableError("open: not now");
    return std::unique_ptr<ImageSource>(std::make_unique<FakeImage>(hooks));
  });
  EXPECT_FALSE(cache.Get("/a").ok());
  fail = false;
  EXPECT_TRUE(cache.Get("/a").ok());
}

}  // namespace
}  // namespace patchbay::workers
