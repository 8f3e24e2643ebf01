// A strided view of memory with another owner.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/core/dtype.h"

namespace patchbay {

inline constexpr int kMaxRank = 6;

/// Mutable strided view of host or device memory, as stated by the function that takes it. Does not
/// own; valid as long as the memory is. Axis order is stated by each function; strides are in bytes
/// and may be any positive value.
struct TensorView {
  std::byte* data = nullptr;
  DType dtype = DType::kUint8;
  int rank = 0;
  std::array<std::int64_t, kMaxRank> shape{};
  std::array<std::int64_t, kMaxRank> stride_bytes{};

  std::int64_t Elements() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= shape[static_cast<std::size_t>(i)];
    return n;
  }
};

/// Read-only twin of TensorView.
struct ConstTensorView {
  const std::byte* data = nullptr;
  DType dtype = DType::kUint8;
  int rank = 0;
  std::array<std::int64_t, kMaxRank> shape{};
  std::array<std::int64_t, kMaxRank> stride_bytes{};

  ConstTensorView() = default;
  ConstTensorView(const TensorView& v)  // NOLINT: a mutable view is a read-only one
      : data(v.data), dtype(v.dtype), rank(v.rank), shape(v.shape), stride_bytes(v.stride_bytes) {}
};

/// The view with an axis of length 1 before the others.
template <typename View>
View WithDepth(const View& view) {
  View out = view;
  out.rank = view.rank + 1;
  for (std::size_t i = static_cast<std::size_t>(view.rank); i > 0; --i) {
    out.shape[i] = view.shape[i - 1];
    out.stride_bytes[i] = view.stride_bytes[i - 1];
  }
  out.shape[0] = 1;
  out.stride_bytes[0] = view.shape[0] * view.stride_bytes[0];
  return out;
}

/// Entry `i` of the first axis.
template <typename View>
View SliceOf(const View& view, std::int64_t i) {
  View out = view;
  out.data += i * view.stride_bytes[0];
  out.rank = view.rank - 1;
  for (std::size_t a = 0; a < static_cast<std::size_t>(out.rank); ++a) {
    out.shape[a] = view.shape[a + 1];
    out.stride_bytes[a] = view.stride_bytes[a + 1];
  }
  return out;
}

/// A C-contiguous view of `shape` over `data`.
template <std::size_t N>
TensorView ContiguousView(std::byte* data, DType dtype, const std::array<std::int64_t, N>& shape) {
  static_assert(N <= kMaxRank);
  TensorView v;
  v.data = data;
  v.dtype = dtype;
  v.rank = static_cast<int>(N);
  auto stride = static_cast<std::int64_t>(SizeOf(dtype));
  for (std::size_t i = N; i-- > 0;) {
    v.shape[i] = shape[i];
    v.stride_bytes[i] = stride;
    stride *= shape[i];
  }
  return v;
}

}  // namespace patchbay
