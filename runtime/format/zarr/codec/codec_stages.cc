// The byte stages of a codec chain, each bounded by the chunk's size.
#include <cstring>

#include <bzlib.h>
#include <lz4.h>
#include <zlib.h>
#include <zstd.h>

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/codec/blosc.h"
#include "runtime/format/zarr/codec/chunk_codec.h"

namespace patchbay::zarr {
namespace {

using Bytes = std::span<const std::byte>;

Status Bad(std::string_view codec, std::string_view cause) { return DataLoss(codec, ": ", cause); }

/// Checks that a stream ends where its bytes end; zero padding is no damage.
StatusOr<Bytes> Ended(std::string_view codec, Bytes rest, Bytes decoded) {
  for (const std::byte b : rest) {
    if (b != std::byte{0}) return Bad(codec, StrCat(rest.size(), " bytes after the stream's end"));
  }
  return decoded;
}

std::string Hex32(std::uint32_t value) { return Hex64(value).substr(8); }

/// A sum folded to 16 bits: 65535 stands for every multiple of it but zero.
std::uint64_t Fold(std::uint64_t sum) { return sum == 0 ? 0 : (sum - 1) % 65535 + 1; }

/// Fletcher-32 of HDF5 and numcodecs: big-endian 16-bit words.
std::uint32_t Fletcher32(Bytes bytes) {
  std::uint64_t sum1 = 0, sum2 = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    const unsigned low = i + 1 < bytes.size() ? static_cast<unsigned>(bytes[i + 1]) : 0;
    sum1 = Fold(sum1 + (static_cast<unsigned>(bytes[i]) << 8 | low));
    sum2 = Fold(sum2 + sum1);
  }
  return static_cast<std::uint32_t>(sum2 << 16 | sum1);
}

StatusOr<Bytes> CheckSum(const Codec& codec, Bytes in) {
  const bool fletcher = codec.kind == CodecKind::kFletcher32;
  const std::string_view name = fletcher                            ? "fletcher32"
                                : codec.kind == CodecKind::kAdler32 ? "adler32"
                                                                    : "crc32c";
  if (in.size() < 4) return Bad(name, StrCat("only ", in.size(), " bytes"));
  const bool first = codec.checksum_first && !fletcher;
  const Bytes content = first ? in.subspan(4) : in.first(in.size() - 4);
  const std::uint32_t stored = Load32(first ? in.data() : in.data() + in.size() - 4);
  std::uint32_t computed = 0;
  if (fletcher) {
    computed = Fletcher32(content);
  } else if (codec.kind == CodecKind::kAdler32) {
    computed = static_cast<std::uint32_t>(
        adler32_z(1, reinterpret_cast<const unsigned char*>(content.data()), content.size()));
  } else {
    computed = Crc32c(content);
  }
  if (stored != computed) {
    return DataLoss(name, " mismatch (stored ", Hex32(stored), ", computed ", Hex32(computed), ")");
  }
  return content;
}

StatusOr<Bytes> Blosc(Bytes in, std::size_t max_bytes, BlockScratch& blocks,
                      std::vector<std::byte>& buffer) {
  const std::size_t claimed = in.size() >= 16 ? Load32(in.data() + 4) : 0;
  if (claimed > max_bytes) {
    return Bad("blosc frame", StrCat("holds ", claimed, " bytes, the chunk has ", max_bytes));
  }
  PB_ASSIGN_OR_RETURN(const BloscFrame frame, BloscFrame::Parse(in, claimed));
  buffer.resize(claimed);
  PB_RETURN_IF_ERROR(frame.DecodeAll(blocks, buffer.data()));
  return Bytes(buffer);
}

StatusOr<Bytes> Zstd(Bytes in, std::size_t max_bytes, ZSTD_DCtx_s* zstd,
                     std::vector<std::byte>& buffer) {
  buffer.resize(max_bytes);
  const std::size_t n = ZSTD_decompressDCtx(zstd, buffer.data(), max_bytes, in.data(), in.size());
  if (ZSTD_isError(n)) return Bad("zstd", ZSTD_getErrorName(n));
  return Bytes(buffer).first(n);
}

StatusOr<Bytes> Inflate(Bytes in, std::size_t max_bytes, std::vector<std::byte>& buffer) {
  buffer.resize(max_bytes);
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 32) != Z_OK) return ResourceExhausted("gzip: no memory");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
  stream.avail_out = static_cast<uInt>(max_bytes);
  const int rc = inflate(&stream, Z_FINISH);
  const std::size_t n = max_bytes - stream.avail_out;
  inflateEnd(&stream);
  if (rc == Z_STREAM_END) return Ended("gzip", in.last(stream.avail_in), Bytes(buffer).first(n));
  if (rc == Z_BUF_ERROR && n == max_bytes) return Bad("gzip", "expands beyond the chunk");
  return Bad("gzip", rc == Z_BUF_ERROR ? "truncated" : "corrupt stream");
}

