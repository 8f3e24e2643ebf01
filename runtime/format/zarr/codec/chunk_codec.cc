#include "runtime/format/zarr/codec/chunk_codec.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <zstd.h>

#include "runtime/core/strings.h"
#include "runtime/format/zarr/codec/blosc.h"
#include "runtime/format/zarr/codec/strided_copy.h"
#include "runtime/format/zarr/codec/tile_codec.h"

namespace patchbay::zarr {
namespace {

using Bytes = std::span<const std::byte>;

/// How many typed codecs a chain begins with, in encode order.
std::size_t TypedCount(const CodecChain& chain) {
  std::size_t n = 0;
  while (n < chain.codecs.size() && IsTyped(chain.codecs[n].kind)) ++n;
  return n;
}

/// The element copy from decoded chunk bytes to the target, and where in the chunk it reads.
struct Placement {
  CopyPlan plan;
  std::size_t begin = 0, end = 0;  ///< bytes of the chunk that are read
};

Placement Place(const ArrayMetadata& array, const ChunkTarget& target) {
  Placement out;
  const int rank = array.rank();
  out.plan.rank = rank;
  out.plan.element_bytes = SizeOf(array.dtype);
  auto stride = static_cast<std::int64_t>(out.plan.element_bytes);
  std::int64_t begin = 0;
  std::int64_t last = 0;
  for (int i = rank - 1; i >= 0; --i) {
    const auto a = static_cast<std::size_t>(i);
    const auto axis = static_cast<std::size_t>(array.chain.order[a]);
    out.plan.shape[a] = target.shape[axis];
    out.plan.from_stride[a] = stride;
    out.plan.to_stride[a] = target.stride_bytes[axis];
    begin += target.from[axis] * stride;
    last += (target.shape[axis] - 1) * stride;
    stride *= array.chunk_shape[axis];
  }
  out.begin = static_cast<std::size_t>(begin);
  out.end = static_cast<std::size_t>(begin + last) + out.plan.element_bytes;
  out.plan.Simplify();
  return out;
}

/// One flag per block of the frame: does the plan read any of it?
std::vector<bool> NeededBlocks(const BloscFrame& frame, const Placement& place) {
  std::vector<bool> needed(frame.blocks, false);
  const CopyPlan& plan = place.plan;
  const bool lines = plan.rank >= 2;
  const std::int64_t steps = lines ? plan.shape[0] : 1;
  std::size_t extent = place.end - place.begin;
  if (lines) extent -= static_cast<std::size_t>((steps - 1) * plan.from_stride[0]);
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::size_t at =
        place.begin + (lines ? static_cast<std::size_t>(i * plan.from_stride[0]) : 0);
    const std::size_t last = (at + extent - 1) / frame.block_bytes;
    for (std::size_t b = at / frame.block_bytes; b <= last; ++b) needed[b] = true;
  }
  return needed;
}

/// One block of shuffled elements is copied to the target line by line, without a buffer of
/// elements.
bool IsOneBlockOfPlanes(const BloscFrame& frame, const CopyPlan& plan) {
  const auto size = static_cast<std::int64_t>(plan.element_bytes);
  const auto last = static_cast<std::size_t>(std::max(plan.rank, 1) - 1);
  return frame.BlockWise() && frame.shuffled && frame.blocks == 1 && plan.rank > 0 &&
         frame.type_bytes == size && plan.from_stride[last] == size && plan.to_stride[last] == size;
}

Status DecodePlanesInto(const BloscFrame& frame, const Placement& place, std::byte* to,
                        BlockScratch& scratch) {
  scratch.planes.resize(std::max(scratch.planes.size(), frame.nbytes));
  PB_RETURN_IF_ERROR(frame.DecodePlanes(0, scratch.zstd, scratch.planes.data()));
  const std::size_t size = place.plan.element_bytes;
  UnshuffleBox(place.plan, scratch.planes.data(), frame.nbytes / size, place.begin / size, to);
  return absl::OkStatus();
}

/// The wanted bytes are one run of the chunk and of the target: whole blocks go straight there.
Status DecodeRun(const BloscFrame& frame, const Placement& place, std::byte* to,
                 ChunkScratch::State& scratch) {
  for (std::size_t b = place.begin / frame.block_bytes; b < frame.blocks; ++b) {
    const std::size_t begin = b * frame.block_bytes;
    const std::size_t end = begin + frame.BlockSize(b);
    if (begin >= place.end) break;
    if (begin >= place.begin && end <= place.end) {
      PB_RETURN_IF_ERROR(frame.DecodeBlock(b, scratch.blocks, to + (begin - place.begin)));
      continue;
    }
    scratch.buffers[0].resize(std::max(scratch.buffers[0].size(), frame.block_bytes));
    PB_RETURN_IF_ERROR(frame.DecodeBlock(b, scratch.blocks, scratch.buffers[0].data()));
    const std::size_t first = std::max(begin, place.begin);
    const std::size_t last = std::min(end, place.end);
    std::memcpy(to + (first - place.begin), scratch.buffers[0].data() + (first - begin),
                last - first);
  }
  return absl::OkStatus();
}

Status DecodeBlosc(Bytes payload, std::size_t flat_bytes, const Placement& place, std::byte* to,
                   ChunkScratch::State& scratch) {
  PB_ASSIGN_OR_RETURN(const BloscFrame frame, BloscFrame::Parse(payload, flat_bytes));
  const bool one_run = place.plan.IsOneRun();
  if (IsOneBlockOfPlanes(frame, place.plan)) {
    return DecodePlanesInto(frame, place, to, scratch.blocks);
  }
  if (frame.BlockWise() && one_run) return DecodeRun(frame, place, to, scratch);
  const bool whole = place.end - place.begin == flat_bytes;
  if (one_run && whole) return frame.DecodeAll(scratch.blocks, to);

  std::vector<std::byte>& buffer = scratch.buffers[0];
  buffer.resize(std::max(buffer.size(), flat_bytes));
  if (frame.BlockWise()) {
    const std::vector<bool> needed = NeededBlocks(frame, place);
    for (std::size_t b = 0; b < frame.blocks; ++b) {
      if (!needed[b]) continue;
      PB_RETURN_IF_ERROR(
          frame.DecodeBlock(b, scratch.blocks, buffer.data() + b * frame.block_bytes));
    }
  } else {
    const auto size = static_cast<std::size_t>(frame.type_bytes);
    const std::size_t begin = place.begin / size * size;
    const std::size_t end = std::min((place.end + size - 1) / size * size, flat_bytes);
    // Item-wise decoding allocates and works block by block: only worth it for a real part.
    const bool part = flat_bytes % size == 0 && (end - begin) < flat_bytes / 4 * 3;
    PB_RETURN_IF_ERROR(part ? frame.DecodeItems(begin, end, buffer.data() + begin)
                            : frame.DecodeAll(scratch.blocks, buffer.data()));
  }
  CopyStrided(place.plan, buffer.data() + place.begin, to);
  return absl::OkStatus();
}

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
      return Internal("decode chunk: fixedscaleoffset of a type that was not refused");
  }
  return absl::OkStatus();
}

}  // namespace

