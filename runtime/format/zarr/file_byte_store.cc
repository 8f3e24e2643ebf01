#include "runtime/format/zarr/file_byte_store.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"

namespace patchbay::zarr {

FileByteStore::FileByteStore(Folders allowed, std::string root, std::shared_ptr<FileCache> files)
    : root_(std::move(root)),
      files_(std::move(files)),
      owner_(files_->AddOwner()),
      allowed_(std::move(allowed)) {}

FileByteStore::~FileByteStore() { files_->Forget(owner_); }

std::string FileByteStore::NameOf(std::string_view key) const {
  return key.empty() ? root_ : StrCat(root_, "/", key);
}

StatusOr<std::shared_ptr<const StoredBytes>> FileByteStore::Open(std::string_view key) {
  const std::string name = NameOf(key);
  PB_ASSIGN_OR_RETURN(std::shared_ptr<const CachedFile> file,
                      files_->Open(allowed_, owner_, name, [&](const FileIdentity& identity) {
                        return expected_ == nullptr || expected_->Has(key, identity);
                      }));
  const bool is_gone = file == nullptr && expected_ != nullptr && expected_->Has(key);
  if (is_gone) return FileError(absl::StatusCode::kAborted, "open", name, "it is gone");
  return std::shared_ptr<const StoredBytes>(std::move(file));
}

StatusOr<std::vector<std::string>> FileByteStore::List(std::string_view prefix) {
  namespace fs = std::filesystem;
  std::vector<std::string> keys;
  std::error_code error;
  const fs::path folder = NameOf(prefix);
  fs::recursive_directory_iterator it(folder, error);
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory) {
    return keys;
  }
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (it->is_regular_file(error)) keys.push_back(it->path().lexically_relative(root_).string());
  }
  if (error) return FromErrno("list", folder.string(), error.value());
  std::sort(keys.begin(), keys.end());
  return keys;
}

StatusOr<std::shared_ptr<const StoredBytes>> OpenStoredFile(const Folders& allowed,
                                                            const std::string& path) {
  FileByteStore store(allowed, path, std::make_shared<FileCache>(1));
  PB_ASSIGN_OR_RETURN(auto file, store.Open(""));
  if (file == nullptr) return FileError(absl::StatusCode::kNotFound, "open", path, "no such file");
  return file;
}

}  // namespace patchbay::zarr
