#include "runtime/zarr/byte_store.h"

#include "runtime/base/strings.h"

namespace patchbay::zarr {

StatusOr<std::string> ReadObject(ByteStore& store, std::string_view key, std::size_t max_bytes) {
  const std::string name = store.NameOf(key);
  PB_ASSIGN_OR_RETURN(const std::shared_ptr<const StoredBytes> object, store.Open(key));
  if (object == nullptr) return absl::NotFoundError(StrCat("read: ", name, ": no such object"));
  if (object->size_bytes() > max_bytes) {
    return absl::InvalidArgumentError(StrCat("read: ", name, ": ", HumanBytes(object->size_bytes()),
                                             ", more than the ", HumanBytes(max_bytes),
                                             " that are read"));
  }
  std::string text(object->size_bytes(), '\0');
  PB_RETURN_IF_ERROR(object->Read(0, std::as_writable_bytes(std::span(text)), name));
  return text;
}

}  // namespace patchbay::zarr
