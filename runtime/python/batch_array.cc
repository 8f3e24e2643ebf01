#include "runtime/python/batch_array.h"

#include <utility>

namespace nb = nanobind;

namespace patchbay::python {
namespace {

/// The ground of a consumer's tensor: a share of the slot, and its shape.
template <typename ManagedTensor>
struct Export {
  ManagedTensor managed{};
  std::shared_ptr<Hold> hold;
  std::size_t array = 0;
  std::vector<std::int64_t> shape, strides;

  /// May be called from any thread, with or without the interpreter's lock.
  static void Delete(ManagedTensor* managed) {
    auto* const self = static_cast<Export*>(managed->context);
    self->hold->CountArray(self->array, -1);
    delete self;
  }
};

/// Destroys the tensor of a capsule that was not consumed. A consumer renames the capsule.
template <typename ManagedTensor>
void DropCapsule(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, name) == 0) return;
  auto* const managed = static_cast<ManagedTensor*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

template <typename ManagedTensor>
nb::object CapsuleOf(std::unique_ptr<Export<ManagedTensor>> made, const char* name,
                     PyCapsule_Destructor drop) {
  made->managed.tensor.shape = made->shape.data();
  made->managed.tensor.strides = made->strides.data();
  made->managed.context = made.get();
  made->managed.deleter = &Export<ManagedTensor>::Delete;
  made->hold->CountArray(made->array, 1);
  PyObject* const capsule = PyCapsule_New(&made->managed, name, drop);
  if (capsule == nullptr) {
    made->hold->CountArray(made->array, -1);
    throw nb::python_error();
  }
  (void)made.release();
  return nb::steal(capsule);
}

bool AsksForVersionOne(nb::handle max_version) {
  return !max_version.is_none() && nb::cast<int>(max_version[0]) >= 1;
}

}  // namespace

BatchArray::BatchArray(std::shared_ptr<Hold> hold, std::size_t array)
    : hold_(std::move(hold)), array_(array) {
  shape_.push_back(hold_->entry().count);
  shape_.insert(shape_.end(), description().shape.begin(), description().shape.end());
  strides_.resize(shape_.size());
  std::int64_t stride = 1;
  for (std::size_t i = shape_.size(); i-- > 0;) {
    strides_[i] = stride;
    stride *= shape_[i];
  }
  buffer_shape_.assign(shape_.begin(), shape_.end());
  for (const std::int64_t elements : strides_) buffer_strides_.push_back(elements * ElementBytes());
  hold_->CountArray(array_, 1);
}

BatchArray::~BatchArray() { hold_->CountArray(array_, -1); }

std::int64_t BatchArray::Elements() const {
  std::int64_t elements = 1;
  for (const std::int64_t axis : shape_) elements *= axis;
  return elements;
}

std::pair<int, int> BatchArray::Device() const {
  if (!description().on_device) return {dlpack::kCpu, 0};
  return {dlpack::kCuda, hold_->description().device->context->device()};
}

nb::object BatchArray::MakeCapsule(nb::handle stream, nb::handle max_version, nb::handle device,
                                   nb::handle copy) const {
  const auto [device_type, device_id] = Device();
  if (!copy.is_none() && nb::cast<bool>(copy)) {
    throw nb::buffer_error("a batch is handed out without a copy: copy the tensor");
  }
  if (!device.is_none() &&
      (nb::cast<int>(device[0]) != device_type || nb::cast<int>(device[1]) != device_id)) {
    throw nb::buffer_error(device_type == dlpack::kCpu
                               ? "this array lies in host memory: copy the tensor to the device"
                               : "this array lies on a CUDA device: copy the tensor from it");
  }
  NoteStream(stream);
  const dlpack::Device place{device_type, device_id};
  const auto fill = [this, place](auto& made) {
    made.hold = hold_;
    made.array = array_;
    made.shape = shape_;
    made.strides = strides_;
    dlpack::Tensor& tensor = made.managed.tensor;
    tensor.data = data();
    tensor.device = place;
    tensor.axes = static_cast<std::int32_t>(shape_.size());
    tensor.type = {description().type->dlpack_code, description().type->bits, 1};
  };
  if (AsksForVersionOne(max_version)) {
    auto made = std::make_unique<Export<dlpack::ManagedVersioned>>();
    fill(*made);
    made->managed.major = 1;
    return CapsuleOf(std::move(made), dlpack::kVersionedName, [](PyObject* capsule) {
      DropCapsule<dlpack::ManagedVersioned>(capsule, dlpack::kVersionedName);
    });
  }
  auto made = std::make_unique<Export<dlpack::Managed>>();
  fill(*made);
  return CapsuleOf(std::move(made), dlpack::kName,
                   [](PyObject* capsule) { DropCapsule<dlpack::Managed>(capsule, dlpack::kName); });
}

/// `None` means the legacy default stream, -1 no stream; 1 and 2 are the driver's own handles of
/// the default streams.
void BatchArray::NoteStream(nb::handle stream) const {
  if (!description().on_device) return;
  const std::int64_t handle = stream.is_none() ? 0 : nb::cast<std::int64_t>(stream);
  if (handle == -1) return;
  if (handle < 0) throw nb::value_error("__dlpack__: stream: expected a CUDA stream, None or -1");
  hold_->NoteStream(reinterpret_cast<CudaStream>(handle));
}

int BatchArray::FillBuffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  if (description().on_device) {
    PyErr_SetString(PyExc_BufferError,
                    "this array lies on a CUDA device: use torch.from_dlpack(array)");
    return -1;
  }
  if (description().type->format == nullptr) {
    PyErr_SetString(
        PyExc_BufferError,
        "bfloat16 has no buffer format: use torch.from_dlpack, or batch.dtype: float16");
    return -1;
  }
  static std::byte nothing{};
  view->buf = Elements() > 0 ? data() : &nothing;
  view->obj = self;
  Py_INCREF(self);
  view->len = static_cast<Py_ssize_t>(Elements() * ElementBytes());
  view->readonly = 0;
  view->itemsize = static_cast<Py_ssize_t>(ElementBytes());
  view->ndim = static_cast<int>(shape_.size());
  view->format =
      (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(description().type->format) : nullptr;
  view->shape = (flags & PyBUF_ND) != 0 ? buffer_shape_.data() : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? buffer_strides_.data() : nullptr;
  view->suboffsets = nullptr;
  view->internal = nullptr;
  return 0;
}

}  // namespace patchbay::python