StatusOr<Bytes> Lz4(Bytes in, std::size_t max_bytes, std::vector<std::byte>& buffer) {
  if (in.size() < 4) return Bad("lz4", "no size");
  const std::size_t claimed = Load32(in.data());
  if (claimed > max_bytes) return Bad("lz4", StrCat("claims ", claimed, " bytes of ", max_bytes));
  buffer.resize(claimed);
  const int n = LZ4_decompress_safe(reinterpret_cast<const char*>(in.data() + 4),
                                    reinterpret_cast<char*>(buffer.data()),
                                    static_cast<int>(in.size() - 4), static_cast<int>(claimed));
  if (n < 0 || static_cast<std::size_t>(n) != claimed) return Bad("lz4", "corrupt block");
  return Bytes(buffer);
}

StatusOr<Bytes> Bz2(Bytes in, std::size_t max_bytes, std::vector<std::byte>& buffer) {
  buffer.resize(max_bytes);
  bz_stream stream{};
  if (BZ2_bzDecompressInit(&stream, 0, 0) != BZ_OK) return ResourceExhausted("bz2: no memory");
  stream.next_in = reinterpret_cast<char*>(const_cast<std::byte*>(in.data()));
  stream.avail_in = static_cast<unsigned>(in.size());
  stream.next_out = reinterpret_cast<char*>(buffer.data());
  stream.avail_out = static_cast<unsigned>(max_bytes);
  const int rc = BZ2_bzDecompress(&stream);
  const std::size_t n = max_bytes - stream.avail_out;
  BZ2_bzDecompressEnd(&stream);
  if (rc == BZ_STREAM_END) return Ended("bz2", in.last(stream.avail_in), Bytes(buffer).first(n));
  if (rc == BZ_OK) return Bad("bz2", n == max_bytes ? "expands beyond the chunk" : "truncated");
  return Bad("bz2", StrCat("error ", rc));
}

/// Undoes the byte shuffle of numcodecs: the bytes that do not fill an element stay where they are.
StatusOr<Bytes> Unshuffle(const Codec& codec, Bytes in, std::vector<std::byte>& buffer) {
  const auto size = static_cast<std::size_t>(codec.element_bytes);
  const std::size_t count = in.size() / size;
  buffer.resize(in.size());
  for (std::size_t b = 0; b < size; ++b) {
    for (std::size_t i = 0; i < count; ++i) buffer[i * size + b] = in[b * count + i];
  }
  std::memcpy(buffer.data() + count * size, in.data() + count * size, in.size() - count * size);
  return Bytes(buffer);
}

}  // namespace

StatusOr<std::span<const std::byte>> DecodeStage(const Codec& codec, std::span<const std::byte> in,
                                                 std::size_t max_bytes, BlockScratch& blocks,
                                                 std::vector<std::byte>& buffer) {
  switch (codec.kind) {
    case CodecKind::kBlosc:
      return Blosc(in, max_bytes, blocks, buffer);
    case CodecKind::kZstd:
      return Zstd(in, max_bytes, blocks.zstd, buffer);
    case CodecKind::kGzip:
      return Inflate(in, max_bytes, buffer);
    case CodecKind::kLz4:
      return Lz4(in, max_bytes, buffer);
    case CodecKind::kBz2:
      return Bz2(in, max_bytes, buffer);
    case CodecKind::kCrc32c:
    case CodecKind::kAdler32:
    case CodecKind::kFletcher32:
      return CheckSum(codec, in);
    case CodecKind::kShuffle:
      return Unshuffle(codec, in, buffer);
    case CodecKind::kDelta:
    case CodecKind::kFixedScaleOffset:
      break;
  }
  return Internal("decode chunk: a typed codec among the byte stages");
}

}  // namespace patchbay::zarr
