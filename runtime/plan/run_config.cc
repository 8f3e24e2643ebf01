#include "runtime/plan/run_config.h"

#include <utility>

#include "runtime/base/strings.h"

namespace patchbay::plan {
namespace {

using config::Key;
using config::KeyType;

template <typename Value>
struct Named {
  std::string_view name;
  Value value;
};

constexpr Named<Numerics> kNumerics[] = {
    {"cpu", Numerics::kCpu}, {"cuda", Numerics::kCuda}, {"strict", Numerics::kStrict}};
constexpr Named<Order> kOrders[] = {{"shuffled", Order::kShuffled},
                                    {"sequential", Order::kSequential}};
constexpr Named<Positions> kPositions[] = {{"grid", Positions::kGrid},
                                           {"random", Positions::kRandom}};
constexpr Named<Layout> kLayouts[] = {{"nchw", Layout::kNchw}, {"nhwc", Layout::kNhwc}};
constexpr Named<Tail> kTails[] = {
    {"keep", Tail::kKeep}, {"drop", Tail::kDrop}, {"pad", Tail::kPad}, {"wrap", Tail::kWrap}};

template <typename Value, std::size_t N>
std::string_view NameIn(const Named<Value> (&rows)[N], Value value) {
  for (const auto& row : rows) {
    if (row.value == value) return row.name;
  }
  return "";
}

/// `name` was validated against Choices(rows), so it is there.
template <typename Value, std::size_t N>
Value ValueIn(const Named<Value> (&rows)[N], const Json& name) {
  for (const auto& row : rows) {
    if (row.name == name.get_ref<const std::string&>()) return row.value;
  }
  return rows[0].value;
}

template <typename Value, std::size_t N>
std::vector<std::string> Choices(const Named<Value> (&rows)[N]) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.emplace_back(row.name);
  return names;
}

Key PatchKeys() {
  return {.name = "patch",
          .type = KeyType::kMap,
          .help = "what one patch is",
          .members = {{.name = "size",
                       .type = KeyType::kIntList,
                       .required = true,
                       .unit = "px",
                       .min = 1,
                       .max = kMaxPatchSide,
                       .min_items = 2,
                       .max_items = 2,
                       .help = "height and width of the patch as the trainer receives it"},
                      {.name = "level",
                       .type = KeyType::kInt,
                       .fallback = 0,
                       .min = 0,
                       .max = 63,
                       .help = "pyramid level the patches are cut from, 0 = finest"},
                      {.name = "fill",
                       .type = KeyType::kInt,
                       .fallback = 255,
                       .min = 0,
                       .max = 255,
                       .help = "value of every channel outside the image, before any op"}}};
}

Status CheckDataset(const Json& dataset) {
  for (const Json& path : dataset) {
    const auto& text = path.get_ref<const std::string&>();
    if (text.empty()) return absl::InvalidArgumentError("an empty path");
    if (text.find('\0') != std::string::npos) {
      return absl::InvalidArgumentError("a path with a zero byte");
    }
  }
  return absl::OkStatus();
}

Status CheckSampling(const Json& sampling) {
  const bool per_image = sampling.contains("patches_per_image");
  const bool per_epoch = sampling.contains("patches_per_epoch");
  if (per_image && per_epoch) {
    return absl::InvalidArgumentError("patches_per_image and patches_per_epoch exclude each other");
  }
  if ((per_image || per_epoch) && sampling["positions"] != "random") {
    return absl::InvalidArgumentError(
        "patches_per_image and patches_per_epoch need positions: random");
  }
  return absl::OkStatus();
}

Key SamplingKeys() {
  return {
      .name = "sampling",
      .type = KeyType::kMap,
      .help = "which patches an epoch has, and in what order",
      .members = {{.name = "order",
                   .type = KeyType::kChoice,
                   .fallback = "shuffled",
                   .choices = Choices(kOrders),
                   .help = "a new permutation every epoch, or image by image, row by row"},
                  {.name = "positions",
                   .type = KeyType::kChoice,
                   .fallback = "grid",
                   .choices = Choices(kPositions),
                   .help = "a grid of stride patch.size from (0, 0) that covers every pixel, or "
                           "places drawn anew for every patch of every epoch"},
                  {.name = "patches_per_image",
                   .type = KeyType::kInt,
                   .min = 1,
                   .max = static_cast<double>(kMaxPatchesPerEpoch),
                   .help = "random positions: patches of each image in an epoch (silent: as "
                           "many as its grid has)"},
                  {.name = "patches_per_epoch",
                   .type = KeyType::kInt,
                   .min = 1,
                   .max = static_cast<double>(kMaxPatchesPerEpoch),
                   .help = "random positions: patches of an epoch, shared out by grid size"}},
      .check = CheckSampling};
}

Key BatchKeys() {
  return {.name = "batch",
          .type = KeyType::kMap,
          .help = "what the trainer receives at each step",
          .members = {
              {.name = "global_size",
               .type = KeyType::kInt,
               .fallback = 32,
               .unit = "patches",
               .min = 1,
               .max = kMaxGlobalBatch,
               .help = "patches of one step, all ranks together"},
              {.name = "dtype",
               .type = KeyType::kChoice,
               .fallback = "float32",
               .choices = {"uint8", "float16", "bfloat16", "float32"},
               .help = "element type; floats are rounded to nearest, ties to even"},
              {.name = "layout",
               .type = KeyType::kChoice,
               .fallback = "nchw",
               .choices = Choices(kLayouts),
               .help = "planes of channels, or channels interleaved"},
              {.name = "prefetch",
               .type = KeyType::kInt,
               .fallback = 2,
               .unit = "batches",
               .min = 1,
               .max = kMaxPrefetch,
               .help = "batches made ahead; the ring has two slots more; changes no byte"},
              {.name = "tail",
               .type = KeyType::kChoice,
               .fallback = "keep",
               .choices = Choices(kTails),
               .help = "the last incomplete batch: smaller, left out, filled with zeros, or filled "
                       "with the epoch's first patches"}}};
}

Key StepsKey(std::string name, std::string help, const std::vector<Key>& ops) {
  return {.name = std::move(name),
          .type = KeyType::kSteps,
          .fallback = Json::array(),
          .max_items = 32,
          .help = std::move(help),
          .members = ops};
}

/// `value` passed the table, so every member is there and of its type.
RunConfig FromChecked(const Json& value) {
  RunConfig config;
  if (value.contains("dataset")) {
    config.dataset = value["dataset"].get<std::vector<std::string>>();
  }
  if (value.contains("numerics")) config.numerics = ValueIn(kNumerics, value["numerics"]);
  config.seed = value["seed"].get<std::uint64_t>();
  const Json& patch = value["patch"];
  config.patch_height = patch["size"][0].get<std::uint32_t>();
  config.patch_width = patch["size"][1].get<std::uint32_t>();
  config.level = patch["level"].get<std::uint32_t>();
  config.fill = patch["fill"].get<std::uint8_t>();
  const Json& sampling = value["sampling"];
  config.order = ValueIn(kOrders, sampling["order"]);
  config.positions = ValueIn(kPositions, sampling["positions"]);
  config.patches_per_image = sampling.value("patches_per_image", std::uint64_t{0});
  config.patches_per_epoch = sampling.value("patches_per_epoch", std::uint64_t{0});
  const Json& batch = value["batch"];
  config.global_size = batch["global_size"].get<std::uint32_t>();
  config.dtype = *DTypeFromName(batch["dtype"].get_ref<const std::string&>());
  config.layout = ValueIn(kLayouts, batch["layout"]);
  config.prefetch = batch["prefetch"].get<std::uint32_t>();
  config.tail = ValueIn(kTails, batch["tail"]);
  config.preprocess = value["preprocess"];
  config.augment = value["augment"];
  return config;
}

}  // namespace

