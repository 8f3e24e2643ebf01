// The chain against NumPy, on noise and on stained tissue.
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "ops/chain/chain.h"
#include "ops/flip/flip.h"
#include "ops/rotate90/rotate90.h"
#include "tests/contract/op_contract.h"
#include "tests/ops/python_oracle.h"

namespace patchbay::ops {
namespace {

constexpr std::int64_t kPatchSide = 101;

/// One chain and the draw key, with whose draws NumPy computes the expected result.
struct ChainCase {
  ChainOptions options;
  DrawKey key;
  Json request;
};

ChainCase MakeChainCase(std::uint64_t ordinal, DType dtype, PatchLayout layout, bool normalize) {
  ChainCase made;
  made.key = {99, 2, ordinal, 0, DrawStream::kParameters};
  made.options.patch.y = made.options.patch.x = kPatchSide;
  made.options.dtype = dtype;
  made.options.layout = layout;
  // As trainers normalise; and with values on ties of uint8 and next to them, where float32
  // arithmetic, half up, truncation and rounding straight from double all give other bytes.
  const bool on_ties = ordinal % 2 == 1;
  const Json mean = on_ties ? Json{-0.1, 0.0, 0.0} : Json{0.70, 0.55, 0.70};
  const Json std = on_ties ? Json{1.0 / 255, 2.0 / 255, 2.0 / 255} : Json{0.2, 0.21, 0.19};
  if (normalize) {
    made.options.preprocess.push_back(
        Json{{"normalize", {{"scale", 255}, {"mean", mean}, {"std", std}}}});
  }
  made.options.augment =
      Json::array({Json{{"flip", Json::object()}}, Json{{"rotate90", Json::object()}}});
  DrawKey own = made.key;
  own.op_occurrence = plan::Occurrence(FlipOptions::kNumber, 0);
  const FlipParameters flip = DrawFlip({}, own);
  own.op_occurrence = plan::Occurrence(Rotate90Options::kNumber, 0);
  made.request = {{"turns", DrawRotate90(own).turns},
                  {"horizontal", flip.horizontal},
                  {"vertical", flip.vertical},
                  {"scale", normalize ? Json(255) : Json(nullptr)},
                  {"mean", mean},
                  {"std", std},
                  {"dtype", NameOf(dtype)},
                  {"layout", layout == PatchLayout::kNchw ? "nchw" : "nhwc"}};
  return made;
}

std::vector<ChainCase> ChainCases() {
  std::vector<ChainCase> cases;
  for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    for (const PatchLayout layout : {PatchLayout::kNchw, PatchLayout::kNhwc}) {
      for (std::uint64_t i = 0; i < 26; ++i) {
        cases.push_back(MakeChainCase(cases.size(), dtype, layout, i % 3 != 0));
      }
    }
  }
  return cases;
}

void ExpectNumpyAgrees(const Json& image) {
  const PythonOracle oracle(PATCHBAY_OPS_ORACLE, "numpy, PIL");
  if (!oracle.missing().empty()) GTEST_SKIP() << oracle.missing();
  const std::vector<ChainCase> cases = ChainCases();
  Json request = {{"image", image}, {"size", kPatchSide}, {"cases", Json::array()}};
  for (const ChainCase& c : cases) request["cases"].push_back(c.request);
  oracle.Ask(request);
  std::string raw = oracle.Read("source.raw");
  ASSERT_EQ(raw.size(), static_cast<std::size_t>(kPatchSide * kPatchSide * 3));
  const TensorView source = ContiguousView<3>(reinterpret_cast<std::byte*>(raw.data()),
                                              DType::kUint8, {kPatchSide, kPatchSide, 3});
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string expected = oracle.Read(StrCat(i, ".raw"));
    for (const CpuLevel level : {CpuLevel::kTable, CpuLevel::kAvx2, CpuLevel::kBest}) {
      ChainOptions options = cases[i].options;
      options.cpu_level = level;
      const auto chain = Chain::Compile(options);
      ASSERT_TRUE(chain.ok());
      std::vector<std::byte> out(chain->patch_bytes()), scratch;
      ASSERT_TRUE(chain->Run(source, cases[i].key, out, scratch).ok());
      ASSERT_EQ(out.size(), expected.size());
      EXPECT_EQ(std::memcmp(out.data(), expected.data(), out.size()), 0)
          << DumpJson(cases[i].request) << " path " << chain->cpu_path();
    }
  }
}

TEST(ChainOracle, NumpyAgreesOnNoise) { ExpectNumpyAgrees(nullptr); }

TEST(ChainOracle, NumpyAgreesOnStainedTissue) {
  const char* data = std::getenv("PATCHBAY_TEST_DATA");
  const std::string folder = data != nullptr ? data : "";
  for (const char* name : {"/stain/histolab/source-medium.png", "/stain/torchstain/source.png"}) {
    const std::string image = folder + name;
    if (!std::filesystem::exists(image)) GTEST_SKIP() << "no test data at PATCHBAY_TEST_DATA";
    ExpectNumpyAgrees(image);
  }
}

}  // namespace
}  // namespace patchbay::ops
