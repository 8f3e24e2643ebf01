#include "runtime/cli/batch_files.h"

#include <cerrno>
#include <filesystem>
#include <span>
#include <system_error>

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/base/hash.h"
#include "runtime/base/strings.h"

namespace patchbay::cli {
namespace {

constexpr std::size_t kNpyAlignment = 64;
constexpr std::size_t kNpyPreamble = 10;  ///< magic, version, header length

const char* NpyType(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return "|u1";
    case DType::kFloat16:
      return "<f2";
    case DType::kBfloat16:
      return "|V2";
    case DType::kFloat32:
      return "<f4";
    case DType::kInt32:
      return "<i4";
    case DType::kInt64:
      return "<i8";
    default:
      return nullptr;
  }
}

std::string Padded(std::uint64_t number, std::size_t digits) {
  std::string text = std::to_string(number);
  return text.size() < digits ? std::string(digits - text.size(), '0') + text : text;
}

}  // namespace

StatusOr<std::string> NpyHeader(DType dtype, const TensorView& tensor) {
  const char* type = NpyType(dtype);
  if (type == nullptr) {
    return absl::InvalidArgumentError(StrCat("save batch: ", NameOf(dtype), ": no NumPy type"));
  }
  std::string shape;
  for (int i = 0; i < tensor.rank; ++i) {
    shape += StrCat(tensor.shape[static_cast<std::size_t>(i)], ",");
  }
  std::string text =
      StrCat("{'descr': '", type, "', 'fortran_order': False, 'shape': (", shape, "), }");
  const std::size_t unpadded = kNpyPreamble + text.size() + 1;
  text.append((kNpyAlignment - unpadded % kNpyAlignment) % kNpyAlignment, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

static Status SaveArray(const std::string& path, const client::BatchArray& array) {
  const TensorView& tensor = array.tensor;
  PB_ASSIGN_OR_RETURN(const std::string header, NpyHeader(tensor.dtype, tensor));
  const std::span<const std::byte> bytes(
      tensor.data, static_cast<std::size_t>(tensor.shape[0] * tensor.stride_bytes[0]));
  const std::string partial = path + ".partial";
  const auto write = [&]() -> Status {
    PB_ASSIGN_OR_RETURN(const UniqueFd file, OpenFile(partial, O_WRONLY | O_CREAT | O_TRUNC));
    PB_RETURN_IF_ERROR(WriteAt(file.get(), 0, AsBytes(header), path));
    PB_RETURN_IF_ERROR(WriteAt(file.get(), header.size(), bytes, path));
    if (rename(partial.c_str(), path.c_str()) != 0) return FromErrno("save batch", path, errno);
    return absl::OkStatus();
  };
  const Status written = write();
  if (!written.ok()) unlink(partial.c_str());
  return written;
}

Status PrepareBatchFolder(const std::string& folder, bool force) {
  PB_RETURN_IF_ERROR(MakeDirectories(folder));
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (force || !name.starts_with("epoch-") || !name.ends_with(".npy")) continue;
    return absl::AlreadyExistsError(
        StrCat("save batches: ", folder, ": it holds batches (", name,
               "); give another folder, or --force to write among them"));
  }
  return error ? FromErrno("save batches", folder, error.value()) : absl::OkStatus();
}

Status SaveBatch(const std::string& folder, const client::Batch& batch) {
  const std::string stem =
      StrCat(folder, "/epoch-", Padded(batch.epoch(), 4), "-batch-", Padded(batch.index(), 6));
  for (const client::BatchArray& array : batch.arrays()) {
    PB_RETURN_IF_ERROR(SaveArray(StrCat(stem, "-", array.name, ".npy"), array));
  }
  return absl::OkStatus();
}

}  // namespace patchbay::cli
