#include "runtime/client/stream.h"

#include <charconv>
#include <utility>

#include "runtime/client/trainer_core.h"

namespace patchbay::client {

TensorView Batch::tensor() const {
  TensorView view;
  view.data = data_;
  view.dtype = patch_.dtype;
  view.rank = static_cast<int>(patch_.shape.size()) + 1;
  PB_CHECK(view.rank <= kMaxRank);
  auto stride = static_cast<std::int64_t>(SizeOf(patch_.dtype));
  for (std::size_t i = patch_.shape.size(); i-- > 0;) {
    view.shape[i + 1] = patch_.shape[i];
    view.stride_bytes[i + 1] = stride;
    stride *= patch_.shape[i];
  }
  view.shape[0] = count_;
  view.stride_bytes[0] = stride;
  return view;
}

std::shared_ptr<void> Batch::Keep(std::string name) const {
  if (hold_ != nullptr) hold_->Name(std::move(name));
  return hold_;
}

void Batch::ReleaseWhen(std::function<bool()> passed) {
  if (hold_ != nullptr) hold_->AddGate(std::move(passed));
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

StatusOr<Position> ResumePosition(const std::string& token, const Digest& plan_digest,
                                  const StreamGeometry& geometry) {
  const auto refuse = [](const char* cause) {
    return absl::InvalidArgumentError(StrCat("read resume token: ", cause));
  };
  std::vector<std::string> parts(1);
  for (const char c : token) {
    if (c == ':') {
      parts.emplace_back();
    } else {
      parts.back().push_back(c);
    }
  }
  if (parts.size() != 5 || parts[0] != "patchbay-resume-1") return refuse("it is not one");
  PB_ASSIGN_OR_RETURN(const Digest digest, Digest::FromHex(parts[1]));
  std::uint32_t world = 0;
  Position at;
  const auto parse = [](const std::string& text, auto& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
  };
  if (!parse(parts[2], world) || !parse(parts[3], at.epoch) || !parse(parts[4], at.batch)) {
    return refuse("a number is malformed");
  }
  if (digest != plan_digest) {
    return absl::FailedPreconditionError("read resume token: it belongs to another plan");
  }
  if (world != geometry.world_size) {
    return absl::FailedPreconditionError("read resume token: it belongs to another world size");
  }
  if (at.batch >= BatchesPerEpoch(geometry)) return refuse("the batch is past the epoch");
  if (at.epoch > kMaxEpoch) return refuse("the epoch is past the last one");
  return at;
}

}  // namespace patchbay::client
