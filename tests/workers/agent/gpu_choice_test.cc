// The GPUs of a node: by --gpus, or as an engine gave them.
#include "workers/agent/gpu_choice.h"

#include <gmock/gmock.h>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string UuidOf(int number) {
  return StrCat("GPU-0000000", number, "-0000-4000-8000-0000000000ab");
}

/// GPUs as CUDA shows them: those of these numbers, counted from 0.
std::vector<memory::GpuDescription> Shown(const std::vector<int>& numbers) {
  std::vector<memory::GpuDescription> shown;
  for (const int number : numbers) {
    memory::GpuDescription& gpu = shown.emplace_back();
    gpu.index = static_cast<int>(shown.size()) - 1;
    gpu.uuid = UuidOf(number);
  }
  return shown;
}

/// UUIDs of the chosen ones, or the refusal.
std::vector<std::string> Chosen(const std::string& choice, const EngineGpus& engine,
                                const std::vector<memory::GpuDescription>& present) {
  const auto chosen = ChooseGpus(choice, engine, present, present.empty() ? "no driver" : "");
  if (!chosen.ok()) return {std::string(chosen.status().message())};
  std::vector<std::string> uuids;
  for (const memory::GpuDescription& gpu : chosen->gpus) uuids.push_back(gpu.uuid);
  return uuids;
}

EngineGpus Cuda(const std::string& list) { return {.cuda = list, .slurm = "3"}; }
EngineGpus Slurm(const std::string& list) { return {.cuda = std::nullopt, .slurm = list}; }

TEST(GpuChoice, WithoutAWordOfTheEngineItIsAllOrTheNamedOnes) {
  const auto two = Shown({4, 5});
  EXPECT_THAT(Chosen("auto", {}, two), ElementsAre(UuidOf(4), UuidOf(5)));
  EXPECT_THAT(Chosen("none", Slurm("0"), two), ElementsAre());
  EXPECT_THAT(Chosen("1," + UuidOf(4), Slurm("0"), two), ElementsAre(UuidOf(5), UuidOf(4)));
  EXPECT_THAT(Chosen("MIG-00000005-0000-4000-8000-0000000000ab", {}, two), ElementsAre(UuidOf(5)));
  EXPECT_THAT(Chosen("2", {}, two), ElementsAre("choose GPUs: 2: no such GPU"));
  EXPECT_THAT(Chosen("GPU-", {}, two), ElementsAre("choose GPUs: GPU-: no such GPU"));
  EXPECT_THAT(Chosen("0", {}, {}), ElementsAre("choose GPUs: 0: no such GPU (no driver)"));
}

TEST(GpuChoice, CudasListIsWhatCudaShows) {
  EXPECT_THAT(Chosen("auto", Cuda("6,2"), Shown({6, 2})), ElementsAre(UuidOf(6), UuidOf(2)));
  EXPECT_THAT(Chosen("auto", Cuda("MIG-41b0"), Shown({6})), ElementsAre(UuidOf(6)));
  for (const char* nothing : {"", "-1", "NoDevFiles"}) {
    EXPECT_THAT(Chosen("auto", Cuda(nothing), {}), ElementsAre()) << nothing;
  }
  EXPECT_THAT(Chosen("auto", Cuda("6,-1,9"), Shown({6})), ElementsAre(UuidOf(6)));
}

TEST(GpuChoice, OneOfCudasListThatIsNotThereIsRefusedByName) {
  EXPECT_THAT(Chosen("auto", Cuda("0,GPU-77,1"), Shown({0})),
              ElementsAre("choose GPUs: GPU-77: no such GPU, but CUDA_VISIBLE_DEVICES names it"));
  EXPECT_THAT(
      Chosen("auto", Cuda("3"), {}),
      ElementsAre("choose GPUs: 3: no such GPU, but CUDA_VISIBLE_DEVICES names it (no driver)"));
  EXPECT_THAT(
      Chosen("auto", Cuda("MIG-41b0,MIG-52c1"), Shown({6})),
      ElementsAre(HasSubstr("MIG-52c1: CUDA shows a process one MIG slice: start a node for")));
}

TEST(GpuChoice, SlurmsListCountsTheNodesGpusUnlessAGroupHidesTheOthers) {
  EXPECT_THAT(Chosen("auto", Slurm("1,3"), Shown({0, 1, 2, 3})), ElementsAre(UuidOf(1), UuidOf(3)));
  EXPECT_THAT(Chosen("auto", Slurm("1,3"), Shown({1, 3})), ElementsAre(UuidOf(1), UuidOf(3)));
  EXPECT_THAT(Chosen("auto", Slurm("1,3"), Shown({0, 1, 2})),
              ElementsAre("choose GPUs: 3: no such GPU, but Slurm gave it to this job"));
}

TEST(GpuChoice, AStepsGpusGoBeforeItsJobs) {
  std::string job = "SLURM_JOB_GPUS=0,1", step = "SLURM_STEP_GPUS=1",
              cuda = "CUDA_VISIBLE_DEVICES=";
  char* all[] = {job.data(), step.data(), cuda.data(), nullptr};
  EXPECT_EQ(EngineGpusOf(all).slurm, "1");
  EXPECT_EQ(EngineGpusOf(all).cuda, "");
  char* of_job[] = {job.data(), nullptr};
  EXPECT_EQ(EngineGpusOf(of_job).slurm, "0,1");
  EXPECT_EQ(EngineGpusOf(of_job).cuda, std::nullopt);
}

TEST(GpuChoice, AGpuThatNoProcessMayUseIsLeftOutOrRefused) {
  auto two = Shown({4, 5});
  two[0].sharing = memory::GpuSharing::kProhibited;
  EXPECT_THAT(Chosen("auto", {}, two), ElementsAre(UuidOf(5)));
  EXPECT_THAT(Chosen("0", {}, two), ElementsAre(HasSubstr("compute mode prohibited")));
}

}  // namespace
}  // namespace patchbay::workers
