// The common part of the Zarr tests: a folder that goes away, synthetic pixels, a whole small
// store, and the Python oracle.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <type_traits>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/hash.h"
#include "runtime/core/tensor_view.h"
#include "runtime/format/json/json.h"
#include "runtime/format/zarr/array.h"
#include "runtime/format/zarr/image_store.h"
#include "runtime/os/file.h"
#include "runtime/os/file_identity.h"
#include "runtime/os/folder_listing.h"
#include "runtime/os/folders.h"

namespace patchbay::zarr {

class TempFolder {
 public:
  TempFolder() {
    path_ = (std::filesystem::temp_directory_path() / ("pbzarr-" + Hex64(RandomU64()))).string();
    std::filesystem::create_directories(path_);
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline void WriteText(const std::string& path, std::string_view text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  ASSERT_TRUE(file.flush().good()) << path;
}

/// Until a file that is written now has a later time than the one at `path`.
inline void AwaitNextTick(const std::string& path) {
  const auto last = IdentityAt(Folders::OfThisUser(), path);
  ASSERT_TRUE(last.has_value()) << path;
  const TempFolder elsewhere;
  do {
    WriteText(elsewhere / "tick", "");
  } while (IdentityAt(Folders::OfThisUser(), elsewhere / "tick")->mtime_ns <=
           std::max(last->mtime_ns, last->ctime_ns));
}

/// Writes into a file as it lies there, at a later time than it was written before.
inline void OverwriteInPlace(const std::string& path, std::string_view bytes) {
  AwaitNextTick(path);
  const auto fd = OpenFile(Folders::OfThisUser(), path, O_WRONLY);
  ASSERT_TRUE(fd.ok() && WriteAt(fd->get(), 0, AsBytes(bytes), path).ok()) << path;
  std::filesystem::resize_file(path, bytes.size());
}

inline std::string ReadText(const std::string& path) {
  auto text = ReadFile(Folders::OfThisUser(), path, std::size_t{1} << 30);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *text : std::string();
}

/// A cheap generator for test pixels; the seed is part of the test.
inline std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Interleaved pixels with smooth parts, noise and pure background; slices one after another.
struct TestImage {
  DType dtype = DType::kUint8;
  std::int64_t height = 0, width = 0, channels = 3;
  std::vector<std::byte> bytes;
  std::int64_t depth = 1;

  ConstTensorView View() const {
    return ContiguousView<4>(const_cast<std::byte*>(bytes.data()), dtype,
                             {depth, height, width, channels});
  }
};

inline TestImage MakeImage(DType dtype, std::int64_t height, std::int64_t width,
                           std::int64_t channels, std::uint64_t seed) {
  TestImage out{dtype, height, width, channels, {}};
  const std::size_t element = SizeOf(dtype);
  out.bytes.resize(static_cast<std::size_t>(height * width * channels) * element);
  std::size_t at = 0;
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      const bool background = (y / 96 + x / 128) % 3 == 2;
      for (std::int64_t c = 0; c < channels; ++c, at += element) {
        const std::uint64_t noise =
            Mix(seed ^ static_cast<std::uint64_t>((y * width + x) * channels + c)) % 23;
        const auto value = static_cast<std::uint16_t>(
            background ? 255 : (static_cast<std::uint64_t>(x + 2 * y + 40 * c) / 3 + noise) % 251);
        std::memcpy(out.bytes.data() + at, &value, element);
      }
    }
  }
  return out;
}

/// Voxels of one channel: smooth, noisy, with background (-1024 where the type has it, else 0).
template <typename T>
TestImage MakeVolume(DType dtype, const Extent& size, std::uint64_t seed) {
  TestImage out{dtype, size.y, size.x, 1, {}, size.z};
  out.bytes.resize(static_cast<std::size_t>(size.Pixels()) * sizeof(T));
  for (std::int64_t i = 0; i < size.Pixels(); ++i) {
    const Point at = CellAt(size, i);
    const bool background = (at.z / 20 + at.y / 30 + at.x / 40) % 3 == 2;
    const auto noise = static_cast<double>(Mix(seed ^ static_cast<std::uint64_t>(i)) % 97) - 48;
    const double inside = static_cast<double>(3 * at.z - 2 * at.y + at.x) + noise / 4;
    const double wanted = background            ? (std::is_signed_v<T> ? -1024 : 0)
                          : std::is_signed_v<T> ? inside
                                                : inside + 2000;
    using Whole = std::conditional_t<std::is_integral_v<T>, std::int64_t, T>;  // wraps around
    const auto value = static_cast<T>(static_cast<Whole>(wanted));
    std::memcpy(out.bytes.data() + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
  }
  return out;
}

/// Copies the clipped chunk out of a whole volume of one channel.
inline ChunkPixels VoxelsOf(const TestImage& image, const Extent& chunk_size) {
  return [&image, chunk_size](const Point& chunk, const TensorView& out) {
    const ConstTensorView from = image.View();
    for (std::int64_t z = 0; z < out.shape[0]; ++z) {
      for (std::int64_t y = 0; y < out.shape[1]; ++y) {
        const std::byte* row = from.data + (chunk.z * chunk_size.z + z) * from.stride_bytes[0] +
                               (chunk.y * chunk_size.y + y) * from.stride_bytes[1] +
                               chunk.x * chunk_size.x * from.stride_bytes[2];
        std::memcpy(out.data + z * out.stride_bytes[0] + y * out.stride_bytes[1], row,
                    static_cast<std::size_t>(out.shape[2] * from.stride_bytes[2]));
      }
    }
    return absl::OkStatus();
  };
}

/// Copies the clipped chunk out of a whole image.
inline ChunkPixels PixelsOf(const TestImage& image, std::int64_t chunk_px) {
  return [&image, chunk_px](const Point& chunk, const TensorView& out) {
    const auto element = static_cast<std::int64_t>(SizeOf(image.dtype));
    for (std::int64_t y = 0; y < out.shape[1]; ++y) {
      const std::int64_t from =
          ((chunk.y * chunk_px + y) * image.width + chunk.x * chunk_px) * image.channels * element;
      std::memcpy(out.data + y * out.stride_bytes[1], image.bytes.data() + from,
                  static_cast<std::size_t>(out.shape[2] * image.channels * element));
    }
    return absl::OkStatus();
  };
}

/// Writes every shard of every level, then the metadata. Returns the roots it recorded.
inline StoreRoots WriteStore(const std::string& store, const ImageStoreSpec& spec,
                             const std::vector<TestImage>& levels) {
  std::vector<ShardRecord> records;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const Extent grid = ShardGridOf(spec.settings, spec.levels[l]);
    for (std::int64_t i = 0; i < grid.Pixels(); ++i) {
      const ShardPlace place{static_cast<int>(l), CellAt(grid, i)};
      const ChunkPixels pixels = spec.settings.axes == StoreAxes::kZyx
                                     ? VoxelsOf(levels[l], spec.settings.chunk)
                                     : PixelsOf(levels[l], spec.settings.chunk.y);
      const auto shard = EncodeShard(spec.settings, spec.levels[l], place, pixels);
      EXPECT_TRUE(shard.ok()) << shard.status();
      EXPECT_TRUE(WriteShardFile(Folders::OfThisUser(), store, *shard).ok());
      records.push_back(shard->record);
    }
  }
  const auto roots = CombineRoots(spec, records);
  EXPECT_TRUE(roots.ok()) << roots.status();
  EXPECT_TRUE(WriteStoreMetadata(Folders::OfThisUser(), store, spec, *roots).ok());
  return *roots;
}

/// All elements, C order.
inline StatusOr<std::vector<std::byte>> ReadAll(const Array& array) {
  const ArrayMetadata& m = array.metadata();
  Region region;
  TensorView view;
  view.dtype = m.dtype;
  view.rank = m.rank();
  auto stride = static_cast<std::int64_t>(SizeOf(m.dtype));
  for (int i = m.rank() - 1; i >= 0; --i) {
    const auto a = static_cast<std::size_t>(i);
    region.shape[a] = view.shape[a] = m.shape[a];
    view.stride_bytes[a] = stride;
    stride *= m.shape[a];
  }
  std::vector<std::byte> out(static_cast<std::size_t>(stride));
  view.data = out.data();
  PB_RETURN_IF_ERROR(array.ReadRegion(region, view));
  return out;
}

inline std::string TestData() {
  const char* path = std::getenv("PATCHBAY_TEST_DATA");
  return path == nullptr ? "" : path;
}

inline std::string PythonPath() {
  const char* path = std::getenv("PATCHBAY_PYTHON");
  return path != nullptr ? path : std::string(PATCHBAY_SOURCE_DIR) + "/.venv/bin/python";
}

/// True where zarr-python 3 and TensorStore can be asked.
inline bool HasOracle() {
  const std::string probe = PythonPath() + " -c 'import zarr, tensorstore, numcodecs' 2>/dev/null";
  return std::system(probe.c_str()) == 0;
}

/// Runs oracle.py and returns what it printed as JSON.
inline StatusOr<Json> AskOracle(const std::string& arguments) {
  const TempFolder folder;
  const std::string out = folder / "answer.json";
  const std::string command = PythonPath() + " " + PATCHBAY_SOURCE_DIR +
                              "/tests/runtime/format/zarr/oracle.py " + arguments + " > " + out;
  if (std::system(command.c_str()) != 0) return absl::InternalError("oracle: " + command);
  PB_ASSIGN_OR_RETURN(const std::string text, ReadFile(Folders::OfThisUser(), out, kMaxJsonBytes));
  return ParseJson(text, "oracle");
}

}  // namespace patchbay::zarr
