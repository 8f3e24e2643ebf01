#include "workers/sources/volumes/mask_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <vector>

#include <zlib.h>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "workers/sources/tiff_writer.h"
#include "workers/sources/volumes/byte_stream.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kHeaderBytes = 352;  // with the four bytes that say: no extension
constexpr std::size_t kDescription = 148;  // a field of 80 bytes
/// The mark lies within these.
constexpr std::size_t kMarkedWithin = 192;
constexpr int kGzip = 15 + 16;

std::array<std::byte, kHeaderBytes> NiftiHeaderOf(const VolumeMask& mask) {
  std::array<std::byte, kHeaderBytes> header{};
  const auto put = [&header](std::size_t at, const auto& value) {
    std::memcpy(header.data() + at, &value, sizeof(value));
  };
  put(0, std::int32_t{348});
  const std::int64_t sides[] = {3, mask.size.x, mask.size.y, mask.size.z, 1, 1, 1, 1};
  for (std::size_t i = 0; i < 8; ++i) put(40 + 2 * i, static_cast<std::int16_t>(sides[i]));
  put(70, std::int16_t{2});  // uint8
  put(72, std::int16_t{8});
  const Affine& a = mask.affine;
  const double steps[] = {1, Norm(a.x), Norm(a.y), Norm(a.z)};
  for (std::size_t i = 0; i < 4; ++i) put(76 + 4 * i, static_cast<float>(steps[i]));
  put(108, float{kHeaderBytes});
  put(112, float{1});
  put(123, char{2});  // millimetres
  if (mask.is_exported) {
    std::memcpy(header.data() + kDescription, kExportedMask.data(), kExportedMask.size());
  }
  put(254, std::int16_t{1});
  const Matrix4 ras = RasOf(a);
  for (std::size_t i = 0; i < 12; ++i) put(280 + 4 * i, static_cast<float>(ras[i / 4][i % 4]));
  std::memcpy(header.data() + 344, "n+1", 4);
  return header;
}

std::string NrrdHeaderOf(const VolumeMask& mask) {
  const auto vector = [](const Vec3& v) { return StrCat("(", v.x, ",", v.y, ",", v.z, ")"); };
  const Affine& a = mask.affine;
  return StrCat(
      "NRRD0004\n", mask.is_exported ? StrCat("content: ", kExportedMask, "\n") : "",
      "type: unsigned char\ndimension: 3\nspace: left-posterior-superior\nsizes: ", mask.size.x,
      " ", mask.size.y, " ", mask.size.z, "\nspace directions: ", vector(a.x), " ", vector(a.y),
      " ", vector(a.z),
      "\nkinds: domain domain domain\nencoding: gzip\nspace origin: ", vector(a.origin), "\n\n");
}

/// Appends `parts`, one after another, as one gzip stream without a time.
Status AppendGzip(std::initializer_list<std::span<const std::byte>> parts,
                  std::vector<std::byte>& out) {
  z_stream stream{};
  PB_CHECK(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  int state = Z_OK;
  const auto pump = [&](int flush) {
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      state = deflate(&stream, flush);
      out.insert(out.end(), buffer.begin(), buffer.end() - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  for (std::span<const std::byte> part : parts) {
    while (!part.empty()) {
      const std::size_t count = std::min(part.size(), std::size_t{1} << 28);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(part.data()));
      stream.avail_in = static_cast<uInt>(count);
      pump(Z_NO_FLUSH);
      part = part.subspan(count);
    }
  }
  pump(Z_FINISH);
  deflateEnd(&stream);
  return state == Z_STREAM_END ? absl::OkStatus() : Internal("write mask: deflate failed");
}

StatusOr<std::uint64_t> Write(const Folders& allowed, const std::string& path,
                              const std::vector<std::byte>& file) {
  PB_RETURN_IF_ERROR(WriteFileDurably(allowed, path, file));
  return file.size();
}

}  // namespace

StatusOr<std::uint64_t> WriteNiftiMask(const Folders& allowed, const std::string& path,
                                       const VolumeMask& mask) {
  const auto header = NiftiHeaderOf(mask);
  const auto voxels = std::as_bytes(mask.values);
  std::vector<std::byte> file;
  if (path.ends_with(".gz")) {
    PB_RETURN_IF_ERROR(AppendGzip({header, voxels}, file));
  } else {
    file.reserve(header.size() + voxels.size());
    file.assign(header.begin(), header.end());
    file.insert(file.end(), voxels.begin(), voxels.end());
  }
  return Write(allowed, path, file);
}

StatusOr<std::uint64_t> WriteNrrdMask(const Folders& allowed, const std::string& path,
                                      const VolumeMask& mask) {
  const std::string header = NrrdHeaderOf(mask);
  const auto bytes = std::as_bytes(std::span(header));
  std::vector<std::byte> file(bytes.begin(), bytes.end());
  PB_RETURN_IF_ERROR(AppendGzip({std::as_bytes(mask.values)}, file));
  return Write(allowed, path, file);
}

bool IsExportedVolumeMask(const Folders& allowed, const std::string& path) {
  const auto packing = ByteStream::PackingOf(allowed, path);
  if (!packing.ok()) return false;
  auto stream = ByteStream::Open(allowed, path, 0, *packing);
  std::array<char, kMarkedWithin> begin{};
  if (!stream.ok() || !stream->Read(std::as_writable_bytes(std::span(begin))).ok()) return false;
  return std::string_view(begin.data(), begin.size()).find(kExportedMask) != std::string_view::npos;
}

}  // namespace patchbay::workers
