// A string as a file, for tests of readers.
#pragma once

#include <cstring>
#include <string>
#include <utility>

#include "runtime/format/zarr/byte_store.h"

namespace patchbay::zarr {

class BytesInMemory final : public StoredBytes {
 public:
  explicit BytesInMemory(std::string bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size_bytes() const override { return bytes_.size(); }
  std::string_view stamp() const override { return "memory"; }
  Status Read(std::uint64_t offset, std::span<std::byte> out, std::string_view) const override {
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset) {
      return absl::InternalError("read beyond the end");
    }
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return absl::OkStatus();
  }

 private:
  std::string bytes_;
};

}  // namespace patchbay::zarr
