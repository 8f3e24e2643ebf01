#include "ops/chain/chain_program.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "ops/chain/scalar_lanes.h"
#include "ops/chain/step_lists.h"
#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

/// Turns the steps that ops add into steps of the listed types.
class StepReader : public StepSink {
 public:
  int slot = -1;  ///< slot of the maker that draws
  std::vector<PatchStep> steps;

 private:
  void Take(const void* type, const void* step) override {
    const std::size_t before = steps.size();
    TakePoint(PointSteps(), type, step);
    TakeWhole(static_cast<decltype(WholeStep::step)*>(nullptr), type, step);
    PB_CHECK(steps.size() == before + 1);  // the type is in one of the two lists
  }
  template <typename... Steps>
  void TakePoint(StepList<Steps...> /*list*/, const void* type, const void* step) {
    ((type == &kStepType<Steps> ? steps.push_back(PointStepOf(*static_cast<const Steps*>(step)))
                                : void()),
     ...);
  }
  template <typename... Steps>
  void TakeWhole(const std::variant<Steps...>* /*list*/, const void* type, const void* step) {
    ((type == &kStepType<Steps> ? steps.push_back(WholeStep{*static_cast<const Steps*>(step), slot})
                                : void()),
     ...);
  }
};

/// Checks the images against the row of the step's op.
Status CheckImages(const plan::OpStep& step, const ProgramShape& shape) {
  if (step.op->needs.rgb && shape.channels != 3) {
    return plan::WrongOp(step.key,
                         StrCat("needs red, green and blue; the images have ", shape.channels,
                                shape.channels == 1 ? " channel" : " channels"));
  }
  std::string types;
  for (const DType type : step.op->images) {
    if (type == shape.source) return absl::OkStatus();
    types += StrCat(types.empty() ? "" : ", ", NameOf(type));
  }
  return plan::WrongOp(step.key, StrCat("needs images of ", types, ", not ", NameOf(shape.source)));
}

/// Volumes are windowed and normalised before anything else.
bool IsTone(const plan::OpStep& step) { return step.op->scale != plan::OpScale::kKept; }

void SortForVolume(std::vector<plan::OpStep>& steps, ProgramBuilder& builder) {
  const auto place = [](const plan::OpStep& step) {
    return std::tuple(!IsTone(step), !step.op->first_in_volumes);
  };
  std::stable_sort(steps.begin(), steps.end(),
                   [&place](const auto& a, const auto& b) { return place(a) < place(b); });
  // Every volume's values pass through a line, so that a zero has no sign.
  if (std::none_of(steps.begin(), steps.end(), IsTone)) builder.AddFixed(ValueLine{});
}

}  // namespace

StatusOr<ChainProgram> ChainProgram::Compile(std::vector<plan::OpStep> steps,
                                             const ProgramShape& shape) {
  bool in_float = shape.in_depth;
  ProgramBuilder builder(shape);
  if (shape.in_depth) SortForVolume(steps, builder);
  for (const plan::OpStep& step : steps) {
    PB_RETURN_IF_ERROR(CheckImages(step, shape));
    const plan::OpNeeds needs = step.op->needs;
    in_float |= needs.between || needs.rgb || needs.neighbours || (needs.random && !needs.moves);
    PB_RETURN_IF_ERROR(step.op->compile(step, builder));
  }
  ChainProgram program(std::move(builder));
  program.in_float_ = in_float;
  return program;
}

ChainProgram::ChainProgram(ProgramBuilder builder)
    : images_(std::move(builder.images_)),
      volumes_(std::move(builder.volumes_)),
      parts_(std::move(builder.parts_)),
      channels_(builder.shape_.channels),
      whole_steps_(builder.whole_steps_),
      check_colours_(std::move(builder.check_colours_)) {
  StepReader exact;
  for (const auto& channel : builder.exact_) {
    for (const auto& add : channel) add(exact);
  }
  for (const PatchStep& step : exact.steps) exact_.push_back(std::get<AnyPointStep>(step));
}

std::vector<PatchStep> ChainProgram::Draw(const PatchDraw& draw) const {
  if (!in_float_) return {PointStepOf(Exact())};
  StepReader reader;
  for (const auto& part : parts_) {
    reader.slot = part.slot;
    part.maker->Draw(draw, reader);
  }
  return std::move(reader.steps);
}

ExactStep ChainProgram::Exact() const {
  const int count = static_cast<int>(exact_.size());
  return {{exact_.data(), count}, count / channels_};
}

double ChainProgram::Exactly(double value, int c) const {
  const StepValues<AnyPointStep> steps = StepsOf(Exact(), c);
  for (int k = 0; k < steps.count; ++k) value = ExactOf(steps.at[k], value);
  return value;
}

}  // namespace patchbay::ops
