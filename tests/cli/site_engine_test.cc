#include "runtime/cli/site/site_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/cli/command.h"

namespace patchbay::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SiteEngine, ListsOfHostsAreExpanded) {
  EXPECT_THAT(*ExpandNodeList("n1"), ElementsAre("n1"));
  EXPECT_THAT(*ExpandNodeList("n[1-3,7],login"), ElementsAre("n1", "n2", "n3", "n7", "login"));
  EXPECT_THAT(*ExpandNodeList("a[08-10]-ib"), ElementsAre("a08-ib", "a09-ib", "a10-ib"));
}

TEST(SiteEngine, OtherListsOfHostsAreRefused) {
  for (const char* list : {"", "n[", "n]", "n[1", "n[3-1]", "n[a]", "n[]", "n[1],", "a[1]b[2]"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ExpandNodeList(list).status())) << list;
  }
  EXPECT_THAT(ExpandNodeList("n[1-2000000000]").status().message(), HasSubstr("more than 1024"));
}

StatusOr<std::optional<Engine>> EngineOf(std::vector<std::string> variables) {
  std::vector<char*> entries;
  for (std::string& variable : variables) entries.push_back(variable.data());
  entries.push_back(nullptr);
  return SlurmEngine(entries.data());
}

const std::vector<std::string> kStep = {"SLURM_PROCID=1",
                                        "SLURM_JOB_ID=12",
                                        "SLURM_STEP_ID=0",
                                        "SLURM_STEP_NODELIST=n[1-2]",
                                        "SLURM_NTASKS=2",
                                        "PATH=/bin",
                                        "SLURMD_NODENAME=n2",
                                        "SLURM_CPUS_PER_TASK=4",
                                        "SLURM_LOCALID=0",
                                        "SLURM_MEM_PER_NODE=2000",
                                        "SLURM_LAUNCH_NODE_IPADDR=10.0.0.7"};

TEST(SiteEngine, StepOfSlurmSaysEverything) {
  const auto engine = EngineOf(kStep);
  ASSERT_TRUE(engine.ok() && engine->has_value());
  const Engine& slurm = **engine;
  EXPECT_EQ(slurm.run, "slurm-12.0-restart0");
  EXPECT_EQ(slurm.rank, 1);
  EXPECT_EQ(slurm.name, "n2");
  EXPECT_THAT(slurm.nodes, ElementsAre("n1", "n2"));
  EXPECT_EQ(slurm.cpus, 4);
  EXPECT_EQ(slurm.memory, "1800M");
  EXPECT_EQ(slurm.gpus, "none");
  EXPECT_EQ(slurm.faces, "10.0.0.7");
}

TEST(SiteEngine, RequeuedJobHasAnotherRunAndGivenGpusAreUsed) {
  std::vector<std::string> again = kStep;
  again.insert(again.end(), {"SLURM_RESTART_COUNT=3", "SLURM_GPUS_ON_NODE=2"});
  const auto engine = EngineOf(again);
  ASSERT_TRUE(engine.ok() && engine->has_value());
  EXPECT_EQ((*engine)->run, "slurm-12.0-restart3");
  EXPECT_EQ((*engine)->gpus, "");
  std::vector<std::string> by_cuda = kStep;
  by_cuda.emplace_back("CUDA_VISIBLE_DEVICES=MIG-41b0");
  EXPECT_EQ((*EngineOf(by_cuda))->gpus, "");
}

TEST(SiteEngine, ANodeOfAHeterogeneousJobHasWhatItsComponentWasGiven) {
  std::vector<std::string> step = kStep;
  std::erase(step, "SLURM_CPUS_PER_TASK=4");
  step.insert(step.end(),
              {"SLURM_HET_SIZE=2", "SLURM_JOB_NODELIST_HET_GROUP_0=n1",
               "SLURM_JOB_NODELIST_HET_GROUP_1=n[2-2]", "SLURM_CPUS_PER_TASK_HET_GROUP_0=1",
               "SLURM_CPUS_PER_TASK_HET_GROUP_1=8", "SLURM_MEM_PER_NODE_HET_GROUP_1=4000"});
  const auto engine = EngineOf(step);
  ASSERT_TRUE(engine.ok() && engine->has_value()) << engine.status();
  EXPECT_EQ((*engine)->cpus, 8);
  EXPECT_EQ((*engine)->memory, "3600M");
  step.emplace_back("SLURM_CPUS_PER_TASK=2");
  EXPECT_EQ((*EngineOf(step))->cpus, 2) << "srun's own word";
}

TEST(SiteEngine, SeveralTasksANodeAreRefused) {
  std::vector<std::string> twice = kStep;
  twice[4] = "SLURM_NTASKS=4";
  const Status refused = EngineOf(twice).status();
  EXPECT_TRUE(IsUsageError(refused));
  EXPECT_THAT(refused.message(), HasSubstr("4 tasks on 2 nodes"));
}

TEST(SiteEngine, BatchScriptAndShellAreNoStep) {
  EXPECT_FALSE(EngineOf({"HOME=/root"})->has_value());
  EXPECT_FALSE(EngineOf({"SLURM_PROCID=0", "SLURM_JOB_ID=12"})->has_value());
}

}  // namespace
}  // namespace patchbay::cli
