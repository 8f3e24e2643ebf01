#include "ops/cast/cast.h"

#include "ops/cast/cast_math.h"
#include "ops/steps/op_program.h"

namespace patchbay::ops {

std::vector<plan::Option<CastOptions>> CastOptions::Table() {
  using O = CastOptions;
  return {
      plan::OptionOf(&O::dtype, {.name = "dtype",
                                 .required = true,
                                 .choices = {"uint8", "float16", "bfloat16", "float32"},
                                 .help = "type to round to; the patch's own type is batch.dtype"})};
}

namespace {

Status Compile(const plan::OpStep& step, ProgramBuilder& program) {
  CastStep cast;
  PB_ASSIGN_OR_RETURN(cast.to, CastTarget(plan::ReadOptions<CastOptions>(step.options).dtype));
  program.AddFixed(cast);
  for (int c = 0; c < program.shape().channels; ++c) program.AddExact(c, cast);
  return absl::OkStatus();
}

}  // namespace

plan::OpRow DescribeCast() {
  return {.number = CastOptions::kNumber,
          .keys = plan::KeysOf<CastOptions>("cast",
                                            "rounds the values to a type, after every other op"),
          .compile = Compile,
          .example = {{"dtype", "bfloat16"}},
          .rounds_to = [](const Json& options) {
            return plan::ReadOptions<CastOptions>(options).dtype;
          }};
}

}  // namespace patchbay::ops
