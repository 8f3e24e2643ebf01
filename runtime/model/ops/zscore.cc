#include "runtime/model/ops/zscore.h"

namespace patchbay::plan {

config::Key ZscoreOptions::Keys() {
  return {.name = "zscore",
          .type = config::KeyType::kMap,
          .help =
              "(x - mean) / std of the windowed values of the whole volume, as ingest counted "
              "them; volumes; not with ct_normalize or normalize",
          .members = {{.name = "over",
                       .type = config::KeyType::kChoice,
                       .fallback = "body",
                       .choices = {"body"},
                       .help = "the voxels that count: those of the body, without table and air"}}};
}

}  // namespace patchbay::plan
