// patchbay._extension: rings, batches and their arrays. The user's interface is in patchbay/*.py.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include "runtime/python/batch_array.h"
#include "runtime/python/blending.h"
#include "runtime/python/deflating.h"
#include "runtime/python/ring_mapping.h"
#include "runtime/python/ring_waiter.h"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace patchbay::python {
namespace {

/// The position of the next batch, and the ring that it comes from. Guarded by the GIL.
class StreamPosition {
 public:
  /// Takes batches from `ring` from now on, beginning with (epoch, batch); an epoch has `length`
  /// batches.
  void Move(std::shared_ptr<RingWaiter> ring, std::uint32_t epoch, std::uint64_t batch,
            std::uint64_t length);
  /// Loops that began before end with an error. Returns the number of a new one.
  std::uint64_t BeginLoop() { return ++loops_; }
  /// The next batch of the loop `number`; whatever RingWaiter::Next raises.
  std::shared_ptr<Hold> Next();

  std::uint64_t loops() const { return loops_; }
  std::uint32_t epoch() const { return epoch_; }
  std::uint64_t batch() const { return batch_; }

  /// Whether each batch looks for CUDA in the program, which a host ring's pages are locked for.
  bool looks_for_device = false;

 private:
  std::shared_ptr<RingWaiter> ring_;
  std::uint32_t epoch_ = 0;
  std::uint64_t batch_ = 0, length_ = 0, loops_ = 0;
};

/// One loop over one epoch of a stream, which lives as long.
class StreamLoop {
 public:
  StreamLoop(nanobind::object stream, std::shared_ptr<StreamPosition> position);
  /// Raises StopIteration after the epoch, PatchbayError once another loop has begun.
  std::shared_ptr<Hold> Next();
  const nanobind::object& stream() const { return stream_; }

 private:
  void LookForDevice() const;

  const nanobind::object stream_;
  const std::shared_ptr<StreamPosition> position_;
  const std::uint64_t number_;
  const std::uint32_t epoch_;
};

bool IsImported(const char* module) {
  return PyDict_GetItemString(PyImport_GetModuleDict(), module) != nullptr;
}

[[noreturn]] void RaiseLoopIsOver() {
  const nb::object error = nb::module_::import_("patchbay.errors").attr("PatchbayError");
  PyErr_SetString(error.ptr(),
                  "next batch: another loop over this stream has begun, or its state was loaded");
  throw nb::python_error();
}

void StreamPosition::Move(std::shared_ptr<RingWaiter> ring, std::uint32_t epoch,
                          std::uint64_t batch, std::uint64_t length) {
  ring_ = std::move(ring);
  epoch_ = epoch;
  batch_ = batch;
  length_ = length;
}

std::shared_ptr<Hold> StreamPosition::Next() {
  const std::shared_ptr<RingWaiter> ring = ring_;  // another thread may move the stream meanwhile
  std::shared_ptr<Hold> hold = ring->Next(-1);
  if (++batch_ == length_) {
    ++epoch_;
    batch_ = 0;
  }
  return hold;
}

StreamLoop::StreamLoop(nb::object stream, std::shared_ptr<StreamPosition> position)
    : stream_(std::move(stream)),
      position_(std::move(position)),
      number_(position_->BeginLoop()),
      epoch_(position_->epoch()) {}

std::shared_ptr<Hold> StreamLoop::Next() {
  if (position_->loops() != number_) RaiseLoopIsOver();
  if (position_->epoch() != epoch_) throw nb::stop_iteration();
  LookForDevice();
  return position_->Next();
}

/// Only PyTorch tells whether a program uses CUDA.
void StreamLoop::LookForDevice() const {
  if (position_->looks_for_device && IsImported("torch")) stream_.attr("_look_for_device")();
}

/// A batch in its slot, as a mapping from names to arrays.
class Batch {
 public:
  explicit Batch(std::shared_ptr<Hold> hold) : hold_(std::move(hold)) { hold_->InBatch(true); }
  ~Batch() { Release(); }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  const HandoverEntry& entry() const { return Held().entry(); }
  const std::vector<ArrayDescription>& arrays() const { return Held().description().arrays; }
  std::unique_ptr<BatchArray> Array(const std::string& name) const {
    for (std::size_t i = 0; i < arrays().size(); ++i) {
      if (arrays()[i].name == name) return std::make_unique<BatchArray>(hold_, i);
    }
    throw nb::key_error((name + ": the batch has " + NamesText()).c_str());
  }
  bool Has(const std::string& name) const {
    for (const ArrayDescription& array : arrays()) {
      if (array.name == name) return true;
    }
    return false;
  }
  nb::list Names() const {
    nb::list names;
    for (const ArrayDescription& array : arrays()) names.append(array.name);
    return names;
  }
  std::string NamesText() const {
    std::string text;
    for (const ArrayDescription& array : arrays()) text += (text.empty() ? "" : ", ") + array.name;
    return text;
  }
  void Release() {
    if (hold_ != nullptr) hold_->InBatch(false);
    hold_.reset();
  }

