// The contract of every op of the table, as a chain of one: 200 draws with the same bits at every
// width of register and on a GPU, odd sides, nothing written beside the output, refusals of what
// its row excludes, and an oracle: a test by name, or the formula of the op's page.
#include "tests/contract/op_contract.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "ops/icc_to_srgb/icc_lookup.h"
#include "runtime/os/file.h"
#include "runtime/os/folders.h"
#include "tests/ops/float_steps.h"
#include "tests/ops/python_oracle.h"
#include "tests/ops/volume_steps.h"

namespace patchbay::ops {
namespace {

constexpr std::uint64_t kDrawsAnOp = 200;

/// Tests that hold ops against a public package, or a formula of their own. Other ops have the
/// formula on their page.
constexpr std::pair<const char*, const char*> kOracles[] = {
    {"crop", "Crop.KeepsTheOpContract"},
    {"flip", "ChainOracle.NumpyAgreesOnNoise"},
    {"rotate90", "ChainOracle.NumpyAgreesOnNoise"},
    {"affine", "FloatOracle.PythonAgreesOnNoise"},
    {"elastic", "FloatOracle.PythonAgreesOnNoise"},
    {"icc_to_srgb", "IccLookup.IsTetrahedralInterpolation"},
    {"stain_normalize", "FloatOracle.PythonAgreesOnNoise"},
    {"stain_jitter", "FloatOracle.PythonAgreesOnNoise"},
    {"hed_jitter", "FloatOracle.PythonAgreesOnNoise"},
    {"color_jitter", "FloatOracle.PythonAgreesOnNoise"},
    {"window", "VolumeOracle.NumPyAndSciPyMakeTheSamePatches"},
    {"ct_normalize", "VolumeOracle.NumPyAndSciPyMakeTheSamePatches"},
    {"zscore", "VolumeOracle.NumPyAndSciPyMakeTheSamePatches"},
    {"percentile", "VolumeOracle.NumPyAndSciPyMakeTheSamePatches"},
    {"gaussian_blur", "FloatOracle.PythonAgreesOnNoise"},
    {"gaussian_noise", "FloatOracle.PythonAgreesOnNoise"},
    {"brightness", "VolumeOracle.NumPyAndSciPyMakeTheSamePatches"},
    {"contrast", "VolumeOracle.NumPyAndSciPyMakeTheSamePatches"},
    {"low_resolution", "VolumeOracle.NumPyAndSciPyMakeTheSamePatches"},
    {"gamma", "VolumeOracle.NumPyAndSciPyMakeTheSamePatches"},
    {"normalize", "ChainOracle.NumpyAgreesOnNoise"},
    {"cast", "Cast.HalfBitsAreThoseOfTheProcessor"}};

/// Facts of the image that any op needs.
struct ImageOfOps {
  plan::MacenkoFit fit = OtherFit();
  plan::ReinhardFit reinhard = OtherReinhard();
  IccLookup icc = [] {
    std::vector<double> levels;
    for (std::size_t i = 0; i < 3 * kIccNodes; ++i) {
      levels.push_back(static_cast<double>(i * 7919 % 300));
    }
    return *IccLookup::FromLevels(levels);
  }();
  plan::VolumeFacts facts = VolumeStepFacts();

