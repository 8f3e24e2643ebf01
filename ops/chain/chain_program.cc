#include "ops/chain/chain_program.h"

#include <algorithm>

#include "ops/chain/op_steps.h"
#include "ops/chain/point_math.h"
#include "ops/chain/scalar_lanes.h"
#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

Status CheckPixels(const plan::OpStep& step, const ProgramShape& shape) {
  if (!step.op->needs.rgb) return absl::OkStatus();
  if (shape.channels != 3) {
    return plan::WrongOp(step.key,
                         StrCat("needs red, green and blue; the images have ", shape.channels,
                                shape.channels == 1 ? " channel" : " channels"));
  }
  if (shape.source != DType::kInt16) return absl::OkStatus();
  return plan::WrongOp(step.key, "needs images of uint8, uint16 or float32 (0 to 1), not int16");
}

}  // namespace

double ProgramShape::White() const {
  if (in_depth) return 1;
  switch (source) {
    case DType::kUint16:
      return 65'535;
    case DType::kInt16:
      return 32'767;
    case DType::kFloat32:
      return 1;
    default:
      return 255;
  }
}

StatusOr<ChainProgram> ChainProgram::Compile(const std::vector<plan::OpStep>& steps,
                                             const ProgramShape& shape) {
  ChainProgram program;
  program.in_float_ = shape.in_depth || shape.samples_between;
  ProgramBuilder builder(program, shape);
  for (const plan::OpStep& step : steps) {
    PB_RETURN_IF_ERROR(CheckPixels(step, shape));
    const plan::OpNeeds needs = step.op->needs;
    program.in_float_ |= needs.rgb || needs.neighbours || needs.random;
  }
  PB_RETURN_IF_ERROR(CompileSteps(steps, builder));
  for (const auto& channel : program.exact_) {
    program.exact_list_.insert(program.exact_list_.end(), channel.begin(), channel.end());
  }
  return program;
}

std::vector<PatchStep> ChainProgram::Draw(const PatchDraw& draw) const {
  if (!in_float_) {
    ExactStep step;
    step.values = {exact_list_.data(), static_cast<int>(exact_list_.size())};
    step.each = static_cast<int>(exact_.front().size());
    return {PatchStep(PointStep(step))};
  }
  StepSink sink;
  for (const Part& part : parts_) {
    sink.slot_ = part.slot;
    part.maker->Draw(draw, sink);
  }
  return std::move(sink.steps_);
}

double ChainProgram::Exactly(double value, int c) const {
  for (const PointStep& step : exact_[static_cast<std::size_t>(c)]) value = ExactOf(step, value);
  return value;
}

}  // namespace patchbay::ops
