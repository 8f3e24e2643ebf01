#include "runtime/python/stream_loop.h"

#include <utility>

namespace nb = nanobind;

namespace patchbay::python {
namespace {

bool IsImported(const char* module) {
  return PyDict_GetItemString(PyImport_GetModuleDict(), module) != nullptr;
}

[[noreturn]] void RaiseLoopIsOver() {
  const nb::object error = nb::module_::import_("patchbay.errors").attr("PatchbayError");
  PyErr_SetString(error.ptr(),
                  "next batch: another loop over this stream has begun, or its state was loaded");
  throw nb::python_error();
}

}  // namespace

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

/// PyTorch alone says whether a program uses CUDA.
void StreamLoop::LookForDevice() const {
  if (position_->looks_for_device && IsImported("torch")) stream_.attr("_look_for_device")();
}

}  // namespace patchbay::python