  ImageColours Colours() const {
    ImageColours colours = &fit;
    colours.reinhard = &reinhard;
    colours.icc = &icc;
    return colours;
  }
};

Json StepOf(const plan::OpRow& op, bool volume) {
  return {{op.name(), volume && !op.volume_example.is_null() ? op.volume_example : op.example}};
}

bool IsOfVolumes(const plan::OpRow& op) {
  return op.axes == plan::OpAxes::kVolume || op.axes == plan::OpAxes::kDepth ||
         !op.volume_example.is_null();
}

/// Chains of the op alone, one a draw: sides of one, odd ones and whole registers, every type of
/// image and of batch, both layouts.
std::vector<ChainOptions> ChainsOf(const plan::OpRow& op) {
  constexpr Extent kPlanes[] = {{1, 1, 1},   {1, 1, 7},   {1, 5, 1},
                                {1, 33, 19}, {1, 16, 32}, {1, 21, 65}};
  constexpr Extent kVolumes[] = {{1, 11, 9}, {5, 9, 1}, {6, 11, 33}, {5, 12, 16}};
  constexpr int kChannels[] = {1, 3, 4};  // and kMaxChannels
  std::vector<ChainOptions> chains;
  const bool in_planes = op.axes != plan::OpAxes::kVolume, in_depth = IsOfVolumes(op);
  for (std::uint64_t i = 0; i < kDrawsAnOp; ++i) {
    const bool volume = in_depth && (!in_planes || i % 2 == 1);
    const std::uint64_t n = in_depth && in_planes ? i / 2 : i;
    ChainOptions options;
    options.patch = volume ? kVolumes[n % std::size(kVolumes)] : kPlanes[n % std::size(kPlanes)];
    if (!volume && op.check_plane && !op.check_plane(op.example, options.patch).ok()) {
      options.patch.x = options.patch.y = 16;
    }
    options.kind = volume ? plan::PatchKind::kVolume : plan::PatchKind::kPlane;
    options.channels = !op.IsPerChannel() ? 3 : n % 50 == 7 ? kMaxChannels : kChannels[n / 2 % 3];
    if (volume && options.patch.z == 1) options.channels = 1;  // others may be a slide's
    options.source_dtype = op.images[n % op.images.size()];
    options.dtype = kPatchTypes[n / 3 % std::size(kPatchTypes)];
    options.layout = n / 5 % 2 == 0 ? PatchLayout::kNchw : PatchLayout::kNhwc;
    options.augment = Json::array({StepOf(op, volume)});
    chains.push_back(std::move(options));
  }
  return chains;
}

DrawKey ContractKey(std::uint64_t ordinal) { return {23, 1, ordinal, 0, DrawStream::kParameters}; }

std::vector<std::byte> SourceOf(const Chain& chain, const DrawKey& key,
                                const plan::VolumeFacts& facts) {
  const std::int64_t values = chain.SourceExtent(key, facts).Pixels() * chain.options().channels;
  return NoiseBytes(static_cast<std::size_t>(values), chain.options().source_dtype, key.ordinal);
}

constexpr std::size_t kGuardBytes = 128;  ///< marks on each side of a patch

/// The finished patch, made from contiguous noise, with guard bytes before and after it.
std::vector<std::byte> MadeGuarded(const Chain& chain, const DrawKey& key,
                                   const ImageOfOps& image) {
  std::vector<std::byte> source = SourceOf(chain, key, image.facts), scratch;
  const Extent size = chain.SourceExtent(key, image.facts);
  const auto view = ContiguousView<4>(source.data(), chain.options().source_dtype,
                                      {size.z, size.y, size.x, chain.options().channels});
  std::vector<std::byte> memory(chain.patch_bytes() + 2 * kGuardBytes, std::byte{0xC3});
  const Status status =
      chain.Run(view, key, std::span(memory).subspan(kGuardBytes, chain.patch_bytes()), scratch,
                image.Colours(), &image.facts);
  EXPECT_TRUE(status.ok()) << status;
  for (std::size_t i = 0; i < kGuardBytes; ++i) {
    EXPECT_EQ(memory[i], std::byte{0xC3}) << "written before the output";
    EXPECT_EQ(memory[memory.size() - 1 - i], std::byte{0xC3}) << "written behind the output";
  }
  return memory;
}

std::string NameOf(const ChainOptions& options, std::uint64_t draw) {
  return StrCat("draw ", draw, ": ", DumpJson(options.augment), " ", options.patch.ToString(),
                " x ", options.channels, " ", patchbay::NameOf(options.source_dtype), " to ",
                patchbay::NameOf(options.dtype));
}

class OpContract : public testing::TestWithParam<const plan::OpRow*> {
 protected:
  const plan::OpRow& op_ = *GetParam();
  const ImageOfOps image_;
};

TEST_P(OpContract, EveryWidthOfRegisterGivesTheSameBits) {
  std::uint64_t draw = 0;
  for (ChainOptions& options : ChainsOf(op_)) {
    SCOPED_TRACE(NameOf(options, draw));
    std::vector<std::byte> plain;
    for (const CpuLevel level : kCpuLevels) {
      options.cpu_level = level;
      const auto chain = Chain::Compile(options);
      ASSERT_TRUE(chain.ok()) << chain.status();
      const auto made = MadeGuarded(*chain, ContractKey(draw), image_);
      if (plain.empty()) plain = made;
      ASSERT_EQ(made, plain) << chain->cpu_path();
      ASSERT_EQ(MadeGuarded(*chain, ContractKey(draw), image_), plain) << "again";
    }
    ++draw;
  }
}

/// In 20 draws the op's example changes some pixels of a patch of 16 x 16.
TEST_P(OpContract, ItsExampleActs) {
  ChainOptions options;
  const bool volume = op_.axes == plan::OpAxes::kVolume;
  options.patch = volume ? Extent{5, 16, 16} : Extent{1, 16, 16};
  options.channels = volume ? 1 : 3;
  options.source_dtype = op_.images.back();
  const auto whole = Chain::Compile(options);
  options.augment = Json::array({StepOf(op_, volume)});
  const auto chain = Chain::Compile(options);
  ASSERT_TRUE(whole.ok() && chain.ok()) << chain.status();
  std::size_t acted = 0;
  for (std::uint64_t draw = 0; draw < 20; ++draw) {
    const auto made = MadeGuarded(*chain, ContractKey(draw), image_);
    acted += chain->SourceExtent(ContractKey(draw), image_.facts) != options.patch ||
                     made != MadeGuarded(*whole, ContractKey(draw), image_)
                 ? 1
                 : 0;
  }
  EXPECT_GE(acted, 10u) << "rotate90 turns three of four";
}

TEST_P(OpContract, RefusesWhatItsRowExcludes) {
  const bool volume = op_.axes == plan::OpAxes::kVolume;
  ChainOptions fits;
  fits.patch = volume ? Extent{5, 16, 16} : Extent{1, 16, 16};
  fits.channels = volume ? 1 : 3;
  fits.source_dtype = op_.images.front();
  fits.augment = Json::array({StepOf(op_, volume)});
  const auto refused = [](const ChainOptions& options) {
    const Status status = Chain::Compile(options).status();
    return absl::IsInvalidArgument(status) &&
           status.message().find("key 'augment[") != std::string::npos;
  };
  ASSERT_TRUE(Chain::Compile(fits).ok()) << Chain::Compile(fits).status();
  for (const DType dtype : kVolumeSourceTypes) {
    const bool takes = std::count(op_.images.begin(), op_.images.end(), dtype) != 0;
    ChainOptions other = fits;
    other.source_dtype = dtype;
    EXPECT_EQ(refused(other), !takes) << patchbay::NameOf(dtype);
  }
  ChainOptions channels = fits;
  channels.channels = volume ? 3 : 1;
  EXPECT_EQ(refused(channels), !op_.IsPerChannel());
  ChainOptions twice = fits;
  twice.augment.push_back(twice.augment[0]);
  EXPECT_EQ(refused(twice), op_.needs.once) << "twice";
  ChainOptions of_volumes = fits;
  of_volumes.patch.z = 5;
  of_volumes.channels = 1;
  of_volumes.kind = plan::PatchKind::kResampled;
  of_volumes.augment = Json::array({StepOf(op_, true)});
  EXPECT_EQ(refused(of_volumes), op_.axes == plan::OpAxes::kPlane) << "of volumes";
  ChainOptions unknown = fits;
  unknown.augment[0][op_.name()]["no_option"] = 1;
  EXPECT_TRUE(refused(unknown) || !Chain::Compile(unknown).ok());
}

/// The values of an op of one value, by the formula of its page in NumPy.
void ExpectFormulaOfThePage(const plan::OpRow& op, const ImageOfOps& image) {
  const PythonOracle oracle(PATCHBAY_PAGE_ORACLE, "numpy");
  if (!oracle.missing().empty()) GTEST_SKIP() << oracle.missing();
  Json request = {{"page", StrCat(PATCHBAY_OPS, "/", op.name(), "/", op.name(), ".md")},
                  {"op", op.name()},
                  {"cases", Json::array()}};
  std::vector<std::string> made;
  for (ChainOptions options : ChainsOf(op)) {
    options.dtype = DType::kFloat32;
    options.layout = PatchLayout::kNhwc;
    const auto chain = Chain::Compile(options);
    ASSERT_TRUE(chain.ok()) << chain.status();
    const DrawKey key = ContractKey(made.size());
    const auto source = SourceOf(*chain, key, image.facts), patch = MadeGuarded(*chain, key, image);
    std::ofstream(oracle.PathOf(StrCat(made.size(), ".source")), std::ios::binary)
        .write(reinterpret_cast<const char*>(source.data()),
               static_cast<std::streamsize>(source.size()));
    request["cases"].push_back({{"dtype", patchbay::NameOf(options.source_dtype)},
                                {"in_depth", chain->is_volume()},
                                {"options", options.augment[0][op.name()]}});
    made.emplace_back(reinterpret_cast<const char*>(patch.data()) + kGuardBytes,
                      chain->patch_bytes());
  }
  oracle.Ask(request);
  for (std::size_t i = 0; i < made.size() && !testing::Test::HasFailure(); ++i) {
    EXPECT_EQ(oracle.Read(StrCat(i, ".raw")), made[i]) << DumpJson(request["cases"][i]);
  }
}

/// A test whose file does not name the op cannot hold it.
void ExpectNames(const std::string& file, const std::string& op) {
  const auto text = ReadFile(Folders::OfThisUser(), file, std::size_t{1} << 20);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_NE(text->find(StrCat("\"", op, "\"")), std::string::npos) << file << " has no " << op;
}

TEST_P(OpContract, IsHeldAgainstAnOracle) {
  const auto* entry = std::find_if(std::begin(kOracles), std::end(kOracles),
                                   [&](const auto& row) { return op_.name() == row.first; });
  if (entry == std::end(kOracles)) return ExpectFormulaOfThePage(op_, image_);
  const auto& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      if (StrCat(suite.name(), ".", test.name()) == entry->second) {
        // The compiler's name of the file is relative to the build's folder.
        const std::string name = std::filesystem::path(test.file()).filename();
        const auto folder = std::filesystem::path(PATCHBAY_PAGE_ORACLE).parent_path();
        return ExpectNames(folder / name, op_.name());
      }
    }
  }
  ADD_FAILURE() << "no test is called " << entry->second;
}

