// StreamContext: the streams that a worker accepts, and the images that it opens for them.
#include "workers/stream/stream_context.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include "ops/all_ops.h"
#include "tests/contract/known_ops.h"
#include "tests/workers/pipeline/fake_stream.h"
#include "workers/access/stamps.h"

namespace patchbay::workers {
namespace {

TEST(StreamContext, RefusesAPlanThatIsNotTheOneItsDigestNames) {
  FakeStream stream;
  stream.described.plan_digest.bytes[0] ^= 1;
  EXPECT_EQ(StreamContext::Build(ops::Table(), stream.described, stream.images).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(StreamContext, RefusesAStreamThatIsCutOtherwise) {
  const auto refused = [](auto change) {
    FakeStream stream;
    change(stream.described);
    return absl::IsInvalidArgument(
        StreamContext::Build(ops::Table(), stream.described, stream.images).status());
  };
  EXPECT_TRUE(refused([](auto& d) { ++d.capacity; }));
  EXPECT_TRUE(refused([](auto& d) { ++d.geometry.shard_patches; }));
  EXPECT_TRUE(refused([](auto& d) { d.geometry.world_size = 2; }));
  EXPECT_TRUE(refused([](auto& d) { d.geometry.world_size = 0; }));
  EXPECT_TRUE(refused([](auto& d) { d.geometry.tail = Tail::kDrop; }));
  EXPECT_FALSE(refused([](auto&) {}));
}

TEST(StreamContext, RefusesAManifestOfAnotherLength) {
  FakeStream stream;
  for (const char* manifest :
       {R"({"root": "/", "images": ["a", "b"], "stamps": ["1.1", "1.1"]})",
        R"({"root": "/", "images": ["a"], "stamps": []})", R"({"images": ["/a"]})"}) {
    stream.described.manifest = manifest;
    EXPECT_EQ(StreamContext::Build(ops::Table(), stream.described, stream.images).status().code(),
              absl::StatusCode::kInvalidArgument)
        << manifest;
  }
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
      layout_.levels.push_back({.size = Flat(kFakeHeight + 1, kFakeWidth), .chunk = Flat(16, 16)});
    }
    const ImageLayout& layout() const override { return layout_; }
    std::unique_ptr<DecodeScratch> MakeScratch() const override { return nullptr; }
    Status Fetch(int, const Box&, EncodedPatch&) const override { return absl::OkStatus(); }
    Status Decode(const EncodedPatch&, const TensorView&, double, DecodeScratch&) const override {
      return absl::OkStatus();
    }

   private:
    ImageLayout layout_;
  };
  ImageCache others(1,
                    [](const Folders&, const std::string&,
                       const SlideChoice&) -> StatusOr<std::unique_ptr<ImageSource>> {
                      return std::unique_ptr<ImageSource>(std::make_unique<Other>());
                    });
  const auto context = StreamContext::Build(ops::Table(), stream.described, others);
  ASSERT_TRUE(context.ok()) << context.status();
  EXPECT_EQ((*context)->Image(0).status().code(), absl::StatusCode::kDataLoss);
}

void ExpectChanged(const Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_NE(MessageOf(status).find("open stream: image 0: it changed"), std::string::npos)
      << status;
}

/// A moment that no file of this test was made at.
void Touch(const std::filesystem::path& path) {
  std::filesystem::last_write_time(
      path, std::filesystem::last_write_time(path) + std::chrono::seconds(5));
}

TEST(StreamContext, RefusesAFileOfEqualSizeInTheImagesPlace) {
  FakeStream stream;
  std::ofstream(stream.folder / "other") << "AN IMAGE";
  Touch(stream.folder / "other");
  const auto context = stream.Context();
  std::filesystem::rename(stream.folder / "other", stream.folder / "fake");
  ExpectChanged(context->Image(0).status());
}

TEST(StreamContext, RefusesATouchedImageAndTakesItWhenItIsPlannedAnew) {
  FakeStream stream;
  const auto before = stream.Context();
  const auto old_image = before->Image(0);
  ASSERT_TRUE(old_image.ok()) << old_image.status();
  Touch(stream.folder / "fake");
  const auto late = stream.Context();
  EXPECT_TRUE(late->Image(0).ok()) << "it is open as it was planned";
  stream.Describe(Tail::kKeep);
  const auto image = stream.Context()->Image(0);
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_NE(*image, *old_image) << "the file that was there before is still read";
  Touch(stream.folder / "fake");
  ImageCache empty(1,
                   [](const Folders&, const std::string&,
                      const SlideChoice&) -> StatusOr<std::unique_ptr<ImageSource>> {
                     return absl::InternalError("must not be opened");
                   });
  const auto elsewhere = StreamContext::Build(ops::Table(), stream.described, empty);
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status();
  ExpectChanged((*elsewhere)->Image(0).status());
}

TEST(StreamContext, RefusesAnImageThatIsGone) {
  FakeStream stream;
  const auto context = stream.Context();
  std::filesystem::remove(stream.folder / "fake");
  ExpectChanged(context->Image(0).status());
}

TEST(StreamContext, RefusesAStoreWithAnotherDigest) {
  FakeStream stream;
  const auto write = [&](const std::string& digest) {
    const std::string text = DumpJson({{"zarr_format", 3},
                                       {"node_type", "group"},
                                       {"attributes", {{"patchbay", {{"digest", digest}}}}}});
    std::ofstream(stream.folder / "zarr.json") << text;
  };
  const auto plan = plan::ParsePlan(stream.described.plan);
  ASSERT_TRUE(plan.ok()) << plan.status();
  write(plan->images()[0].digest.Hex());
  const StatusOr<std::string> stamp = StampOf(Folders::OfThisUser(), stream.folder);
  ASSERT_TRUE(stamp.ok()) << stamp.status();
  EXPECT_EQ(*stamp, "") << "a store's stamp is the digest it records";
  stream.described.manifest =
      DumpJson(JsonOf(plan::PlannedManifest::Of({stream.folder}, {*stamp})));
  EXPECT_TRUE(stream.Context()->Image(0).ok());
  write(Sha256Of("another store").Hex());
  FakeStream fresh;
  fresh.described = stream.described;
  ExpectChanged(fresh.Context()->Image(0).status());
}

class ChangedImage : public testing::Test {
 protected:
  void Describe(const std::string& kind) {
    plan::PlannedImage image;
    image.kind = kind;
    image.size = Flat(kFakeHeight, kFakeWidth);
    image.digest = Sha256Of("an image");
    stream_.Describe(StrCat("dataset: fake\nnumerics: cpu\nseed: 1\npatch: {size: [16, 16]}\n"
                            "batch: {global_size: 4, dtype: uint8}\n"),
                     image);
  }
  Status Check() const {
    return stream_.Context()->CheckContent(
        0, absl::AbortedError(StrCat("read: ", path_.string(), ": its permissions changed")),
        [] { return absl::OkStatus(); });
  }
  void RewriteUnderItsFormerTime() const {
    const auto time = std::filesystem::last_write_time(path_);
    std::ofstream(path_) << "AN IMAGE";
    std::filesystem::last_write_time(path_, time);
  }

