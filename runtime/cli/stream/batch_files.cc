#include "runtime/cli/stream/batch_files.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "runtime/core/counted.h"
#include "runtime/core/hash.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/os/file_names.h"
#include "runtime/os/temporary_file.h"

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

constexpr std::string_view kRankMark = "-rank-";

/// Whether a file is a batch that this rank would write, or one of a stream without ranks. Batches
/// of other ranks do not count.
bool IsBatchFile(const std::string& name, const BatchFolderOptions& options) {
  if (!name.starts_with("epoch-") || !name.ends_with(".npy")) return false;
  return options.world_size == 1 || name.find(kRankMark) == std::string::npos ||
         name.find(StrCat(kRankMark, options.rank, "-")) != std::string::npos;
}

/// A lock that is held until it is closed: by the ranks of a stream together, else by one stream
/// alone. Where the file system has no locks there is none.
StatusOr<UniqueFd> LockFolder(const std::string& folder, bool together) {
  PB_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(Folders::OfThisUser(), folder, O_RDONLY | O_DIRECTORY));
  if (flock(fd.get(), (together ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0 || errno != EWOULDBLOCK) {
    return fd;
  }
  return ErrorAbout(absl::StatusCode::kFailedPrecondition, "save batches", folder,
                    "another stream saves there now; give another folder");
}

/// Bytes of the header of an array with `patches` patches.
std::uint64_t HeaderBytes(const ArrayLayout& array, std::uint32_t patches) {
  TensorView tensor{};
  tensor.rank = static_cast<int>(array.shape.size()) + 1;
  tensor.shape[0] = patches;
  std::copy(array.shape.begin(), array.shape.end(), tensor.shape.begin() + 1);
  const StatusOr<std::string> header = NpyHeader(array.dtype, tensor);
  return header.ok() ? header->size() : 0;
}

/// The arrays of a batch as files with temporary names until Name; files that were not renamed are
/// removed.
class UnnamedFiles {
 public:
  UnnamedFiles() = default;
  UnnamedFiles(const UnnamedFiles&) = delete;
  UnnamedFiles& operator=(const UnnamedFiles&) = delete;
  ~UnnamedFiles() {
    for (const auto& [partial, path] : files_) unlink(partial.c_str());
  }

  Status Add(const std::string& path, const client::BatchArray& array) {
    const TensorView& tensor = array.tensor;
    PB_ASSIGN_OR_RETURN(const std::string header, NpyHeader(tensor.dtype, tensor));
    const std::span<const std::byte> bytes(
        tensor.data, static_cast<std::size_t>(tensor.shape[0] * tensor.stride_bytes[0]));
    PB_ASSIGN_OR_RETURN(TemporaryFile file, CreateBeside(Folders::OfThisUser(), path, ".partial"));
    files_.emplace_back(file.path, path);
    PB_RETURN_IF_ERROR(WriteAt(file.fd.get(), 0, AsBytes(header), path));
    PB_RETURN_IF_ERROR(WriteAt(file.fd.get(), header.size(), bytes, path));
    // Some file systems report a lack of space only here.
    if (close(file.fd.release()) != 0) return FromErrno("save batch", path, errno);
    return absl::OkStatus();
  }

  Status Name(bool replace) {
    for (; !files_.empty(); files_.pop_back()) {
      const auto& [partial, path] = files_.back();
      const Status named = replace ? RenameFile(Folders::OfThisUser(), partial, path)
                                   : RenameUnlessTaken(Folders::OfThisUser(), partial, path);
      if (absl::IsAlreadyExists(named)) {
        return ErrorAbout(absl::StatusCode::kAlreadyExists, "save batch", path,
                          "a file of another stream exists");
      }
      PB_RETURN_IF_ERROR(named);
    }
    return absl::OkStatus();
  }

 private:
  std::vector<std::pair<std::string, std::string>> files_;
};

}  // namespace

StatusOr<std::string> NpyHeader(DType dtype, const TensorView& tensor) {
  const char* type = NpyType(dtype);
  if (type == nullptr) return InvalidArgument("save batch: ", NameOf(dtype), ": no NumPy type");
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

StatusOr<BatchFolder> BatchFolder::Open(const std::string& folder,
                                        const BatchFolderOptions& options) {
  PB_RETURN_IF_ERROR(MakeDirectories(Folders::OfThisUser(), folder));
  PB_ASSIGN_OR_RETURN(UniqueFd lock, LockFolder(folder, options.world_size > 1));
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (options.force || !IsBatchFile(name, options)) continue;
    return ErrorAbout(absl::StatusCode::kAlreadyExists, "save batches", folder,
                      StrCat("it holds batches (", name,
                             "); give another folder, or --force to write among them"));
  }
  if (error) return FromErrno("save batches", folder, error.value());
  return BatchFolder(folder, options, std::move(lock));
}

std::uint64_t BytesOfBatches(const BatchLayout& layout, const StreamGeometry& geometry,
                             std::uint32_t rank, const Position& first, std::uint64_t batches) {
  const auto bytes_of = [&](std::uint32_t patches) {
    std::uint64_t bytes = 0;
    for (const ArrayLayout& array : layout.arrays) {
      bytes += patches * array.PatchBytes() + HeaderBytes(array, patches);
    }
    return bytes;
  };
  const std::uint64_t per_epoch = BatchesPerEpoch(geometry);
  const std::uint32_t usual = RankRun(geometry, 0, rank).count;
  const std::uint32_t last = RankRun(geometry, per_epoch - 1, rank).count;
  // A rank without patches in an epoch's last batch continues with the next epoch.
  const std::uint64_t lasts =
      last == 0 ? 0 : (first.batch + batches) / per_epoch - first.batch / per_epoch;
  return (batches - lasts) * bytes_of(usual) + lasts * bytes_of(last);
}

Status CheckSaveFits(const std::string& folder, std::uint64_t batches, std::uint64_t needed_bytes) {
  PB_ASSIGN_OR_RETURN(const std::uint64_t free_bytes, FreeBytes(Folders::OfThisUser(), folder));
  if (free_bytes >= needed_bytes) return absl::OkStatus();
  return ErrorAbout(absl::StatusCode::kFailedPrecondition, "save batches", folder,
                    StrCat(Counted(batches, "batch takes", "batches take"), " ",
                           HumanBytes(needed_bytes), ", and ", HumanBytes(free_bytes),
                           " are free; give --save a folder with more room, or fewer --batches "
                           "(or --force, where files are taken away meanwhile)"));
}

std::string BatchFolder::NameOf(const Position& position) const {
  const std::string rank = options_.world_size > 1 ? StrCat(kRankMark, options_.rank) : "";
  return StrCat("epoch-", Padded(position.epoch, 4), "-batch-", Padded(position.batch, 6), rank);
}

Status BatchFolder::Save(const client::Batch& batch) const {
  const std::string stem = StrCat(folder_, "/", NameOf({batch.epoch(), batch.index()}));
  UnnamedFiles files;
  for (const client::BatchArray& array : batch.arrays()) {
    PB_RETURN_IF_ERROR(files.Add(StrCat(stem, "-", array.name, ".npy"), array));
  }
  return files.Name(options_.force);
}

}  // namespace patchbay::cli
