// Resume tokens: what they hold, and what is said when they are of another plan.
#include "runtime/client/resume_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace patchbay::client {
namespace {

constexpr char kPlan[] =
    R"({"version":2,"versions":{"ops":1},"config":{"seed":1},"channels":3,"dtype":"uint8","images":[["aa"]]})";

ResumeToken TokenOf(std::string_view plan, Position next = {3, 2}) {
  const auto sections = SectionsOf(plan);
  EXPECT_TRUE(sections.ok()) << sections.status();
  return {next, Sha256Of(plan), *sections, 64};
}

/// What is said when a run whose plan had `before` replaced is resumed.
std::string Refusal(const std::string& before, const std::string& after) {
  std::string plan = kPlan;
  plan.replace(plan.find(before), before.size(), after);
  const ResumeToken token = TokenOf(kPlan), now = TokenOf(plan);
  const Status status = CheckResume(token, now.plan, now.sections);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  return std::string(status.message());
}

TEST(ResumeToken, ReadsWhatItWrites) {
  const ResumeToken token = TokenOf(kPlan);
  const auto read = ParseResumeToken(token.Text());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->next, token.next);
  EXPECT_EQ(read->plan, token.plan);
  EXPECT_EQ(read->sections, token.sections);
  EXPECT_EQ(read->global_size, 64u);
  EXPECT_TRUE(CheckResume(*read, token.plan, token.sections).ok());
}

TEST(ResumeToken, NamesTheSectionThatDiffers) {
  EXPECT_THAT(Refusal(R"("seed":1)", R"("seed":2)"), testing::EndsWith("): its config differs"));
  EXPECT_THAT(Refusal(R"("aa")", R"("ab")"), testing::EndsWith("): its images differs"));
  EXPECT_THAT(Refusal(R"("channels":3)", R"("channels":1)"),
              testing::EndsWith("): its images differs"));
  EXPECT_THAT(Refusal(R"("ops":1)", R"("ops":2)"),
              testing::HasSubstr("its versions (another build of Patchbay made it)"));
  EXPECT_THAT(Refusal(R"("images")", R"("labels":{"set":"gleason"},"images")"),
              testing::EndsWith("): its labels differs"));
}

TEST(ResumeToken, NamesAPositionThatThePlanDoesNotHave) {
  StreamGeometry geometry;
  geometry.patches_per_epoch = 640;
  geometry.global_batch = 64;
  EXPECT_TRUE(CheckPosition(TokenOf(kPlan, {3, 9}), geometry).ok());
  EXPECT_THAT(CheckPosition(TokenOf(kPlan, {3, 10}), geometry).message(),
              testing::EndsWith("names batch 10: an epoch has 10"));
  geometry.global_batch = 32;
  const Status other = CheckPosition(TokenOf(kPlan, {3, 9}), geometry);
  EXPECT_TRUE(absl::IsFailedPrecondition(other));
  EXPECT_THAT(other.message(), testing::EndsWith("batches of 64 patches, the run's have 32"));
}

TEST(ResumeToken, RefusesGarbage) {
  const std::string good = TokenOf(kPlan).Text();
  std::string epoch = good, digits = good, digest = good, size = good;
  size.replace(good.find(":64:"), 4, ":0:");
  epoch.replace(good.find(":3:"), 3, ":65536:");
  digits.replace(good.find(":3:"), 3, ":03:");
  digest[digest.size() - 1] = 'g';
  for (const std::string& bad :
       {std::string(), std::string("patchbay-resume-2"), good + ":1", good + "x",
        good.substr(0, good.rfind(':')), "x" + good, epoch, digits, digest, size,
        std::string(5000, ':'), std::string("patchbay-resume-1:aa:1:0:0")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseResumeToken(bad).status())) << bad;
  }
}

}  // namespace
}  // namespace patchbay::client
