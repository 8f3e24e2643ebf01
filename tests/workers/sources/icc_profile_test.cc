// ICC profiles become lookups: against Little CMS at every pixel, against Pillow on a real slide,
// and hostile bytes.
#include "workers/sources/icc_profile.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "runtime/os/file.h"
#include "tests/workers/sources/crafted_tiff.h"
#include "tests/workers/sources/icc_fixtures.h"
#include "tests/workers/sources/python_oracle.h"
#include "workers/sources/openslide_source.h"

namespace patchbay::workers {
namespace {

/// The rounding of both to whole levels, and half a level between the nodes of the grid.
constexpr int kLargestDifference = 1;

std::vector<std::uint8_t> RandomPixels(std::size_t count, std::uint32_t seed) {
  std::vector<std::uint8_t> pixels;
  for (std::uint32_t i = 0; pixels.size() < 3 * count; ++i) {
    const PhiloxBlock block = Draw({seed, 0, 0, 0, DrawStream::kParameters}, i);
    for (const std::uint32_t word : block.word) pixels.push_back(static_cast<std::uint8_t>(word));
  }
  pixels.resize(3 * count);
  return pixels;
}

/// Haematoxylin and eosin in any amounts up to 2.
std::vector<std::uint8_t> StainedPixels(std::uint32_t count) {
  constexpr double kStains[2][3] = {{0.65, 0.70, 0.29}, {0.07, 0.99, 0.11}};
  std::vector<std::uint8_t> pixels;
  for (std::uint32_t i = 0; i < count; ++i) {
    const PhiloxBlock block = Draw({8, 0, 0, 0, DrawStream::kParameters}, i);
    const double h = 2 * double{UniformFloat(block.word[0])};
    const double e = 2 * double{UniformFloat(block.word[1])};
    for (int c = 0; c < 3; ++c) {
      const double level = 250 * std::exp(-h * kStains[0][c] - e * kStains[1][c]);
      pixels.push_back(static_cast<std::uint8_t>(std::nearbyint(level)));
    }
  }
  return pixels;
}

std::vector<int> Applied(const ops::IccLookup& lookup, const std::vector<std::uint8_t>& pixels) {
  std::vector<int> shown;
  for (std::size_t i = 0; i < pixels.size(); i += 3) {
    float rgb[3] = {static_cast<float>(pixels[i]), static_cast<float>(pixels[i + 1]),
                    static_cast<float>(pixels[i + 2])};
    lookup.Apply(&rgb[0], &rgb[1], &rgb[2], 1);
    for (const float v : rgb) shown.push_back(static_cast<int>(std::nearbyint(v)));
  }
  return shown;
}

std::vector<std::uint8_t> ByLibrary(const std::string& profile,
                                    const std::vector<std::uint8_t>& pixels) {
  const cmsHPROFILE from =
      cmsOpenProfileFromMem(profile.data(), static_cast<cmsUInt32Number>(profile.size()));
  const cmsHPROFILE to = cmsCreate_sRGBProfile();
  const cmsHTRANSFORM transform = cmsCreateTransform(
      from, TYPE_RGB_8, to, TYPE_RGB_8, INTENT_RELATIVE_COLORIMETRIC, cmsFLAGS_NOOPTIMIZE);
  std::vector<std::uint8_t> shown(pixels.size());
  cmsDoTransform(transform, pixels.data(), shown.data(),
                 static_cast<cmsUInt32Number>(pixels.size() / 3));
  cmsDeleteTransform(transform);
  cmsCloseProfile(from);
  cmsCloseProfile(to);
  return shown;
}

template <typename A, typename B>
int LargestDifference(const A& a, const B& b) {
  int largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<int>(a[i]) - static_cast<int>(b[i])));
  }
  return largest;
}

TEST(IccProfile, LookupOfCurvesAndPrimariesIsWhatTheLibraryMakesOfEveryPixel) {
  for (const double gamma : {1.8, 2.2, 2.4}) {
    const std::string profile = ScannerProfile(gamma);
    const auto lookup = LookupOfIccProfile(profile);
    ASSERT_TRUE(lookup.ok()) << lookup.status();
    const std::vector<std::uint8_t> pixels = StainedPixels(5000);
    const auto expected = ByLibrary(profile, pixels);
    EXPECT_GT(LargestDifference(expected, pixels), 10) << "the profile changes nothing";
    EXPECT_LE(LargestDifference(Applied(*lookup, pixels), expected), kLargestDifference) << gamma;
    // Colours that sRGB hardly shows are steep: 33 nodes are few for them.
    const auto any = RandomPixels(5000, 3);
    EXPECT_LE(LargestDifference(Applied(*lookup, any), ByLibrary(profile, any)), 40) << gamma;
  }
}