 private:
  const Hold& Held() const {
    if (hold_ == nullptr) throw nb::value_error("the batch was released");
    return *hold_;
  }

  std::shared_ptr<Hold> hold_;
};

/// (name, dtype, shape, offset, on device) of every array.
std::vector<ArrayDescription> ArraysOf(const nb::list& rows) {
  std::vector<ArrayDescription> arrays;
  for (const nb::handle row : rows) {
    ArrayDescription array;
    array.name = nb::cast<std::string>(row[0]);
    array.type = FindElementType(nb::cast<std::string>(row[1]));
    array.shape = nb::cast<std::vector<std::int64_t>>(row[2]);
    array.offset = nb::cast<std::uint64_t>(row[3]);
    array.on_device = nb::cast<bool>(row[4]);
    if (array.type == nullptr) throw nb::value_error("open ring: an array of an unknown type");
    arrays.push_back(std::move(array));
  }
  if (arrays.empty() || arrays.size() > kMostArrays) {
    throw nb::value_error("open ring: not within 1 and 16 arrays");
  }
  return arrays;
}

/// Every array must lie in its slot, so that only mapped memory is ever exposed.
void CheckArrays(const RingDescription& ring, std::uint64_t capacity) {
  for (const ArrayDescription& array : ring.arrays) {
    std::uint64_t bytes = capacity * (array.type->bits / 8);
    for (const std::int64_t axis : array.shape) {
      if (axis < 1 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(axis), &bytes)) {
        throw nb::value_error("open ring: an array of an impossible shape");
      }
    }
    const std::uint64_t slot_bytes = !array.on_device          ? ring.slot_bytes
                                     : ring.device.has_value() ? ring.device->slot_bytes
                                                               : 0;
    if (array.offset > slot_bytes || bytes > slot_bytes - array.offset) {
      throw nb::value_error("open ring: an array is outside its slot");
    }
  }
}

/// The client process's memory on the trainer's device `ordinal`.
DeviceDescription DeviceOf(const nb::dict& row, int ordinal) {
  DeviceDescription device;
  device.context = CudaContext::Retain(ordinal);
  device.bytes = nb::cast<std::uint64_t>(row["bytes"]);
  device.slot_bytes = nb::cast<std::uint64_t>(row["slot_bytes"]);
  const nb::bytes handle = nb::cast<nb::bytes>(row["handle"]);
  if (handle.size() != device.ipc_handle.size() || device.slot_bytes == 0 ||
      nb::cast<std::string>(row["uuid"]) != device.context->Uuid()) {
    throw nb::value_error("open ring: not the slots of this device");
  }
  std::memcpy(device.ipc_handle.data(), handle.data(), handle.size());
  return device;
}

/// Where the consumer's work is queued, as patchbay._cuda finds out. A slot may go in any thread
/// and while an exception is on its way.
std::vector<CudaStream> ConsumerStreams(int device) {
  if (Py_IsInitialized() == 0) return {nullptr};
  const nb::gil_scoped_acquire gil;
  const nb::error_scope saved;
  try {
    const nb::object found = nb::module_::import_("patchbay._cuda").attr("current_stream")(device);
    return {reinterpret_cast<CudaStream>(nb::cast<std::uintptr_t>(found))};
  } catch (const std::exception&) {  // the interpreter is ending
    return {nullptr};
  }
}

