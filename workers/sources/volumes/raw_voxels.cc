#include "workers/sources/volumes/raw_voxels.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/core/strings.h"
#include "runtime/os/folder_listing.h"
#include "workers/sources/source_extent.h"

namespace patchbay::workers {
namespace {

template <typename T>
T Element(const std::byte* at, bool swapped) {
  std::byte bytes[sizeof(T)];
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes[i] = at[swapped ? sizeof(T) - 1 - i : i];
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

/// One slice; false when a value has no place in int16.
template <typename T>
bool Convert(const std::byte* from, std::size_t count, const RawVoxels& raw, Volume& volume,
             std::size_t begin) {
  const bool is_int16 = volume.dtype == DType::kInt16;
  auto* shorts = reinterpret_cast<std::int16_t*>(volume.voxels.data()) + begin;
  auto* floats = reinterpret_cast<float*>(volume.voxels.data()) + begin;
  for (std::size_t i = 0; i < count; ++i) {
    const T value = Element<T>(from + i * sizeof(T), raw.is_big_endian);
    const double real = raw.slope * static_cast<double>(value) + raw.intercept;
    if (!is_int16) {
      floats[i] = static_cast<float>(real);
      continue;
    }
    if (real < -32768 || real > 32767) return false;
    shorts[i] = static_cast<std::int16_t>(real);
  }
  return true;
}

bool ConvertSlice(const std::byte* from, std::size_t count, const RawVoxels& raw, Volume& volume,
                  std::size_t begin) {
  switch (raw.stored) {
    case DType::kInt8:
      return Convert<std::int8_t>(from, count, raw, volume, begin);
    case DType::kUint8:
      return Convert<std::uint8_t>(from, count, raw, volume, begin);
    case DType::kInt16:
      return Convert<std::int16_t>(from, count, raw, volume, begin);
    case DType::kUint16:
      return Convert<std::uint16_t>(from, count, raw, volume, begin);
    case DType::kInt32:
      return Convert<std::int32_t>(from, count, raw, volume, begin);
    case DType::kUint32:
      return Convert<std::uint32_t>(from, count, raw, volume, begin);
    case DType::kFloat32:
      return Convert<float>(from, count, raw, volume, begin);
    default:
      return Convert<double>(from, count, raw, volume, begin);
  }
}

const std::string& FileOf(const std::string& path, const RawVoxels& raw) {
  return raw.file.empty() ? path : raw.file;
}

/// True when everything was read; false when the type does not hold it.
StatusOr<bool> ReadAs(const Folders& allowed, DType dtype, const std::string& path,
                      const RawVoxels& raw, const VolumeProgress& progress, Volume& volume) {
  PB_ASSIGN_OR_RETURN(ByteStream stream,
                      ByteStream::Open(allowed, FileOf(path, raw), raw.offset, raw.packing));
  const auto plane = static_cast<std::size_t>(raw.size.y * raw.size.x);
  PB_RETURN_IF_ERROR(stream.Skip(raw.inflated_offset));
  volume.dtype = dtype;
  PB_RETURN_IF_ERROR(AllocateVoxels(volume));
  std::vector<std::byte> slice(plane * SizeOf(raw.stored));
  for (std::int64_t z = 0; z < raw.size.z; ++z) {
    PB_RETURN_IF_ERROR(stream.Read(slice));
    const std::size_t begin = static_cast<std::size_t>(z) * plane;
    if (!ConvertSlice(slice.data(), plane, raw, volume, begin)) return false;
    if (progress) PB_RETURN_IF_ERROR(progress());
  }
  // A file of voxels alone that holds more of them is of another size or type than its header says.
  PB_RETURN_IF_ERROR(stream.ReadToEnd(
      progress, raw.file.empty() ? ByteStream::kMostAfterVoxels + raw.further_bytes : 0));
  return true;
}

}  // namespace

Status CheckRawVoxels(const Folders& allowed, const std::string& path, const RawVoxels& raw) {
  PB_RETURN_IF_ERROR(CheckVolumeSize(raw.size, "read volume"));
  if (!std::isfinite(raw.slope) || !std::isfinite(raw.intercept) || raw.slope == 0) {
    return InvalidArgument("read volume: the scale of the values is not a number");
  }
  const std::string& file = FileOf(path, raw);
  PB_ASSIGN_OR_RETURN(const ByteStream stream,
                      ByteStream::Open(allowed, file, raw.offset, raw.packing));
  const auto bytes = static_cast<std::uint64_t>(raw.size.Pixels()) * SizeOf(raw.stored);
  if (raw.inflated_offset + bytes + raw.further_bytes > stream.MostLeft()) {
    return DataLoss("read volume: the file ends before its voxels do");
  }
  PB_ASSIGN_OR_RETURN(const std::uint64_t file_bytes, SizeOf(allowed, file));
  const std::uint64_t named_bytes = raw.offset + bytes;
  if (!raw.file.empty() && raw.packing == ByteStream::Packing::kNone && file_bytes > named_bytes) {
    return InvalidArgument("read volume: the data file has ", file_bytes, " bytes, and its header ",
                           "accounts for ", named_bytes, ": another size or type");
  }
  return CheckFileExtent(file_bytes, raw.offset + raw.inflated_offset + bytes + raw.further_bytes);
}

StatusOr<RawVolume> VolumeOf(RawVolume header, std::optional<std::int64_t> number) {
  if (header.channels == 1) return header;
  if (!number) {
    return Unimplemented("read nifti: axis 4 of ", header.channels,
                         ": volumes without names: a dataset.json above imagesTr has them in "
                         "`channel_names` or `modality`");
  }
  if (*number < 0 || *number >= header.channels) {
    return InvalidArgument("read nifti: axis 4 of ", header.channels, ": no channel ", *number);
  }
  const auto bytes =
      static_cast<std::uint64_t>(header.raw.size.Pixels()) * SizeOf(header.raw.stored);
  header.raw.inflated_offset += static_cast<std::uint64_t>(*number) * bytes;
  header.raw.further_bytes = static_cast<std::uint64_t>(header.channels - 1 - *number) * bytes;
  return header;
}

Status ForEachSlice(const Folders& allowed, const std::string& path, const RawVoxels& raw,
                    const std::function<bool(std::span<const float> values)>& slice) {
  PB_RETURN_IF_ERROR(CheckRawVoxels(allowed, path, raw));
  PB_ASSIGN_OR_RETURN(ByteStream stream,
                      ByteStream::Open(allowed, FileOf(path, raw), raw.offset, raw.packing));
  PB_RETURN_IF_ERROR(stream.Skip(raw.inflated_offset));
  const auto plane = static_cast<std::size_t>(raw.size.y * raw.size.x);
  std::vector<std::byte> stored(plane * SizeOf(raw.stored));
  Volume one;
  one.dtype = DType::kFloat32;
  one.voxels.resize(plane * sizeof(float));
  for (std::int64_t z = 0; z < raw.size.z; ++z) {
    PB_RETURN_IF_ERROR(stream.Read(stored));
    ConvertSlice(stored.data(), plane, raw, one, 0);
    if (!slice({reinterpret_cast<const float*>(one.voxels.data()), plane})) break;
  }
  return absl::OkStatus();
}

StatusOr<Volume> ReadRawVolume(const Folders& allowed, const std::string& path, RawVolume header,
                               const VolumeProgress& progress) {
  const RawVoxels& raw = header.raw;
  Volume& volume = header.volume;
  PB_RETURN_IF_ERROR(CheckRawVoxels(allowed, path, raw));
  volume.size = raw.size;
  volume.facts["stored_type"] = NameOf(raw.stored);
  const bool is_integer = raw.stored != DType::kFloat32 && raw.stored != DType::kFloat64;
  if (is_integer && IsWhole(raw.slope) && IsWhole(raw.intercept)) {
    PB_ASSIGN_OR_RETURN(const bool fits,
                        ReadAs(allowed, DType::kInt16, path, raw, progress, volume));
    if (fits) return std::move(volume);
  }
  PB_RETURN_IF_ERROR(ReadAs(allowed, DType::kFloat32, path, raw, progress, volume).status());
  return std::move(volume);
}

}  // namespace patchbay::workers
