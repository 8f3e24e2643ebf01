// The contract of every op, whatever it computes: the same bits again, through any strides, on
// every device; nothing written beside its output; views that do not fit refused.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/chain/chain.h"
#include "ops/chain/device_chain.h"
#include "runtime/core/strings.h"
#include "runtime/core/tensor_view.h"
#include "runtime/memory/device_block.h"
#include "tests/contract/known_ops.h"
#include "tests/contract/reference_image.h"

namespace patchbay::ops {

/// An op as a chain of one.
struct OpUnderTest {
  std::string name;
  Json step;            ///< as a config has it: {"flip": {...}}
  bool square = false;  ///< takes only square patches
  /// The values of the finished patch, given its whole source and the key the op draws with.
  std::function<ReferenceImage(const ReferenceImage& source, const DrawKey& key)> expected;
};

/// Bytes that look like noise and are the same every time. float32 values stay within 0..255.
inline std::vector<std::byte> NoiseBytes(std::size_t elements, DType dtype, std::uint64_t seed) {
  std::vector<std::byte> bytes(elements * SizeOf(dtype));
  std::uint64_t state = seed;
  for (std::size_t i = 0; i < elements; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    if (dtype == DType::kFloat32) {
      const float value = static_cast<float>(state >> 40) * (255.0f / 16777216.0f);
      std::memcpy(bytes.data() + 4 * i, &value, 4);
    } else {
      for (std::size_t b = 0; b < SizeOf(dtype); ++b) {
        bytes[i * SizeOf(dtype) + b] = static_cast<std::byte>(state >> (33 + 8 * b));
      }
    }
  }
  return bytes;
}

/// An image in memory with room around it: rows and pixels need not touch.
struct Spaced {
  std::vector<std::byte> memory;
  TensorView view;

  Spaced(DType dtype, std::array<std::int64_t, 3> shape, std::int64_t row_gap,
         std::int64_t pixel_gap) {
    const auto element = static_cast<std::int64_t>(SizeOf(dtype));
    view.dtype = dtype;
    view.rank = 3;
    view.stride_bytes[2] = element;
    view.stride_bytes[1] = (shape[2] + pixel_gap) * element;
    view.stride_bytes[0] = shape[1] * view.stride_bytes[1] + row_gap * element;
    std::copy(shape.begin(), shape.end(), view.shape.begin());
    memory.assign(static_cast<std::size_t>(shape[0] * view.stride_bytes[0]), std::byte{0xA5});
    view.data = memory.data();
  }

  std::byte* At(std::int64_t y, std::int64_t x, std::int64_t c) const {
    return view.data + y * view.stride_bytes[0] + x * view.stride_bytes[1] +
           c * view.stride_bytes[2];
  }
  /// The elements without the gaps, in order.
  std::vector<std::byte> Packed() const {
    std::vector<std::byte> bytes;
    for (std::int64_t y = 0; y < view.shape[0]; ++y) {
      for (std::int64_t x = 0; x < view.shape[1]; ++x) {
        const std::byte* pixel = At(y, x, 0);
        bytes.insert(bytes.end(), pixel,
                     pixel + view.shape[2] * static_cast<std::int64_t>(SizeOf(view.dtype)));
      }
    }
    return bytes;
  }
  void Fill(const std::vector<std::byte>& packed) {
    const auto pixel_bytes = static_cast<std::size_t>(view.shape[2]) * SizeOf(view.dtype);
    std::size_t at = 0;
    for (std::int64_t y = 0; y < view.shape[0]; ++y) {
      for (std::int64_t x = 0; x < view.shape[1]; ++x, at += pixel_bytes) {
        std::copy_n(packed.data() + at, pixel_bytes, At(y, x, 0));
      }
    }
  }
};

inline constexpr DType kPatchTypes[] = {DType::kUint8, DType::kFloat16, DType::kBfloat16,
                                        DType::kFloat32};
inline constexpr CpuLevel kCpuLevels[] = {CpuLevel::kTable, CpuLevel::kAvx2, CpuLevel::kBest};

/// One chain of the contract, on one source.
struct ContractCase {
  ChainOptions options;
  std::uint64_t ordinal = 0;

