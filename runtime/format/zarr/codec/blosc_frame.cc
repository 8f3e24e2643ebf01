#include "runtime/format/zarr/codec/blosc_frame.h"

#include <algorithm>
#include <cstring>

#include <blosc.h>
#include <lz4.h>
#include <zstd.h>

#include "runtime/core/strings.h"
#include "runtime/format/zarr/codec/unshuffle.h"

namespace patchbay::zarr {
namespace {

constexpr std::size_t kHeaderBytes = 16;
constexpr unsigned kByteShuffle = 0x1, kStored = 0x2, kBitShuffle = 0x4, kNotSplit = 0x10;
/// c-blosc's rule for when a block is split into one stream per byte of the type.
constexpr int kMaxSplits = 16;
constexpr std::size_t kMinSplitBytes = 128;

std::uint32_t Load32(const std::byte* p) {
  std::uint32_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

Status Bad(std::string_view cause) { return absl::DataLossError(StrCat("blosc frame: ", cause)); }

Status DecodeStream(int codec, ZSTD_DCtx_s* zstd, std::span<const std::byte> from, std::byte* out,
                    std::size_t size) {
  if (from.size() == size) {
    std::memcpy(out, from.data(), size);
    return absl::OkStatus();
  }
  if (codec == 4) {
    const std::size_t n = ZSTD_decompressDCtx(zstd, out, size, from.data(), from.size());
    if (ZSTD_isError(n)) return Bad(StrCat("zstd: ", ZSTD_getErrorName(n)));
    if (n != size) return Bad(StrCat("a block of ", n, " bytes, not ", size));
    return absl::OkStatus();
  }
  const int n =
      LZ4_decompress_safe(reinterpret_cast<const char*>(from.data()), reinterpret_cast<char*>(out),
                          static_cast<int>(from.size()), static_cast<int>(size));
  if (n != static_cast<int>(size)) return Bad("a corrupt lz4 block");
  return absl::OkStatus();
}

}  // namespace

StatusOr<BloscFrame> BloscFrame::Parse(std::span<const std::byte> bytes,
                                       std::size_t expected_bytes) {
  if (bytes.size() < kHeaderBytes) return Bad(StrCat("only ", bytes.size(), " bytes"));
  const auto byte_at = [&](std::size_t i) { return static_cast<unsigned>(bytes[i]); };
  BloscFrame f;
  if (byte_at(0) == 0 || byte_at(0) > 2) return Bad(StrCat("format version ", byte_at(0)));
  const unsigned flags = byte_at(2);
  f.type_bytes = static_cast<int>(byte_at(3));
  f.nbytes = Load32(bytes.data() + 4);
  f.block_bytes = Load32(bytes.data() + 8);
  const std::size_t frame_bytes = Load32(bytes.data() + 12);
  if (f.nbytes != expected_bytes) {
    return Bad(StrCat("holds ", f.nbytes, " bytes, the chunk has ", expected_bytes));
  }
  if (f.type_bytes == 0) return Bad("type size 0");
  if (frame_bytes < kHeaderBytes || frame_bytes != bytes.size()) {
    return Bad(StrCat("says ", frame_bytes, " bytes of ", bytes.size()));
  }
  f.bytes = bytes.first(frame_bytes);
  if (f.block_bytes == 0 || f.block_bytes > f.nbytes) {
    if (f.nbytes != 0) return Bad(StrCat("block size ", f.block_bytes, " of ", f.nbytes));
    return f;
  }
  f.blocks = (f.nbytes + f.block_bytes - 1) / f.block_bytes;
  f.stored = (flags & kStored) != 0;
  f.bit_shuffled = (flags & kBitShuffle) != 0;
  f.shuffled = !f.stored && (flags & kByteShuffle) != 0 && f.type_bytes > 1;
  f.split = (flags & kNotSplit) == 0 && f.type_bytes <= kMaxSplits &&
            f.block_bytes / static_cast<std::size_t>(f.type_bytes) >= kMinSplitBytes;
  f.codec = static_cast<int>(flags >> 5);
  if (f.stored) {
    if (frame_bytes != kHeaderBytes + f.nbytes) return Bad("stored bytes of another size");
    return f;
  }
  if (f.codec > 4) return Bad(StrCat("inner codec ", f.codec));
  if (frame_bytes < kHeaderBytes + 4 * f.blocks) return Bad("cut inside its block table");
  if (blosc_cbuffer_validate(f.bytes.data(), f.bytes.size(), &expected_bytes) != 0) {
    return Bad("c-blosc refuses its header");
  }
  return f;
}

Status BloscFrame::DecodeBlock(std::size_t block, BlockScratch& scratch, std::byte* out) const {
  const std::size_t size = BlockSize(block);
  if (stored) {
    std::memcpy(out, bytes.data() + kHeaderBytes + block * block_bytes, size);
    return absl::OkStatus();
  }
  if (!shuffled) return DecodePlanes(block, scratch.zstd, out);
  scratch.planes.resize(std::max(scratch.planes.size(), block_bytes));
  PB_RETURN_IF_ERROR(DecodePlanes(block, scratch.zstd, scratch.planes.data()));
  const auto element = static_cast<std::size_t>(type_bytes);
  const std::size_t elements = size / element, whole = elements * element;
  Unshuffle(scratch.planes.data(), elements, element, 0, elements, out);
  std::memcpy(out + whole, scratch.planes.data() + whole, size - whole);
  return absl::OkStatus();
}

Status BloscFrame::DecodePlanes(std::size_t block, ZSTD_DCtx_s* zstd, std::byte* out) const {
  const std::size_t size = BlockSize(block);
  std::size_t at = Load32(bytes.data() + kHeaderBytes + 4 * block);
  const bool short_block = size < block_bytes;
  const std::size_t streams = split && !short_block ? static_cast<std::size_t>(type_bytes) : 1;
  // As c-blosc encodes it: every stream of a split block has the same whole size.
  const std::size_t stream_bytes = size / streams;
  if (stream_bytes * streams != size) return Bad("a split block that does not divide");
  for (std::size_t s = 0; s < streams; ++s) {
    if (at < kHeaderBytes || at > bytes.size() || bytes.size() - at < 4) {
      return Bad("a block outside the frame");
    }
    const std::size_t encoded = Load32(bytes.data() + at);
    at += 4;
    if (encoded == 0 || encoded > bytes.size() - at) return Bad("a block outside the frame");
    PB_RETURN_IF_ERROR(DecodeStream(codec, zstd, bytes.subspan(at, encoded), out + s * stream_bytes,
                                    stream_bytes));
    at += encoded;
  }
  return absl::OkStatus();
}

Status BloscFrame::DecodeAll(BlockScratch& scratch, std::byte* out) const {
  if (nbytes == 0) return absl::OkStatus();
  if (BlockWise()) {
    for (std::size_t b = 0; b < blocks; ++b) {
      PB_RETURN_IF_ERROR(DecodeBlock(b, scratch, out + b * block_bytes));
    }
    return absl::OkStatus();
  }
  const int n = blosc_decompress_ctx(bytes.data(), out, nbytes, 1);
  if (n < 0 || static_cast<std::size_t>(n) != nbytes) {
    if (codec == 2) return absl::UnimplementedError("blosc frame: inner codec snappy");
    return Bad(StrCat("c-blosc returned ", n));
  }
  return absl::OkStatus();
}

Status BloscFrame::DecodeItems(std::size_t begin, std::size_t end, std::byte* out) const {
  const auto size = static_cast<std::size_t>(type_bytes);
  const int n = blosc_getitem(bytes.data(), static_cast<int>(begin / size),
                              static_cast<int>((end - begin) / size), out);
  if (n < 0 || static_cast<std::size_t>(n) != end - begin) {
    return Bad(StrCat("c-blosc returned ", n));
  }
  return absl::OkStatus();
}

}  // namespace patchbay::zarr