/// The caller keeps the descriptors; `description` is from the client process.
std::shared_ptr<RingWaiter> OpenRing(int control_fd, int ring_fd, int link_fd,
                                     const nb::dict& description, int device) {
  RingDescription ring;
  ring.ring_bytes = nb::cast<std::uint64_t>(description["ring_bytes"]);
  ring.slot_bytes = nb::cast<std::uint64_t>(description["slot_bytes"]);
  ring.slots = nb::cast<std::uint32_t>(description["slots"]);
  ring.arrays = ArraysOf(nb::cast<nb::list>(description["arrays"]));
  ring.consumer_streams = &ConsumerStreams;
  if (ring.slot_bytes == 0) throw nb::value_error("open ring: a slot has no bytes");
  if (description.contains("device")) {
    ring.device = DeviceOf(nb::cast<nb::dict>(description["device"]), device);
  }
  CheckArrays(ring, nb::cast<std::uint64_t>(description["capacity"]));
  ring.link_fd = fcntl(link_fd, F_DUPFD_CLOEXEC, 0);
  ring.control_fd = fcntl(control_fd, F_DUPFD_CLOEXEC, 0);
  ring.ring_fd = fcntl(ring_fd, F_DUPFD_CLOEXEC, 0);
  return std::make_shared<RingWaiter>(RingMapping::Open(ring));
}

int GetBuffer(PyObject* self, Py_buffer* view, int flags) {
  return nb::inst_ptr<BatchArray>(nb::handle(self))->FillBuffer(self, view, flags);
}

PyType_Slot kArraySlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&GetBuffer)}, {0, nullptr}};

nb::object ShapeOf(const BatchArray& array) {
  nb::list shape;
  for (const std::int64_t axis : array.shape()) shape.append(axis);
  return nb::tuple(shape);
}

nb::object AsNumpy(nb::handle self) {
  // NumPy itself would go through the elements.
  if (nb::cast<const BatchArray&>(self).description().on_device) {
    throw nb::buffer_error("this array lies on a CUDA device: use torch.from_dlpack(array)");
  }
  return nb::module_::import_("numpy").attr("asarray")(self);
}

/// One axis needs nothing but the interpreter; more need NumPy.
nb::object ViewOf(nb::handle self) {
  if (nb::cast<const BatchArray&>(self).shape().size() > 1) return AsNumpy(self);
  return nb::steal(PyMemoryView_FromObject(self.ptr()));
}

