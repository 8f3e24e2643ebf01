#include "runtime/format/zarr/codec/typed_stages.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "runtime/core/strings.h"

namespace patchbay::zarr {
namespace {

void SwapBytes(std::vector<std::byte>& bytes, std::size_t element) {
  for (std::size_t i = 0; i + element <= bytes.size(); i += element) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(i + element));
  }
}

/// Running sum with wrap-around; signed and unsigned types have the same bits.
template <typename T>
void Accumulate(std::vector<std::byte>& bytes) {
  T sum = 0;
  for (std::size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + i, sizeof value);
    sum = static_cast<T>(sum + value);
    std::memcpy(bytes.data() + i, &sum, sizeof sum);
  }
}

void Undelta(std::vector<std::byte>& bytes, DType dtype) {
  switch (SizeOf(dtype)) {
    case 1:
      return Accumulate<std::uint8_t>(bytes);
    case 2:
      return Accumulate<std::uint16_t>(bytes);
    case 4:
      return Accumulate<std::uint32_t>(bytes);
    default:
      return Accumulate<std::uint64_t>(bytes);
  }
}

template <typename From, typename To>
void Rescale(const std::vector<std::byte>& in, double scale, double offset,
             std::vector<std::byte>& out) {
  const std::size_t n = in.size() / sizeof(From);
  out.resize(n * sizeof(To));
  for (std::size_t i = 0; i < n; ++i) {
    From stored;
    std::memcpy(&stored, in.data() + i * sizeof stored, sizeof stored);
    const auto value = static_cast<To>(static_cast<double>(stored) / scale + offset);
    std::memcpy(out.data() + i * sizeof value, &value, sizeof value);
  }
}

template <typename From>
void RescaleTo(const std::vector<std::byte>& in, const Codec& codec, DType to,
               std::vector<std::byte>& out) {
  if (to == DType::kFloat32) return Rescale<From, float>(in, codec.scale, codec.offset, out);
  Rescale<From, double>(in, codec.scale, codec.offset, out);
}

Status RescaleFrom(const std::vector<std::byte>& in, const Codec& codec, DType to,
                   std::vector<std::byte>& out) {
  switch (codec.stored_dtype) {
    case DType::kInt8:
      RescaleTo<std::int8_t>(in, codec, to, out);
      break;
    case DType::kUint8:
      RescaleTo<std::uint8_t>(in, codec, to, out);
      break;
    case DType::kInt16:
      RescaleTo<std::int16_t>(in, codec, to, out);
      break;
    case DType::kUint16:
      RescaleTo<std::uint16_t>(in, codec, to, out);
      break;
    case DType::kInt32:
      RescaleTo<std::int32_t>(in, codec, to, out);
      break;
    case DType::kUint32:
      RescaleTo<std::uint32_t>(in, codec, to, out);
      break;
    case DType::kInt64:
      RescaleTo<std::int64_t>(in, codec, to, out);
      break;
    case DType::kUint64:
      RescaleTo<std::uint64_t>(in, codec, to, out);
      break;
    default:
      return absl::InternalError("decode chunk: fixedscaleoffset of a type that was not refused");
  }
  return absl::OkStatus();
}

}  // namespace

DType StoredDType(const CodecChain& chain, DType dtype) {
  for (const Codec& codec : chain.codecs) {
    if (codec.kind == CodecKind::kFixedScaleOffset) return codec.stored_dtype;
  }
  return dtype;
}

Status DecodeTyped(const CodecChain& chain, std::size_t typed, DType dtype,
                   std::span<const std::byte> in, std::vector<std::byte>& out) {
  DType current = StoredDType(chain, dtype);
  out.assign(in.begin(), in.end());
  if (chain.big_endian && SizeOf(current) > 1) SwapBytes(out, SizeOf(current));
  for (std::size_t i = typed; i > 0; --i) {
    const Codec& codec = chain.codecs[i - 1];
    if (codec.kind == CodecKind::kDelta) {
      Undelta(out, current);
      continue;
    }
    std::vector<std::byte> rescaled;
    PB_RETURN_IF_ERROR(RescaleFrom(out, codec, dtype, rescaled));
    out = std::move(rescaled);
    current = dtype;
  }
  return absl::OkStatus();
}

}  // namespace patchbay::zarr
