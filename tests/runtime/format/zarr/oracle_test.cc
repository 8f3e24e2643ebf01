// Against zarr-python 3 and TensorStore: we read what they read, and they read what we write.
#include "runtime/format/zarr/verify.h"
#include "tests/runtime/format/zarr/zarr_fixture.h"

namespace patchbay::zarr {
namespace {

/// The stored elements as the oracle hashes them, or the reader's refusal.
StatusOr<std::string> HashOf(const std::string& path) {
  PB_ASSIGN_OR_RETURN(const Array array, Array::Open(Folders::OfThisUser(), path));
  PB_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadAll(array));
  return Sha256Of(std::span<const std::byte>(bytes)).Hex();
}

/// Arrays that zarr-python reads and we refuse; each for a reason stated in the README.
bool MayBeRefused(const std::string& message) {
  for (const char* reason :
       {"codec pcodec is", "codec zfpy is", "codec vlen-utf8 is", "codec json2 is", "data type "}) {
    if (message.find(reason) != std::string::npos) return true;
  }
  return false;
}

TEST(ZarrOracle, EveryThirdPartyArrayReadsAsZarrPythonReadsItOrIsRefusedByName) {
  const std::string data = TestData() + "/zarr";
  if (TestData().empty() || !std::filesystem::exists(data)) GTEST_SKIP() << "no test data";
  if (!HasOracle()) GTEST_SKIP() << "no Python with zarr 3 and tensorstore";
  const auto answer = AskOracle("read " + data);
  ASSERT_TRUE(answer.ok()) << answer.status();
  int equal = 0;
  std::vector<std::string> refused;
  for (const auto& [name, expected] : answer->items()) {
    const auto ours = HashOf(data + "/" + name);
    if (ours.ok() && expected.contains("sha256")) {
      EXPECT_EQ(*ours, expected["sha256"].get<std::string>()) << name;
      ++equal;
    } else if (!ours.ok()) {
      EXPECT_TRUE(absl::IsUnimplemented(ours.status())) << name << ": " << ours.status();
      EXPECT_TRUE(MayBeRefused(std::string(MessageOf(ours.status())))) << ours.status();
      EXPECT_NE(MessageOf(ours.status()).find(name.substr(name.rfind('/') + 1)),
                std::string_view::npos)
          << ours.status();
      refused.push_back(name + (expected.contains("error") ? "" : " (zarr-python reads it)"));
    }
  }
  EXPECT_GE(equal, 85);
  RecordProperty("equal", equal);
  for (const std::string& name : refused) std::cout << "refused: " << name << "\n";
  std::cout << "equal: " << equal << ", refused: " << refused.size() << "\n";
}

TEST(ZarrOracle, EveryCodecLayoutAndFillValueZarrPythonWritesReadsTheSame) {
  if (!HasOracle()) GTEST_SKIP() << "no Python with zarr 3 and tensorstore";
  const TempFolder folder;
  const auto answer = AskOracle("write " + folder.path());
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_GE(answer->size(), 50u);
  for (const auto& [name, expected] : answer->items()) {
    ASSERT_TRUE(expected.contains("sha256")) << name << ": " << DumpJson(expected);
    const auto ours = HashOf(folder.path() + "/" + name);
    ASSERT_TRUE(ours.ok()) << name << ": " << ours.status();
    EXPECT_EQ(*ours, expected["sha256"].get<std::string>()) << name;
  }
}

TEST(ZarrOracle, RandomRegionsOfForeignArraysEqualTheWholeRead) {
  if (!HasOracle()) GTEST_SKIP() << "no Python with zarr 3 and tensorstore";
  const TempFolder folder;
  const auto answer = AskOracle("write " + folder.path());
  ASSERT_TRUE(answer.ok()) << answer.status();
  std::uint64_t seed = 20240117;
  for (const auto& [name, expected] : answer->items()) {
    auto array = Array::Open(Folders::OfThisUser(), folder.path() + "/" + name);
    ASSERT_TRUE(array.ok()) << array.status();
    const ArrayMetadata& m = array->metadata();
    const auto whole = ReadAll(*array);
    ASSERT_TRUE(whole.ok()) << whole.status();
    const auto element = static_cast<std::int64_t>(SizeOf(m.dtype));
    for (int round = 0; round < 20; ++round) {
      Region region;
      TensorView view;
      view.dtype = m.dtype;
      view.rank = m.rank();
      // Gaps between all elements: nothing outside the region may be touched.
      std::int64_t stride = 2 * element;
      for (int i = m.rank() - 1; i >= 0; --i) {
        const auto a = static_cast<std::size_t>(i);
        region.origin[a] =
            static_cast<std::int64_t>(Mix(++seed) % static_cast<std::uint64_t>(m.shape[a]));
        region.shape[a] =
            1 + static_cast<std::int64_t>(
                    Mix(++seed) % static_cast<std::uint64_t>(m.shape[a] - region.origin[a]));
        view.shape[a] = region.shape[a];
        view.stride_bytes[a] = stride;
        stride *= region.shape[a];
      }
      std::vector<std::byte> out(static_cast<std::size_t>(stride), std::byte{0xa5});
      view.data = out.data();
      const Status status = array->ReadRegion(region, view);
      ASSERT_TRUE(status.ok()) << name << ": " << status;
      for (std::int64_t i = 0; i < stride / (2 * element); ++i) {
        std::int64_t rest = i, from = 0, scale = element;
        for (int d = m.rank() - 1; d >= 0; --d) {
          const auto a = static_cast<std::size_t>(d);
          from += (region.origin[a] + rest % region.shape[a]) * scale;
          rest /= region.shape[a];
          scale *= m.shape[a];
        }
        ASSERT_EQ(std::memcmp(out.data() + 2 * i * element, whole->data() + from,
                              static_cast<std::size_t>(element)),
                  0)
            << name << " seed " << seed;
        ASSERT_EQ(out[static_cast<std::size_t>((2 * i + 1) * element)], std::byte{0xa5}) << name;
      }
    }
  }
}

struct WriterCase {
  StoreCodec codec;
  DType dtype;
  int channels;
};

class WrittenStore : public testing::TestWithParam<WriterCase> {};

TEST_P(WrittenStore, OpensInZarrPythonAndTensorStoreWithEqualPixels) {
  if (!HasOracle()) GTEST_SKIP() << "no Python with zarr 3 and tensorstore";
  const WriterCase& c = GetParam();
  const TempFolder folder;
  ImageStoreSpec spec;
  spec.settings.codec = c.codec;
  spec.settings.codec_level = 3;
  spec.settings.dtype = c.dtype;
  spec.settings.channels = c.channels;
  spec.settings.chunk = Flat(64, 64);
  spec.settings.shard = Flat(128, 128);
  spec.levels = {Flat(301, 270), Flat(151, 135), Flat(76, 68)};
  spec.spacing = SpacingOfMpp(0.5, 0.25);
  spec.attributes = {{"source_kind", "aperio"}, {"source_bytes", 12345}};
  std::vector<TestImage> images;
  for (const Extent& l : spec.levels) {
    images.push_back(MakeImage(c.dtype, l.y, l.x, c.channels, 7));
  }
  WriteStore(folder / "s.zarr", spec, images);
  const auto answer = AskOracle("levels " + (folder / "s.zarr"));
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_EQ(answer->size(), 3u);
  for (std::size_t l = 0; l < 3; ++l) {
    const TestImage& image = images[l];
    // The oracle hashes (c, y, x).
    std::vector<std::byte> planes;
    const std::size_t element = SizeOf(image.dtype);
    for (std::int64_t ch = 0; ch < image.channels; ++ch) {
      for (std::int64_t p = 0; p < image.height * image.width; ++p) {
        const auto* from =
            image.bytes.data() + static_cast<std::size_t>(p * image.channels + ch) * element;
        planes.insert(planes.end(), from, from + element);
      }
    }
    const std::string expected = Sha256Of(std::span<const std::byte>(planes)).Hex();
    EXPECT_EQ((*answer)[l]["zarr"], expected);
    EXPECT_EQ((*answer)[l]["tensorstore"], expected);
    EXPECT_EQ((*answer)[l]["names"], Json({"c", "y", "x"}));
    const auto ours = HashOf(folder / ("s.zarr/" + std::to_string(l)));
    ASSERT_TRUE(ours.ok()) << ours.status();
    EXPECT_EQ(*ours, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, WrittenStore,
                         testing::Values(WriterCase{StoreCodec::kBloscZstd, DType::kUint8, 3},
                                         WriterCase{StoreCodec::kBloscLz4, DType::kUint8, 3},
                                         WriterCase{StoreCodec::kZstd, DType::kUint8, 3},
                                         WriterCase{StoreCodec::kBloscZstd, DType::kUint16, 4},
                                         WriterCase{StoreCodec::kBloscLz4, DType::kUint16, 1}));

class WrittenVolume : public testing::TestWithParam<DType> {};

TEST_P(WrittenVolume, OpensInZarrPythonAndTensorStoreWithEqualVoxels) {
  if (!HasOracle()) GTEST_SKIP() << "no Python with zarr 3 and tensorstore";
  const TempFolder folder;
  ImageStoreSpec spec;
  spec.settings = VolumeSettings(GetParam());
  spec.settings.chunk = {8, 16, 32};
  spec.settings.shard = {32, 32, 64};
  spec.levels = {{45, 70, 90}, {23, 35, 45}};
  spec.spacing.z = AxisSpacing{2.5, LengthUnit::kMillimeter};
  std::vector<TestImage> volumes;
  for (const Extent& l : spec.levels) {
    volumes.push_back(GetParam() == DType::kUint8    ? MakeVolume<std::uint8_t>(GetParam(), l, 7)
                      : GetParam() == DType::kUint16 ? MakeVolume<std::uint16_t>(GetParam(), l, 7)
                      : GetParam() == DType::kInt16  ? MakeVolume<std::int16_t>(GetParam(), l, 7)
                                                     : MakeVolume<float>(GetParam(), l, 7));
  }
  WriteStore(folder / "v.zarr", spec, volumes);
  const auto answer = AskOracle("levels " + (folder / "v.zarr"));
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_EQ(answer->size(), 2u);
  for (std::size_t l = 0; l < 2; ++l) {
    const std::string expected = Sha256Of(std::span<const std::byte>(volumes[l].bytes)).Hex();
    EXPECT_EQ((*answer)[l]["zarr"], expected);
    EXPECT_EQ((*answer)[l]["tensorstore"], expected);
    EXPECT_EQ((*answer)[l]["names"], Json({"z", "y", "x"}));
    const auto ours = HashOf(folder / ("v.zarr/" + std::to_string(l)));
    ASSERT_TRUE(ours.ok()) << ours.status();
    EXPECT_EQ(*ours, expected);
  }
  const auto report = VerifyStore(Folders::OfThisUser(), folder / "v.zarr");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->Clean()) << testing::PrintToString(report->bad);
}

INSTANTIATE_TEST_SUITE_P(Types, WrittenVolume,
                         testing::Values(DType::kUint8, DType::kUint16, DType::kInt16,
                                         DType::kFloat32));

}  // namespace
}  // namespace patchbay::zarr