TEST(IccProfile, SrgbStaysAsItIs) {
  const auto lookup = LookupOfIccProfile(SavedProfile(cmsCreate_sRGBProfile()));
  ASSERT_TRUE(lookup.ok()) << lookup.status();
  const auto pixels = RandomPixels(5000, 4);
  EXPECT_EQ(LargestDifference(Applied(*lookup, pixels), pixels), 0);
}

TEST(IccProfile, LookupBecomesAProfileOfTheSameColours) {
  const auto lookup = LookupOfIccProfile(ScannerProfile(2.2, "Dr Jane Doe"));
  ASSERT_TRUE(lookup.ok()) << lookup.status();
  const auto profile = IccProfileOf(*lookup);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(*IccProfileOf(*lookup), *profile);
  EXPECT_EQ(profile->find("Jane"), std::string::npos);
  const auto again = LookupOfIccProfile(*profile);
  ASSERT_TRUE(again.ok()) << again.status();
  const auto pixels = StainedPixels(5000);
  EXPECT_LE(LargestDifference(Applied(*again, pixels), Applied(*lookup, pixels)), 1);
  EXPECT_LE(LargestDifference(ByLibrary(*profile, pixels), Applied(*lookup, pixels)), 1);
}

TEST(IccProfile, RealSlideIsShownAsPillowShowsIt) {
  if (TestDataFolder().empty()) GTEST_SKIP() << "PATCHBAY_TEST_DATA is not set";
  if (!HasPackages("numpy, PIL.ImageCms")) {
    GTEST_SKIP() << "no Python with Pillow and its Little CMS at PATCHBAY_PYTHON";
  }
  const std::string slide = TestDataFolder() + "/wsi/luna-1065626-ihc-j2k33003.svs";
  const auto image = OpenImage(Folders::OfThisUser(), slide);
  ASSERT_TRUE(image.ok()) << image.status();
  const auto lookup = (*image)->ToSrgb();
  ASSERT_TRUE(lookup.ok() && *lookup != nullptr) << lookup.status();
  std::vector<std::uint8_t> pixels(std::size_t{3} * 512 * 512);
  EncodedPatch encoded;
  ASSERT_TRUE((*image)->Fetch(1, Box2D(1024, 1024, 512, 512), encoded).ok());
  const TensorView view =
      ContiguousView<3>(reinterpret_cast<std::byte*>(pixels.data()), DType::kUint8, {512, 512, 3});
  ASSERT_TRUE((*image)->Decode(encoded, view, 255, *(*image)->MakeScratch()).ok());
  const auto file = zarr::OpenStoredFile(Folders::OfThisUser(), slide);
  ASSERT_TRUE(file.ok());
  const auto index = TiffIndex::Read(*file);
  const TiffEntry entry = *index->directories().front().icc_profile;
  std::string profile(entry.count, '\0');
  ASSERT_TRUE(
      (*file)->Read(entry.offset, std::as_writable_bytes(std::span(profile)), "slide").ok());
  const TemporaryFolder folder;
  const std::string raw(pixels.begin(), pixels.end());
  std::ofstream(folder.File("profile"), std::ios::binary) << profile;
  std::ofstream(folder.File("pixels"), std::ios::binary) << raw;
  ASSERT_TRUE(RunScript("icc_oracle.py", StrCat(folder.File("profile"), " ", folder.File("pixels"),
                                                " ", folder.File("out"))));
  const auto expected = ReadFile(Folders::OfThisUser(), folder.File("out"), raw.size());
  ASSERT_TRUE(expected.ok()) << expected.status();
  const std::vector<std::uint8_t> shown(expected->begin(), expected->end());
  EXPECT_GT(LargestDifference(shown, pixels), 10) << "the profile changes nothing";
  EXPECT_LE(LargestDifference(Applied(**lookup, pixels), shown), kLargestDifference);
}

