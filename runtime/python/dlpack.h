// The structures of DLPack 1.0 (https://dmlc.github.io/dlpack), by which array libraries hand
// tensors to one another without a copy.
#pragma once

#include <cstdint>

namespace patchbay::python::dlpack {

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

}  // namespace patchbay::python::dlpack