void BindArray(nb::module_& m) {
  nb::class_<BatchArray>(m, "Array", nb::type_slots(kArraySlots),
                         "One array of a batch: the slot's own memory, C order, patches first.\n\n"
                         "Take it with torch.from_dlpack(array), numpy.asarray(array) or "
                         "memoryview(array): none of them copies.\nIt keeps its slot until it and "
                         "everything made from it are gone.")
      .def_prop_ro("name", [](const BatchArray& a) { return a.description().name; })
      .def_prop_ro(
          "dtype", [](const BatchArray& a) { return std::string(a.description().type->name); },
          "Element type by NumPy's name; \"bfloat16\" has no NumPy type.")
      .def_prop_ro("shape", &ShapeOf, nb::sig("def shape(self) -> tuple[int, ...]"),
                   "(patches, ...), as in user documentation: (N, C, H, W).")
      .def_prop_ro("ndim", [](const BatchArray& a) { return a.shape().size(); })
      .def_prop_ro("nbytes", [](const BatchArray& a) { return a.Elements() * a.ElementBytes(); })
      .def_prop_ro(
          "data_ptr",
          [](const BatchArray& a) { return reinterpret_cast<std::uintptr_t>(a.data()); },
          "Address of the first element.")
      .def(
          "numpy", [](nb::handle self) { return AsNumpy(self); },
          "A NumPy view of the slot, no copy. BufferError for bfloat16.")
      .def(
          "tolist",
          [](nb::handle self) {
            return nb::object(nb::steal(PyMemoryView_FromObject(self.ptr())).attr("tolist")());
          },
          "Nested lists of Python numbers: a copy.")
      .def("__len__", [](const BatchArray& a) { return a.shape()[0]; })
      .def("__iter__", [](nb::handle self) { return nb::object(ViewOf(self).attr("__iter__")()); })
      .def("__getitem__",
           [](nb::handle self, nb::handle key) { return nb::object(ViewOf(self)[key]); })
      .def(
          "__dlpack_device__",
          [](const BatchArray& a) { return nb::make_tuple(a.Device().first, a.Device().second); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"),
          "DLPack's (type, id): (1, 0) host memory, (2, n) CUDA device n.")
      .def(
          "__dlpack__",
          [](const BatchArray& a, nb::handle stream, nb::handle max_version, nb::handle device,
             nb::handle copy) { return a.MakeCapsule(stream, max_version, device, copy); },
          nb::kw_only(), "stream"_a = nb::none(), "max_version"_a = nb::none(),
          "dl_device"_a = nb::none(), "copy"_a = nb::none(),
          "A capsule of the slot itself. It does not wait, since the bytes of a batch are "
          "complete. "
          "The slot is kept until work queued on `stream` (a CUDA stream, None = the default one, "
          "-1 = none) has ended.")
      .def("__repr__", [](const BatchArray& a) {
        std::string shape;
        for (const std::int64_t axis : a.shape()) shape += std::to_string(axis) + ", ";
        return "<patchbay array " + a.description().name + " " + a.description().type->name + " (" +
               shape.substr(0, shape.size() - 2) + ")>";
      });
}

void BindBatch(nb::module_& m) {
  nb::class_<Batch>(
      m, "Batch",
      "One rank's part of one batch: a mapping from names to arrays.\n\nIts slot goes "
      "back to the ring when the batch and every tensor made from it are gone.")
      .def_prop_ro(
          "epoch", [](const Batch& b) { return b.entry().epoch; }, "From 0.")
      .def_prop_ro(
          "index", [](const Batch& b) { return b.entry().batch; },
          "Global batch within the epoch, from 0.")
      .def_prop_ro(
          "count", [](const Batch& b) { return b.entry().count; }, "Patches of this rank.")
      .def_prop_ro(
          "real_count", [](const Batch& b) { return b.entry().real_count; },
          "Patches before the padding of a last batch (tail: pad), which comes at the end.")
      .def_prop_ro(
          "unit", [](const Batch& b) { return b.entry().unit; },
          "The image of the batch, in a run of `patchbay map`: numbered among those with patches.")
      .def_prop_ro(
          "unit_patches", [](const Batch& b) { return b.entry().unit_patches; },
          "All patches of that image.")
      .def("release", &Batch::Release,
           "Like `del`: empties the batch. Arrays and tensors made before keep the slot.")
      .def("keys", &Batch::Names, nb::sig("def keys(self) -> list[str]"))
      .def(
          "values",
          [](const Batch& b) {
            nb::list values;
            for (const auto& array : b.arrays()) values.append(b.Array(array.name));
            return values;
          },
          nb::sig("def values(self) -> list[Array]"))
      .def(
          "items",
          [](const Batch& b) {
            nb::list items;
            for (const auto& array : b.arrays()) {
              items.append(nb::make_tuple(array.name, b.Array(array.name)));
            }
            return items;
          },
          nb::sig("def items(self) -> list[tuple[str, Array]]"))
      .def(
          "get",
          [](const Batch& b, const std::string& name, nb::object silent) {
            return b.Has(name) ? nb::cast(b.Array(name)) : silent;
          },
          "name"_a, "default"_a = nb::none())
      .def("__getitem__", &Batch::Array)
      .def("__contains__",
           [](const Batch& b, nb::handle name) {
             return nb::isinstance<nb::str>(name) && b.Has(nb::cast<std::string>(name));
           })
      .def(
          "__iter__", [](const Batch& b) { return nb::object(b.Names().attr("__iter__")()); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[str]"))
      .def("__len__", [](const Batch& b) { return b.arrays().size(); })
      .def("__repr__", [](const Batch& b) {
        return "<patchbay batch " + std::to_string(b.entry().epoch) + "/" +
               std::to_string(b.entry().batch) + ": " + std::to_string(b.entry().count) +
               " patches of " + b.NamesText() + ">";
      });
}

void BindRing(nb::module_& m) {
  nb::class_<RingWaiter>(m, "Ring")
      .def(
          "next",
          [](RingWaiter& r, std::int64_t ms) { return std::make_unique<Batch>(r.Next(ms)); },
          "timeout_ms"_a = -1)
      .def("close", &RingWaiter::Close)
      .def(
          "use_device",
          [](const RingWaiter& r, int device) { r.ring().UseDevice(CudaContext::Retain(device)); },
          "device"_a,
          "Page-locks a host ring; from now on slots go back behind the work queued on that "
          "device.")
      .def("stats", &RingWaiter::Stats);
  m.def("open_ring", &OpenRing, "control_fd"_a, "ring_fd"_a, "link_fd"_a, "description"_a,
        "device"_a = 0);
  m.def(
      "device_uuid", [](int device) { return CudaContext::Retain(device)->Uuid(); }, "device"_a,
      "\"GPU-...\" of a CUDA device of this process. RuntimeError without a driver or device.");
}

void BindLoop(nb::module_& m) {
  nb::class_<StreamPosition>(m, "Position")
      .def(nb::init<>())
      .def("move", &StreamPosition::Move, "ring"_a, "epoch"_a, "batch"_a, "length"_a,
           "From now on batches come from `ring`, the first one as (epoch, batch).")
      .def("end_loops", [](StreamPosition& p) { p.BeginLoop(); })
      .def_prop_ro("epoch", &StreamPosition::epoch)
      .def_prop_ro("batch", &StreamPosition::batch)
      .def_rw("looks_for_device", &StreamPosition::looks_for_device);
  nb::class_<StreamLoop>(m, "Loop", "One loop over one epoch of a stream.")
      .def(nb::init<nb::object, std::shared_ptr<StreamPosition>>(), "stream"_a, "position"_a)
      .def(
          "__iter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __iter__(self) -> Loop"))
      .def("__next__", [](StreamLoop& loop) { return std::make_unique<Batch>(loop.Next()); })
      .def("__len__", [](const StreamLoop& loop) { return nb::len(loop.stream()); });
}

/// An array of NumPy's, in C order, in host memory.
template <typename T, std::size_t kAxes>
using HostArray = nb::ndarray<T, nb::ndim<kAxes>, nb::c_contig, nb::device::cpu>;

template <typename T>
Extent3 ExtentOf(const HostArray<T, 4>& array) {
  return {array.shape_ptr()[1], array.shape_ptr()[2], array.shape_ptr()[3]};
}

/// Origin, first and end of a PatchPlace.
using Places = std::vector<std::array<Extent3, 3>>;

std::vector<PatchPlace> PlacesOf(const Places& places) {
  std::vector<PatchPlace> found;
  for (const auto& [origin, first, end] : places) found.push_back({origin, first, end});
  return found;
}

/// Numbers that reach outside of an array are cut off: memory is never touched there.
bool AddArrays(const HostArray<std::uint32_t, 4>& sums, const HostArray<const float, 5>& patches,
               const HostArray<const std::uint32_t, 4>& weights,
               const std::vector<std::size_t>& numbers, const Places& places) {
  const BlendBatch batch = {.channels = patches.shape(1),
                            .tile = ExtentOf(sums),
                            .patch = ExtentOf(weights),
                            .probabilities = patches.data(),
                            .weights = weights.data()};
  const Extent3 patch = {patches.shape_ptr()[2], patches.shape_ptr()[3], patches.shape_ptr()[4]};
  const auto is_there = [&](std::size_t number) { return number < patches.shape(0); };
  if (sums.shape(0) != batch.channels || weights.shape(0) != 1 || batch.patch != patch ||
      numbers.size() != places.size() || !std::ranges::all_of(numbers, is_there)) {
    throw nb::value_error("blend: the sums or weights are of another patch");
  }
  const std::vector<PatchPlace> found = PlacesOf(places);
  const nb::gil_scoped_release released;
  return AddToTile(batch, numbers, found, sums.data());
}

bool AddWeightArrays(const HostArray<std::uint32_t, 4>& sums,
                     const HostArray<const std::uint32_t, 4>& weights, const Places& places) {
  if (sums.shape(0) != 1 || weights.shape(0) != 1) {
    throw nb::value_error("blend: weights have one channel");
  }
  return AddWeights({.channels = 1,
                     .tile = ExtentOf(sums),
                     .patch = ExtentOf(weights),
                     .probabilities = nullptr,
                     .weights = weights.data()},
                    PlacesOf(places), sums.data());
}

template <typename Pixel>
void FinishArray(const HostArray<std::uint32_t, 4>& sums,
                 const HostArray<const std::uint32_t, 4>& weights, const HostArray<Pixel, 4>& out) {
  const std::size_t channels = out.shape(0);
  if (sums.shape(0) != channels || weights.shape(0) != 1 || ExtentOf(sums) != ExtentOf(out) ||
      ExtentOf(weights) != ExtentOf(out)) {
    throw nb::value_error("blend: the sums are of another tile");
  }
  const nb::gil_scoped_release released;
  FinishTile(sums.data(), weights.data(), channels, weights.size(), out.data());
}

template <typename Pixel>
void HalveArray(const HostArray<const Pixel, 4>& values, const HostArray<Pixel, 4>& out) {
  Extent3 half = ExtentOf(values);
  for (std::int64_t& n : half) n = (n + 1) / 2;
  if (out.shape(0) != values.shape(0) || ExtentOf(out) != half) {
    throw nb::value_error("blend: the values are not twice as large");
  }
  const nb::gil_scoped_release released;
  Halve(values.data(), values.shape(0), ExtentOf(values), out.data());
}

nb::bytes DeflateArray(const HostArray<const std::uint8_t, 1>& in) {
  const std::unique_ptr<std::uint8_t[]> out(new std::uint8_t[MostDeflated(in.size())]);
  std::size_t size = 0;
  {
    const nb::gil_scoped_release released;
    size = Deflate(in.data(), in.size(), out.get());
  }
  return nb::bytes(out.get(), size);
}

std::uint32_t Crc32cOf(const nb::bytes& content) {
  return Crc32c(static_cast<const std::uint8_t*>(content.data()), content.size());
}

/// For patchbay.map, which documents them.
void BindBlending(nb::module_& m) {
  m.attr("BLEND_WHOLE") = kWhole;
  m.attr("BLEND_MOST_WEIGHT") = kMostWeight;
  m.def(
      "blend_add", &AddArrays, "sums"_a, "patches"_a, "weights"_a, "numbers"_a, "places"_a,
      "Adds patches of a batch to a tile. A place is (origin in the tile, first, end): these "
      "pixels "
      "of the patch count. Probabilities are rounded to multiples of 1 / BLEND_WHOLE. False where "
      "one is not within 0 and 1.");
  m.def("blend_weigh", &AddWeightArrays, "sums"_a, "weights"_a, "places"_a,
        "Adds the weights of patches at such places. False where those of a pixel exceed "
        "BLEND_MOST_WEIGHT.");
  const char* finish =
      "Weighted means, 0 to 254, and 255 where the weight is 0; as uint16 the bits of float16, and "
      "NaN there. The sums become 0.";
  m.def("blend_finish", &FinishArray<std::uint8_t>, "sums"_a, "weights"_a, "out"_a, finish);
  m.def("blend_finish", &FinishArray<std::uint16_t>, "sums"_a, "weights"_a, "out"_a, finish);
  const char* halve = "Means of 2 x 2 x 2 such values, of those that are covered.";
  m.def("blend_halve", &HalveArray<std::uint8_t>, "values"_a, "out"_a, halve);
  m.def("blend_halve", &HalveArray<std::uint16_t>, "values"_a, "out"_a, halve);
  m.def("deflate", &DeflateArray, "content"_a, "A stream of deflate, without a header.");
  m.def("crc32c", &Crc32cOf, "content"_a,
        "Castagnoli's checksum, which closes an index of a shard.");
}

}  // namespace

}  // namespace patchbay::python
NB_MODULE(_extension, m) {
  m.doc() = "Rings that a client process of Patchbay handed over.";
  // A batch that outlives the interpreter's last moments is no leak.
  nb::set_leak_warnings(false);
  patchbay::python::BindArray(m);
  patchbay::python::BindBatch(m);
  patchbay::python::BindRing(m);
  patchbay::python::BindLoop(m);
  patchbay::python::BindBlending(m);
}