ChunkScratch::State::State() { blocks.zstd = ZSTD_createDCtx(); }
ChunkScratch::State::~State() { ZSTD_freeDCtx(blocks.zstd); }
ChunkScratch::ChunkScratch() : state_(std::make_unique<State>()) {}
ChunkScratch::~ChunkScratch() = default;
ChunkScratch::ChunkScratch(ChunkScratch&&) noexcept = default;
ChunkScratch& ChunkScratch::operator=(ChunkScratch&&) noexcept = default;

Status DecodeChunkInto(const ArrayMetadata& array, Bytes stored, const ChunkTarget& target,
                       ChunkScratch::State& scratch) {
  const CodecChain& chain = array.chain;
  const std::size_t typed = TypedCount(chain);
  const DType stored_dtype = StoredDType(chain, array.dtype);
  const std::size_t flat_bytes =
      static_cast<std::size_t>(array.ChunkElements()) * SizeOf(stored_dtype);
  const bool plain = typed == 0 && !(chain.big_endian && SizeOf(stored_dtype) > 1);
  const Placement place = Place(array, target);
  Bytes payload = stored;
  std::size_t next_buffer = 0;
  for (std::size_t i = chain.codecs.size(); i > typed; --i) {
    const Codec& codec = chain.codecs[i - 1];
    const bool innermost = i - 1 == typed && !chain.tile;
    if (innermost && plain && codec.kind == CodecKind::kBlosc && payload.data() == stored.data()) {
      return DecodeBlosc(payload, flat_bytes, place, target.to, scratch);
    }
    if (innermost && plain && codec.kind == CodecKind::kZstd && place.plan.IsOneRun() &&
        place.end - place.begin == flat_bytes) {
      const std::size_t n = ZSTD_decompressDCtx(scratch.blocks.zstd, target.to, flat_bytes,
                                                payload.data(), payload.size());
      if (ZSTD_isError(n)) return DataLoss("zstd: ", ZSTD_getErrorName(n));
      if (n == flat_bytes) return absl::OkStatus();
    }
    const std::size_t bound = innermost ? flat_bytes : flat_bytes + flat_bytes / 2 + 65536;
    PB_ASSIGN_OR_RETURN(const Bytes out, DecodeStage(codec, payload, bound, scratch.blocks,
                                                     scratch.buffers[next_buffer]));
    if (out.data() == scratch.buffers[next_buffer].data()) next_buffer = 1 - next_buffer;
    payload = out;
  }
  if (chain.tile) return DecodeTileInto(array, payload, target, scratch);
  if (payload.size() != flat_bytes) {
    return DataLoss("decodes to ", payload.size(), " bytes, the chunk has ", flat_bytes);
  }
  if (!plain) {
    std::vector<std::byte>& buffer = scratch.buffers[next_buffer];
    PB_RETURN_IF_ERROR(DecodeTyped(chain, typed, array.dtype, payload, buffer));
    payload = buffer;
  }
  CopyStrided(place.plan, payload.data() + place.begin, target.to);
  return absl::OkStatus();
}

void FillChunk(const ArrayMetadata& array, const ChunkTarget& target) {
  FillStrided(Place(array, target).plan, array.fill.data(), target.to);
}

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
