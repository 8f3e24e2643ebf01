#include "runtime/cli/batch_files.h"

#include <cerrno>

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

Status SaveBatch(const std::string& folder, const client::Batch& batch) {
  const std::string path = StrCat(folder, "/epoch-", Padded(batch.epoch(), 4), "-batch-",
                                  Padded(batch.index(), 6), ".npy");
  const TensorView tensor = batch.tensor();
  PB_ASSIGN_OR_RETURN(const std::string header, NpyHeader(tensor.dtype, tensor));
  const std::string partial = path + ".partial";
  const auto write = [&]() -> Status {
    PB_ASSIGN_OR_RETURN(const UniqueFd file, OpenFile(partial, O_WRONLY | O_CREAT | O_TRUNC));
    PB_RETURN_IF_ERROR(WriteAt(file.get(), 0, AsBytes(header), path));
    PB_RETURN_IF_ERROR(WriteAt(file.get(), header.size(), batch.bytes(), path));
    if (rename(partial.c_str(), path.c_str()) != 0) return FromErrno("save batch", path, errno);
    return absl::OkStatus();
  };
  const Status written = write();
  if (!written.ok()) unlink(partial.c_str());
  return written;
}

}  // namespace patchbay::cli