  DrawKey key() const { return {17, 1, ordinal, 0, DrawStream::kParameters}; }
  std::string Name(const OpUnderTest& op) const {
    return StrCat(op.name, " ", options.patch.y, "x", options.patch.x, "x", options.channels, " ",
                  NameOf(options.dtype),
                  options.layout == PatchLayout::kNchw ? " planar" : " interleaved", " ordinal ",
                  ordinal);
  }
};

/// Every shape, type and layout of a finished patch, each with several draws.
inline std::vector<ContractCase> ContractCases(const OpUnderTest& op) {
  constexpr std::array<std::int64_t, 3> kShapes[] = {{1, 1, 1},   {1, 7, 3},  {5, 1, 3},
                                                     {33, 19, 3}, {8, 16, 4}, {64, 65, 3}};
  std::vector<ContractCase> cases;
  for (const auto& [height, width, channels] : kShapes) {
    for (const DType dtype : kPatchTypes) {
      for (const PatchLayout layout : {PatchLayout::kNchw, PatchLayout::kNhwc}) {
        ContractCase made;
        made.options.augment = Json::array({op.step});
        made.options.patch.y = height;
        made.options.patch.x = op.square ? height : width;
        made.options.channels = static_cast<int>(channels);
        made.options.dtype = dtype;
        made.options.layout = layout;
        for (made.ordinal = 0; made.ordinal < 6; ++made.ordinal) cases.push_back(made);
      }
    }
  }
  return cases;
}

/// The key with which a chain's only op draws.
inline DrawKey OwnKey(const ContractCase& chain) {
  DrawKey own = chain.key();
  own.op_occurrence =
      plan::Occurrence(plan::SortOps(chain.options.preprocess, chain.options.augment)->at(0));
  return own;
}

/// Noise of the shape that a chain reads.
inline Spaced NoiseSource(const Chain& chain, std::int64_t row_gap = 0,
                          std::int64_t pixel_gap = 0) {
  const std::array<std::int64_t, 3> shape = {chain.source_extent().y, chain.source_extent().x,
                                             chain.options().channels};
  Spaced source(DType::kUint8, shape, row_gap, pixel_gap);
  source.Fill(
      NoiseBytes(static_cast<std::size_t>(shape[0] * shape[1] * shape[2]), DType::kUint8, 5));
  return source;
}

inline ReferenceImage ReferenceOf(const Spaced& source) {
  ReferenceImage image{source.view.shape[0], source.view.shape[1], source.view.shape[2]};
  return Filled(image, image.height, image.width,
                [&](std::int64_t y, std::int64_t x, std::int64_t c) {
                  return std::to_integer<int>(*source.At(y, x, c));
                });
}

/// The bytes that `run` writes between guards; empty when it failed or touched a guard.
inline std::vector<std::byte> GuardedRun(const Chain& chain, const ConstTensorView& source,
                                         const DrawKey& key) {
  constexpr std::size_t kGuard = 256;
  constexpr std::byte kMark{0xC3};
  std::vector<std::byte> memory(chain.patch_bytes() + 2 * kGuard, kMark), scratch;
  const Status status =
      chain.Run(source, key, std::span(memory).subspan(kGuard, chain.patch_bytes()), scratch);
  EXPECT_TRUE(status.ok()) << status;
  for (std::size_t i = 0; i < kGuard; ++i) {
    EXPECT_EQ(memory[i], kMark) << "written before the output";
    EXPECT_EQ(memory[memory.size() - 1 - i], kMark) << "written behind the output";
  }
  return {memory.begin() + kGuard, memory.end() - kGuard};
}

/// The reference's bits, on every path of the CPU, through any strides, again and again.
inline void ExpectReferenceBits(const OpUnderTest& op) {
  for (ContractCase& made : ContractCases(op)) {
    SCOPED_TRACE(made.Name(op));
    for (const CpuLevel level : kCpuLevels) {
      made.options.cpu_level = level;
      const auto chain = Chain::Compile(made.options);
      ASSERT_TRUE(chain.ok()) << chain.status();
      const Spaced source = NoiseSource(*chain), gapped = NoiseSource(*chain, 5, 2);
      const auto memory = source.memory;
      const auto expected = Finished(op.expected(ReferenceOf(source), OwnKey(made)),
                                     made.options.dtype, made.options.layout == PatchLayout::kNchw);
      ASSERT_EQ(GuardedRun(*chain, source.view, made.key()), expected) << chain->cpu_path();
      ASSERT_EQ(GuardedRun(*chain, source.view, made.key()), expected) << "again";
      ASSERT_EQ(GuardedRun(*chain, gapped.view, made.key()), expected) << "through strides";
      ASSERT_EQ(source.memory, memory) << "the input was written to";
    }
  }
}

inline void ExpectRefusals(const OpUnderTest& op) {
  ChainOptions options;
  options.augment = Json::array({op.step});
  options.patch.y = options.patch.x = 8;
  const auto chain = Chain::Compile(options);
  ASSERT_TRUE(chain.ok()) << chain.status();
  const Spaced source = NoiseSource(*chain);
  std::vector<std::byte> out(chain->patch_bytes() + 1), scratch;
  const auto refused = [&](const ConstTensorView& from, std::size_t bytes) {
    return chain->Run(from, {}, std::span(out).first(bytes), scratch).code() ==
           absl::StatusCode::kInvalidArgument;
  };
  const std::size_t bytes = chain->patch_bytes();
  ASSERT_FALSE(refused(source.view, bytes));
  EXPECT_TRUE(refused(source.view, bytes - 1)) << "too little output";
  EXPECT_TRUE(refused(source.view, bytes + 1)) << "too much output";
  const auto refuses = [&](auto change) {
    ConstTensorView wrong = source.view;
    change(wrong);
    return refused(wrong, bytes);
  };
  EXPECT_TRUE(refuses([](auto& v) { v.rank = 2; })) << "rank";
  EXPECT_TRUE(refuses([](auto& v) { v.shape[2] = 2; })) << "channels";
  EXPECT_TRUE(refuses([](auto& v) { v.shape[0] = 0; })) << "empty";
  EXPECT_TRUE(refuses([](auto& v) { v.shape[0] += 9; })) << "height";
  EXPECT_TRUE(refuses([](auto& v) { v.shape[1] -= 1; })) << "width";
  EXPECT_TRUE(refuses([](auto& v) { v.data = nullptr; })) << "no memory";
  EXPECT_TRUE(refuses([](auto& v) { v.dtype = DType::kInt64; })) << "dtype";
}

/// The CPU half of the contract.
inline void ExpectOpContract(const OpUnderTest& op) {
  ExpectReferenceBits(op);
  ExpectRefusals(op);
}

/// The same bits from the GPU, and nothing beside them. Call where ListGpus is not empty.
inline void ExpectDeviceTwin(const OpUnderTest& op) {
  constexpr std::size_t kGuard = 256;
  auto stream = memory::OwnedGpuStream::Create();
  ASSERT_TRUE(stream.ok()) << stream.status();
  for (const ContractCase& made : ContractCases(op)) {
    SCOPED_TRACE(made.Name(op));
    const auto chain = Chain::Compile(made.options);
    ASSERT_TRUE(chain.ok()) << chain.status();
    const auto device = DeviceChain::Create(*chain, stream->get());
    ASSERT_TRUE(device.ok()) << device.status();
    const Spaced source = NoiseSource(*chain);
    std::vector<std::byte> expected(chain->patch_bytes() + 2 * kGuard, std::byte{0xC3});
    std::vector<std::byte> found = expected;
    const auto made_on_cpu = GuardedRun(*chain, source.view, made.key());
    std::copy(made_on_cpu.begin(), made_on_cpu.end(), expected.begin() + kGuard);
    auto d_source = memory::DeviceBlock::Allocate(source.memory.size());
    auto d_out = memory::DeviceBlock::Allocate(found.size());
    ASSERT_TRUE(d_source.ok() && d_out.ok());
    ASSERT_TRUE(memory::CopyToDevice(d_source->d_data(), source.memory, stream->get()).ok());
    ASSERT_TRUE(memory::CopyToDevice(d_out->d_data(), found, stream->get()).ok());
    const DevicePatch patch{d_source->d_data(), d_out->d_data() + kGuard, made.key()};
    DeviceArena room;
    ASSERT_TRUE(device->Begin(room, 1).ok());
    const Status launched = device->Launch({&patch, 1}, room, stream->get());
    ASSERT_TRUE(launched.ok()) << launched;
    ASSERT_TRUE(memory::CopyToHost(found, d_out->d_data(), stream->get()).ok());
    ASSERT_TRUE(stream->WaitSync().ok());
    ASSERT_EQ(found, expected);
  }
}

}  // namespace patchbay::ops

/// In a test's body: goes on only where there is a GPU.
#define PB_NEED_GPU()                                       \
  do {                                                      \
    std::string pb_reason;                                  \
    if (::patchbay::memory::ListGpus(&pb_reason).empty()) { \
      GTEST_SKIP() << "no GPU: " << pb_reason;              \
    }                                                       \
  } while (false)