Key RunConfigKeys(const std::vector<Key>& ops) {
  return {.name = "run",
          .type = KeyType::kMap,
          .help = "a stream of training batches",
          .members = {
              {.name = "dataset",
               .type = KeyType::kStringList,
               .required = true,
               .min_items = 1,
               .max_items = 100'000,
               .help = "a store, a folder of stores, slides, or a list of those",
               .check = CheckDataset},
              {.name = "numerics",
               .type = KeyType::kChoice,
               .choices = Choices(kNumerics),
               .help = "which implementation of the ops makes the bytes; silent: what the cluster "
                       "has, recorded in the plan"},
              {.name = "seed",
               .type = KeyType::kInt,
               .fallback = 0,
               .min = 0,
               .help = "of every random number of the run"},
              PatchKeys(),
              SamplingKeys(),
              BatchKeys(),
              StepsKey("preprocess", "ops applied to every patch, in this order", ops),
              StepsKey("augment", "ops applied after them, in training only", ops)}};
}

StatusOr<RunConfig> RunConfigFromYaml(const config::YamlNode& node, const std::vector<Key>& ops) {
  PB_ASSIGN_OR_RETURN(const Json value, config::Validate(node, RunConfigKeys(ops)));
  return FromChecked(value);
}

StatusOr<RunConfig> ParseRunConfig(std::string_view yaml, std::string_view source,
                                   const std::vector<Key>& ops) {
  PB_ASSIGN_OR_RETURN(const config::YamlNode node, config::ParseYaml(yaml, source));
  return RunConfigFromYaml(node, ops);
}

StatusOr<RunConfig> ReadRunConfig(const std::string& path, const std::vector<Key>& ops) {
  PB_ASSIGN_OR_RETURN(const config::YamlNode node, config::ReadYamlFile(path));
  return RunConfigFromYaml(node, ops);
}

StatusOr<RunConfig> RunConfigFromJson(const Json& value, const std::vector<Key>& ops) {
  PB_ASSIGN_OR_RETURN(const Json checked,
                      config::ValidateJson(value, RunConfigKeys(ops), "run config"));
  return FromChecked(checked);
}

Json ToJson(const RunConfig& config) {
  Json sampling = {{"order", NameOf(config.order)}, {"positions", NameOf(config.positions)}};
  if (config.patches_per_image != 0) sampling["patches_per_image"] = config.patches_per_image;
  if (config.patches_per_epoch != 0) sampling["patches_per_epoch"] = config.patches_per_epoch;
  Json value = {{"dataset", config.dataset},
                {"seed", config.seed},
                {"patch",
                 {{"size", {config.patch_height, config.patch_width}},
                  {"level", config.level},
                  {"fill", config.fill}}},
                {"sampling", std::move(sampling)},
                {"batch",
                 {{"global_size", config.global_size},
                  {"dtype", patchbay::NameOf(config.dtype)},
                  {"layout", NameOf(config.layout)},
                  {"prefetch", config.prefetch},
                  {"tail", NameOf(config.tail)}}},
                {"preprocess", config.preprocess},
                {"augment", config.augment}};
  if (config.numerics) value["numerics"] = NameOf(*config.numerics);
  return value;
}

std::string_view NameOf(Numerics numerics) { return NameIn(kNumerics, numerics); }
std::string_view NameOf(Order order) { return NameIn(kOrders, order); }
std::string_view NameOf(Positions positions) { return NameIn(kPositions, positions); }
std::string_view NameOf(Layout layout) { return NameIn(kLayouts, layout); }
std::string_view NameOf(Tail tail) { return NameIn(kTails, tail); }

}  // namespace patchbay::plan
