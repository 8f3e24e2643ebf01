#include "runtime/format/zarr/byte_store.h"

#include <algorithm>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"

namespace patchbay::zarr {

StatusOr<Digest> DigestOf(const StoredBytes& object, std::string_view name) {
  constexpr std::uint64_t kBlockBytes = 1u << 20;
  const std::uint64_t size = object.size_bytes();
  Sha256 hash;
  std::vector<std::byte> block(static_cast<std::size_t>(std::min(kBlockBytes, size)));
  for (std::uint64_t at = 0; at < size; at += block.size()) {
    const auto part = std::span(block).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), size - at)));
    PB_RETURN_IF_ERROR(object.Read(at, part, name));
    hash.Update(part);
  }
  return hash.Finish();
}

StatusOr<std::string> ReadObject(ByteStore& store, std::string_view key, std::size_t max_bytes) {
  const std::string name = store.NameOf(key);
  PB_ASSIGN_OR_RETURN(const std::shared_ptr<const StoredBytes> object, store.Open(key));
  if (object == nullptr)
    return ErrorAbout(absl::StatusCode::kNotFound, "read", name, "no such object");
  if (object->size_bytes() > max_bytes) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "read", name,
                      StrCat(HumanBytes(object->size_bytes()), ", more than the ",
                             HumanBytes(max_bytes), " that are read"));
  }
  std::string text(object->size_bytes(), '\0');
  PB_RETURN_IF_ERROR(object->Read(0, std::as_writable_bytes(std::span(text)), name));
  return text;
}

}  // namespace patchbay::zarr