TEST(IccProfile, BytesThatAreNoUsableProfileAreRefused) {
  const std::string profile = ScannerProfile(2.2, "Dr Jane Doe");
  const auto refusal = [](const std::string& bytes) {
    const auto lookup = LookupOfIccProfile(bytes);
    EXPECT_TRUE(absl::IsInvalidArgument(lookup.status())) << lookup.status();
    EXPECT_EQ(lookup.status().message().find("Doe"), std::string_view::npos);
    return std::string(lookup.status().message());
  };
  EXPECT_NE(refusal("").find("not a profile"), std::string::npos);
  EXPECT_NE(refusal(std::string(4096, 'x')).find("not a profile"), std::string::npos);
  EXPECT_NE(refusal(GreyProfile()).find("not of RGB"), std::string::npos);
  std::string printer = profile;
  printer.replace(12, 4, "prtr");
  EXPECT_NE(refusal(printer).find("not of a scanner"), std::string::npos);
  EXPECT_NE(refusal(std::string(kMaxIccProfileBytes + 1, ' ')).find("at most"), std::string::npos);
}

TEST(IccProfile, DamagedProfilesNeverCrash) {
  const std::string profile = ScannerProfile(2.2);
  int refused = 0;
  for (std::size_t size = 0; size < profile.size(); size += 3) {
    refused += LookupOfIccProfile(profile.substr(0, size)).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 0);
  for (std::uint32_t i = 0; i < 60; ++i) {
    const PhiloxBlock block = Draw({i, 0, 0, 0, DrawStream::kParameters}, 0);
    std::string flipped = profile;
    for (const std::uint32_t word : block.word) {
      flipped[word % flipped.size()] = static_cast<char>(word >> 24);
    }
    (void)LookupOfIccProfile(flipped).ok();
  }
}

TEST(IccProfile, TiffsOfAnyOpenerGiveTheProfileOfTheirImage) {
  const TemporaryFolder folder;
  CraftedImage image;
  FillFlat(image);
  ASSERT_TRUE(WriteTiff(folder.File("plain.tif"), {image}).ok());
  EXPECT_EQ(*(*OpenImage(Folders::OfThisUser(), folder.File("plain.tif")))->ToSrgb(), nullptr);
  image.icc_profile = ScannerProfile(2.2);
  const Digest expected = LookupOfIccProfile(image.icc_profile)->digest();
  for (const bool is_big : {false, true}) {
    const std::string path = folder.File(is_big ? "big.tif" : "small.tif");
    ASSERT_TRUE(WriteTiff(path, {image}, is_big).ok());
    const auto lookup = (*OpenImage(Folders::OfThisUser(), path))->ToSrgb();
    ASSERT_TRUE(lookup.ok() && *lookup != nullptr) << lookup.status();
    EXPECT_EQ((*lookup)->digest(), expected);
    const auto through_openslide = OpenOpenSlideImage(Folders::OfThisUser(), path);
    if (!through_openslide.ok()) continue;
    EXPECT_EQ((*(*through_openslide)->ToSrgb())->digest(), expected);
  }
  image.icc_profile = "no profile at all";
  ASSERT_TRUE(WriteTiff(folder.File("bad.tif"), {image}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(
      (*OpenImage(Folders::OfThisUser(), folder.File("bad.tif")))->ToSrgb().status()));
}

TEST(IccProfile, EntriesThatPointAstrayAreRefused) {
  const TemporaryFolder folder;
  CraftedImage image;
  FillFlat(image);
  ASSERT_TRUE(WriteTiff(folder.File("a.tif"), {image}).ok());
  const auto file = zarr::OpenStoredFile(Folders::OfThisUser(), folder.File("a.tif"));
  const auto refusal = [&](const TiffEntry& entry) {
    TiffDirectory directory;
    directory.icc_profile = entry;
    const auto lookup = LookupOfTiff(**file, directory);
    EXPECT_TRUE(absl::IsInvalidArgument(lookup.status())) << lookup.status();
    return std::string(lookup.status().message());
  };
  EXPECT_NE(refusal({34675, 3, 100, 8}).find("not bytes"), std::string::npos);
  EXPECT_NE(refusal({34675, 7, 100, ~std::uint64_t{0}}).find("past the end"), std::string::npos);
  EXPECT_NE(refusal({34675, 7, (*file)->size_bytes(), 8}).find("past the end"), std::string::npos);
  EXPECT_NE(refusal({34675, 7, std::uint64_t{1} << 40, 8}).find("at most"), std::string::npos);
}

}  // namespace
}  // namespace patchbay::workers
