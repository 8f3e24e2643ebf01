#include "runtime/client/stream.h"

#include <cstring>
#include <utility>

#include "runtime/client/trainer_core.h"
#include "runtime/wire/control/keys.h"
#include "runtime/wire/control/session.h"

static_assert(patchbay::kMaxPatchAxes < patchbay::kMaxRank);

namespace patchbay::client {
namespace {

/// One of MetaArrays().
constexpr std::string_view kOrdinalArray = "ordinal";

}  // namespace

BatchArray Batch::View(std::size_t array) const {
  const ArrayLayout& layout = layout_->arrays[array];
  BatchArray view{layout.name, layout.memory, {}};
  TensorView& tensor = view.tensor;
  tensor.data = data_[array];
  tensor.dtype = layout.dtype;
  tensor.rank = static_cast<int>(layout.shape.size()) + 1;
  auto stride = static_cast<std::int64_t>(SizeOf(layout.dtype));
  for (std::size_t i = layout.shape.size(); i-- > 0;) {
    tensor.shape[i + 1] = layout.shape[i];
    tensor.stride_bytes[i + 1] = stride;
    stride *= layout.shape[i];
  }
  tensor.shape[0] = count_;
  tensor.stride_bytes[0] = stride;
  return view;
}

std::vector<BatchArray> Batch::arrays() const {
  std::vector<BatchArray> views;
  for (std::size_t i = 0; i < data_.size(); ++i) views.push_back(View(i));
  return views;
}

StatusOr<BatchArray> Batch::array(std::string_view name) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < data_.size(); ++i) {
    if (layout_->arrays[i].name == name) return View(i);
    names.push_back(layout_->arrays[i].name);
  }
  return NotFound("find array: ", name, ": the batch has ", StrJoin(names, ", "));
}

const std::byte* Batch::Ordinals() const {
  for (std::size_t i = 0; i < data_.size(); ++i) {
    if (layout_->arrays[i].name == kOrdinalArray) return data_[i];
  }
  return nullptr;
}

bool Batch::IsPadding(std::uint32_t patch) const {
  const std::byte* const ordinals = Ordinals();
  if (ordinals == nullptr) return patch >= real_count_;
  std::int64_t ordinal = 0;
  std::memcpy(&ordinal, ordinals + patch * sizeof(ordinal), sizeof(ordinal));
  return ordinal < 0;
}

void Batch::CountReal(std::uint32_t by_position) {
  real_count_ = by_position;
  if (Ordinals() == nullptr) return;
  real_count_ = 0;
  for (std::uint32_t i = 0; i < count_; ++i) real_count_ += IsPadding(i) ? 0 : 1;
}

std::shared_ptr<void> Batch::Keep(std::string name) const {
  if (hold_ != nullptr) hold_->Name(std::move(name));
  return hold_;
}

void Batch::ReleaseWhen(std::function<bool()> passed) {
  if (hold_ != nullptr) hold_->AddFence(std::move(passed));
}

Status Batch::ReleaseAfter(memory::GpuStream stream) {
  PB_ASSIGN_OR_RETURN(auto made, memory::GpuEvent::Create());
  PB_RETURN_IF_ERROR(made.Record(stream));
  // An event that cannot be asked any more belongs to a device that is gone.
  ReleaseWhen([event = std::make_shared<memory::GpuEvent>(std::move(made))] {
    const auto passed = event->Passed();
    return !passed.ok() || *passed;
  });
  return absl::OkStatus();
}

void Batch::Release() { *this = Batch(); }

StatusOr<std::unique_ptr<Stream>> Stream::Attach(const StreamOptions& options) {
  PB_ASSIGN_OR_RETURN(const control::KeyFile key, control::ReadKeyFile(options.key_file));
  const auto open = [&key](control::EventLoop& loop, control::Session::Callbacks callbacks) {
    return control::Session::Open(loop, key, std::move(callbacks));
  };
  return AttachOver(open, options);
}

}  // namespace patchbay::client