  mutable FakeStream stream_;
  const std::filesystem::path path_ = stream_.folder / "fake";
};

TEST_F(ChangedImage, IsReadOnWhereItsDigestShowsThatItIsTheSame) {
  Describe("tiff");
  EXPECT_EQ(Check(), absl::OkStatus());
  RewriteUnderItsFormerTime();
  ExpectChanged(Check());
  EXPECT_NE(MessageOf(Check()).find("its content (SHA-256) is another"), std::string::npos);
}

TEST_F(ChangedImage, IsRefusedWhereNothingShowsThatItIsTheSame) {
  Describe("zarr");
  ExpectChanged(Check());
  EXPECT_NE(MessageOf(Check()).find("its permissions changed"), std::string::npos) << "says how";
}

TEST_F(ChangedImage, IsRefusedByItsSizeAndTimeBeforeItIsRead) {
  Describe("tiff");
  const auto context = stream_.Context();
  Touch(path_);
  const Status status = context->CheckContent(
      0, absl::AbortedError("read"), [] { return absl::InternalError("must not be read"); });
  ExpectChanged(status);
  EXPECT_NE(MessageOf(status).find("size or time of writing"), std::string::npos) << status;
}

TEST_F(ChangedImage, IsOpenedByEachStreamItselfWhereNothingShowsThatItIsTheSame) {
  for (const char* kind : {"fake", "zarr", "openslide:mirax"}) {
    Describe(kind);
    int opened = 0;
    ImageCache images(
        1,
        [&](const Folders&, const std::string&,
            const SlideChoice&) -> StatusOr<std::unique_ptr<ImageSource>> {
          ++opened;
          return std::unique_ptr<ImageSource>(std::make_unique<FakeImage>(FakeHooks()));
        });
    for (const std::uint64_t number : {9u, 9u, 10u}) {
      stream_.described.stream = number;
      (void)(*StreamContext::Build(ops::Table(), stream_.described, images))->Image(0);
    }
    EXPECT_EQ(opened, kind == std::string("fake") ? 1 : 2) << kind;
  }
}

TEST(StreamContext, OpensThePartOfASlideThatThePlanHas) {
  FakeStream stream;
  std::vector<std::string> opened;
  ImageCache images(1,
                    [&](const Folders&, const std::string&,
                        const SlideChoice& choice) -> StatusOr<std::unique_ptr<ImageSource>> {
                      opened.push_back(choice.ToString());
                      return std::unique_ptr<ImageSource>(std::make_unique<FakeImage>(FakeHooks()));
                    });
  const auto made = plan::ParsePlan(stream.described.plan);
  ASSERT_TRUE(made.ok()) << made.status();
  plan::RunConfig config = made->config();
  config.dataset = {"-"};
  for (const SlideChoice& choice :
       {SlideChoice{}, {1.5, ""}, {1.5, ""}, {std::nullopt, "DAPI"}, {}}) {
    std::vector<plan::PlannedImage> planned = made->images();
    planned[0].choice = choice;
    const auto plan = plan::Plan::Build(config, planned);
    ASSERT_TRUE(plan.ok()) << plan.status();
    stream.described.plan = plan->Text();
    stream.described.plan_digest = plan->digest();
    const auto context = StreamContext::Build(ops::Table(), stream.described, images);
    ASSERT_TRUE(context.ok()) << context.status();
    EXPECT_TRUE((*context)->Image(0).ok());
  }
  EXPECT_EQ(opened, (std::vector<std::string>{"", "focal plane at 1.5 um", "optical path DAPI"}))
      << "each part once";
}

TEST(StampOf, ASlideOfSeveralFilesCoversAllOfThem) {
  FakeStream stream;
  const std::string slide = stream.folder / "s.mrxs", part = stream.folder / "s/Data0000.dat";
  std::filesystem::create_directory(stream.folder / "s");
  for (const std::string& file : {slide, part}) std::ofstream(file) << "bytes";
  const std::string before = *StampOf(Folders::OfThisUser(), slide);
  EXPECT_EQ(*StampOf(Folders::OfThisUser(), slide), before);
  Touch(part);
  const std::string touched = *StampOf(Folders::OfThisUser(), slide);
  EXPECT_NE(touched, before);
  std::ofstream(stream.folder / "s/Data0001.dat") << "more";
  EXPECT_NE(*StampOf(Folders::OfThisUser(), slide), touched);
}

TEST(StreamContext, ErrorsThatTravelNameTheImageByItsNumber) {
  FakeStream stream;
  const std::string path = stream.folder / "fake";
  const Status status = stream.Context()->WithImage(
      ErrorAbout(absl::StatusCode::kDataLoss, "read", path + "/0/c/1", "crc32c mismatch"), 0);
  EXPECT_EQ(MessageOf(status), "read: image 0/0/c/1: crc32c mismatch");
}

TEST(StreamContext, NamesTheRankThatIsNotAttached) {
  FakeStream stream;
  stream.described.trainers = {protocol::TrainerEndpoint{}};
  const auto context = stream.Context();
  EXPECT_TRUE(context->TrainerOf(0).ok());
  EXPECT_EQ(context->TrainerOf(1).status().code(), absl::StatusCode::kNotFound);
}

TEST(ImageCache, KeepsTheMostRecentlyUsedImagesWithinItsBytes) {
  constexpr std::size_t kImage = std::size_t{1} << 20;  // bytes that a FakeImage says it keeps
  int opened = 0;
  FakeHooks hooks;
  ImageCache cache(20 * kImage + kImage / 2,
                   [&](const Folders&, const std::string&,
                       const SlideChoice&) -> StatusOr<std::unique_ptr<ImageSource>> {
                     ++opened;
                     return std::unique_ptr<ImageSource>(std::make_unique<FakeImage>(hooks));
                   });
  const auto first = cache.Get(Folders::OfThisUser(), "/a");
  for (int i = 1; i < 20; ++i) ASSERT_TRUE(cache.Get(Folders::OfThisUser(), StrCat("/", i)).ok());
  ASSERT_TRUE(cache.Get(Folders::OfThisUser(), "/a").ok());  // now /1 is the oldest
  ASSERT_TRUE(cache.Get(Folders::OfThisUser(), "/b").ok());
  EXPECT_EQ(opened, 21);
  EXPECT_EQ(*cache.Get(Folders::OfThisUser(), "/a"), *first);
  EXPECT_EQ(opened, 21);
  ASSERT_TRUE(cache.Get(Folders::OfThisUser(), "/1").ok());
  EXPECT_EQ(opened, 22);
  EXPECT_EQ(cache.size(), 20u);
  EXPECT_LE(cache.bytes(), 20 * kImage + kImage / 2);
}

TEST(ImageCache, KeepsAFewImagesHoweverLargeTheyAre) {
  FakeHooks hooks;
  ImageCache cache(1,
                   [&](const Folders&, const std::string&,
                       const SlideChoice&) -> StatusOr<std::unique_ptr<ImageSource>> {
                     return std::unique_ptr<ImageSource>(std::make_unique<FakeImage>(hooks));
                   });
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(cache.Get(Folders::OfThisUser(), StrCat("/", i)).ok());
  EXPECT_EQ(cache.size(), ImageCache::kImagesMin);
}

TEST(ImageCache, OpensAnewWhatItWasToldToForget) {
  int opened = 0;
  FakeHooks hooks;
  ImageCache cache(1,
                   [&](const Folders&, const std::string&,
                       const SlideChoice&) -> StatusOr<std::unique_ptr<ImageSource>> {
                     ++opened;
                     return std::unique_ptr<ImageSource>(std::make_unique<FakeImage>(hooks));
                   });
  const auto held = cache.Get(Folders::OfThisUser(), "/a", "now");
  ASSERT_TRUE(cache.Get(Folders::OfThisUser(), "/a", "before").ok());
  cache.Forget("/a", "now", nullptr);
  EXPECT_EQ(cache.size(), 2u) << "another than the one that is there";
  cache.Forget("/a", "now", held->get());
  cache.Forget("/a", "now", held->get());
  cache.Forget("/b", "", held->get());
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_EQ((*held)->layout().kind, "fake") << "who holds it keeps it";
  ASSERT_TRUE(cache.Get(Folders::OfThisUser(), "/a", "before").ok());
  EXPECT_EQ(opened, 2);
  EXPECT_NE(*cache.Get(Folders::OfThisUser(), "/a", "now"), *held);
  EXPECT_EQ(opened, 3);
  EXPECT_EQ(cache.size(), 2u);
}

TEST(ImageCache, ChecksAnImageBeforeItIsOpenedAndOnceItIs) {
  FakeHooks hooks;
  ImageCache cache(1,
                   [&](const Folders&, const std::string&,
                       const SlideChoice&) -> StatusOr<std::unique_ptr<ImageSource>> {
                     return std::unique_ptr<ImageSource>(std::make_unique<FakeImage>(hooks));
                   });
  int checks = 0;
  const auto changed_meanwhile = [&](ImageSource* opened) -> Status {
    ++checks;
    return opened == nullptr ? absl::OkStatus() : absl::AbortedError("another file");
  };
  const auto get = [&](const ImageCheck& check) {
    return cache.Get(Folders::OfThisUser(), "/a", "now", check).status();
  };
  EXPECT_TRUE(absl::IsAborted(get(changed_meanwhile)));
  EXPECT_EQ(checks, 2);
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_TRUE(get([&](ImageSource*) { return absl::OkStatus(); }).ok());
  EXPECT_TRUE(get(changed_meanwhile).ok()) << "kept images were checked";
  EXPECT_EQ(checks, 2);
}

TEST(ImageCache, RemembersNoFailure) {
  bool fail = true;
  FakeHooks hooks;
  ImageCache cache(2,
                   [&](const Folders&, const std::string&,
                       const SlideChoice&) -> StatusOr<std::unique_ptr<ImageSource>> {
                     if (fail) return absl::UnavailableError("open: not now");
                     return std::unique_ptr<ImageSource>(std::make_unique<FakeImage>(hooks));
                   });
  EXPECT_FALSE(cache.Get(Folders::OfThisUser(), "/a").ok());
  fail = false;
  EXPECT_TRUE(cache.Get(Folders::OfThisUser(), "/a").ok());
}

}  // namespace
}  // namespace patchbay::workers
