// One array of a batch as Python sees it: shape, element type, DLPack capsules and buffers of the
// slot's own memory.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "runtime/python/ring_mapping.h"

namespace patchbay::python {

namespace dlpack {

inline constexpr std::int32_t kCpu = 1, kCuda = 2;
inline constexpr char kName[] = "dltensor", kVersionedName[] = "dltensor_versioned";

struct Device {
  std::int32_t type, id;
};
struct ElementCode {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct Tensor {
  void* data;
  Device device;
  std::int32_t axes;
  ElementCode type;
  std::int64_t *shape, *strides;  ///< strides in elements
  std::uint64_t byte_offset;
};
struct Managed {
  Tensor tensor;
  void* context;
  void (*deleter)(Managed*);
};
struct ManagedVersioned {
  std::uint32_t major, minor;
  void* context;
  void (*deleter)(ManagedVersioned*);
  std::uint64_t flags;
  Tensor tensor;
};

}  // namespace dlpack

/// Keeps the slot as long as it lives, and so does everything made from it.
class BatchArray {
 public:
  BatchArray(std::shared_ptr<Hold> hold, std::size_t array);
  ~BatchArray();
  BatchArray(const BatchArray&) = delete;
  BatchArray& operator=(const BatchArray&) = delete;

  const ArrayDescription& description() const { return hold_->description().arrays[array_]; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::int64_t Elements() const;
  std::int64_t ElementBytes() const { return description().type->bits / 8; }
  /// DLPack's (type, id) of the device that holds the array.
  std::pair<int, int> Device() const;
  std::byte* data() const { return hold_->Address(array_); }

  /// A DLPack capsule whose consumer shares ownership of the slot. BufferError for a request that
  /// needs a copy. Bytes in device memory are complete, so `stream` need not wait; the slot is kept
  /// until work queued on `stream` has ended.
  nanobind::object MakeCapsule(nanobind::handle stream, nanobind::handle max_version,
                               nanobind::handle device, nanobind::handle copy) const;
  /// Fills the view of the buffer protocol: 0, or -1 with BufferError (bfloat16, and device
  /// memory).
  int FillBuffer(PyObject* self, Py_buffer* view, int flags);

 private:
  void NoteStream(nanobind::handle stream) const;

  const std::shared_ptr<Hold> hold_;
  const std::size_t array_;
  std::vector<std::int64_t> shape_;
  std::vector<std::int64_t> strides_;  ///< in elements
  std::vector<Py_ssize_t> buffer_shape_, buffer_strides_;
};

}  // namespace patchbay::python