class OpContractOnGpu : public OpContract {};

TEST_P(OpContractOnGpu, HasTheBitsOfTheCpu) {
  PB_NEED_GPU();
  auto stream = memory::OwnedGpuStream::Create();
  ASSERT_TRUE(stream.ok()) << stream.status();
  DeviceArena arena;
  std::uint64_t draw = 0;
  for (const ChainOptions& options : ChainsOf(op_)) {
    SCOPED_TRACE(NameOf(options, draw));
    const auto chain = Chain::Compile(options);
    ASSERT_TRUE(chain.ok()) << chain.status();
    const auto device = DeviceChain::Create(*chain, stream->get());
    ASSERT_TRUE(device.ok()) << device.status();
    const DrawKey key = ContractKey(draw++);
    const auto source = SourceOf(*chain, key, image_.facts);
    const auto expected = MadeGuarded(*chain, key, image_);
    std::vector<std::byte> made(expected.size(), std::byte{0xC3});
    auto d_source = memory::DeviceBlock::Allocate(source.size());
    auto d_out = memory::DeviceBlock::Allocate(made.size());
    ASSERT_TRUE(d_source.ok() && d_out.ok());
    ASSERT_TRUE(memory::CopyToDevice(d_source->d_data(), source, stream->get()).ok());
    ASSERT_TRUE(memory::CopyToDevice(d_out->d_data(), made, stream->get()).ok());
    const DevicePatch patch{d_source->d_data(), d_out->d_data() + kGuardBytes, key,
                            image_.Colours(), image_.facts};
    ASSERT_TRUE(device->Begin(arena, 1).ok());
    const Status launched = device->Launch({&patch, 1}, arena, stream->get());
    ASSERT_TRUE(launched.ok()) << launched;
    ASSERT_TRUE(memory::CopyToHost(made, d_out->d_data(), stream->get()).ok());
    ASSERT_TRUE(stream->WaitSync().ok());
    ASSERT_EQ(made, expected);
  }
}

std::vector<const plan::OpRow*> Rows() {
  std::vector<const plan::OpRow*> rows;
  for (const plan::OpRow& row : Table().rows()) rows.push_back(&row);
  return rows;
}
std::string NameOfRow(const testing::TestParamInfo<const plan::OpRow*>& row) {
  return row.param->name();
}
INSTANTIATE_TEST_SUITE_P(Ops, OpContract, testing::ValuesIn(Rows()), NameOfRow);
INSTANTIATE_TEST_SUITE_P(Ops, OpContractOnGpu, testing::ValuesIn(Rows()), NameOfRow);

}  // namespace
}  // namespace patchbay::ops
