// What every op promises, whatever it computes: the same bits again, through any strides, on every
// device; nothing written beside its output; views that do not fit refused.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/base/strings.h"
#include "runtime/base/tensor_view.h"
#include "runtime/memory/device_block.h"

namespace patchbay::ops {

struct OpUnderTest {
  std::string name;
  DType in = DType::kUint8, out = DType::kUint8;
  std::function<Status(const ConstTensorView&, const TensorView&)> run;
  std::function<Status(const ConstTensorView&, const TensorView&, memory::GpuStream)> launch;
  /// Output height and width for an input's.
  std::function<std::array<std::int64_t, 2>(std::int64_t, std::int64_t)> shape =
      [](std::int64_t h, std::int64_t w) {
        return std::array{h, w};
      };
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
  std::size_t BytesOutside(std::byte marker) const {
    std::size_t count = 0;
    for (const std::byte b : memory) count += b == marker ? 1u : 0u;
    return count;
  }
};

inline const std::vector<std::array<std::int64_t, 3>>& ContractShapes() {
  static const std::vector<std::array<std::int64_t, 3>> kShapes = {
      {1, 1, 1}, {1, 7, 3}, {5, 1, 3}, {33, 19, 3}, {8, 16, 4}, {64, 65, 3}};
  return kShapes;
}

inline std::array<std::int64_t, 3> OutShape(const OpUnderTest& op,
                                            const std::array<std::int64_t, 3>& in) {
  const auto hw = op.shape(in[0], in[1]);
  return {hw[0], hw[1], in[2]};
}

inline void ExpectSameThroughAnyStrides(const OpUnderTest& op) {
  for (const auto& shape : ContractShapes()) {
    SCOPED_TRACE(StrCat(op.name, " ", shape[0], "x", shape[1], "x", shape[2]));
    const auto noise =
        NoiseBytes(static_cast<std::size_t>(shape[0] * shape[1] * shape[2]), op.in, 1);
    Spaced in(op.in, shape, 0, 0), gapped_in(op.in, shape, 5, 2);
    in.Fill(noise);
    gapped_in.Fill(noise);
    Spaced out(op.out, OutShape(op, shape), 0, 0), again = out;
    again.view.data = again.memory.data();
    Spaced gapped_out(op.out, OutShape(op, shape), 3, 1);
    ASSERT_TRUE(op.run(in.view, out.view).ok());
    ASSERT_TRUE(op.run(in.view, again.view).ok());
    ASSERT_TRUE(op.run(gapped_in.view, gapped_out.view).ok());
    EXPECT_EQ(out.memory, again.memory);
    EXPECT_EQ(out.Packed(), gapped_out.Packed());
    EXPECT_EQ(in.Packed(), noise) << "the input was written to";
    // What lies in the gaps is as it was.
    Spaced untouched = gapped_out;
    untouched.view.data = untouched.memory.data();
    untouched.Fill(std::vector<std::byte>(out.Packed().size(), std::byte{0}));
    Spaced blank(op.out, OutShape(op, shape), 3, 1);
    blank.Fill(std::vector<std::byte>(out.Packed().size(), std::byte{0}));
    EXPECT_EQ(untouched.memory, blank.memory) << "written beside the output";
  }
}

inline void ExpectRefusals(const OpUnderTest& op) {
  const std::array<std::int64_t, 3> shape = {8, 8, 3};
  Spaced in(op.in, shape, 0, 0), out(op.out, OutShape(op, shape), 0, 0);
  ASSERT_TRUE(op.run(in.view, out.view).ok());
  const auto refused = [&](const ConstTensorView& from, const TensorView& to) {
    return op.run(from, to).code() == absl::StatusCode::kInvalidArgument;
  };
  TensorView wrong = out.view;
  wrong.rank = 2;
  EXPECT_TRUE(refused(in.view, wrong)) << "rank";
  wrong = out.view;
  wrong.shape[2] = 2;
  EXPECT_TRUE(refused(in.view, wrong)) << "channels";
  wrong = out.view;
  wrong.shape[0] = 0;
  EXPECT_TRUE(refused(in.view, wrong)) << "empty";
  wrong = out.view;
  wrong.shape[0] += 9;
  EXPECT_TRUE(refused(in.view, wrong)) << "height";
  wrong = out.view;
  wrong.data = nullptr;
  EXPECT_TRUE(refused(in.view, wrong)) << "no memory";
  wrong = in.view;
  wrong.dtype = DType::kInt64;
  EXPECT_TRUE(refused(wrong, out.view)) << "dtype";
}

/// The CPU half of the contract.
inline void ExpectOpContract(const OpUnderTest& op) {
  ExpectSameThroughAnyStrides(op);
  ExpectRefusals(op);
}

/// The same bits from the GPU. Call where ListGpus is not empty.
inline void ExpectDeviceTwin(const OpUnderTest& op) {
  auto stream = memory::OwnedGpuStream::Create();
  ASSERT_TRUE(stream.ok()) << stream.status();
  for (const auto& shape : ContractShapes()) {
    SCOPED_TRACE(StrCat(op.name, " ", shape[0], "x", shape[1], "x", shape[2]));
    Spaced in(op.in, shape, 5, 2), out(op.out, OutShape(op, shape), 3, 1), made = out;
    in.Fill(NoiseBytes(static_cast<std::size_t>(shape[0] * shape[1] * shape[2]), op.in, 2));
    ASSERT_TRUE(op.run(in.view, out.view).ok());
    auto d_in = memory::DeviceBlock::Allocate(in.memory.size());
    auto d_out = memory::DeviceBlock::Allocate(out.memory.size());
    ASSERT_TRUE(d_in.ok() && d_out.ok());
    ASSERT_TRUE(memory::CopyToDevice(d_in->d_data(), in.memory, stream->get()).ok());
    ASSERT_TRUE(memory::CopyToDevice(d_out->d_data(), made.memory, stream->get()).ok());
    TensorView d_in_view = in.view, d_out_view = out.view;
    d_in_view.data = d_in->d_data();
    d_out_view.data = d_out->d_data();
    const Status launched = op.launch(d_in_view, d_out_view, stream->get());
    ASSERT_TRUE(launched.ok()) << launched;
    ASSERT_TRUE(memory::CopyToHost(made.memory, d_out->d_data(), stream->get()).ok());
    ASSERT_TRUE(stream->WaitSync().ok());
    EXPECT_EQ(made.memory, out.memory);
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
