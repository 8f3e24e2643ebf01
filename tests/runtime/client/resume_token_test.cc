// Resume tokens: their contents, and the errors for tokens of another plan.
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

/// The message when a run whose plan had `before` replaced is resumed.
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

TEST(ResumeToken, ASectionIsTheDigestOfTheObjectOfItsMembers) {
  const auto sections = SectionsOf(kPlan);
  ASSERT_TRUE(sections.ok()) << sections.status();
  const auto digest = [](std::string_view text) { return Sha256Of(text).Hex().substr(0, 16); };
  EXPECT_EQ(sections->digests[0], digest(R"({"version":2,"versions":{"ops":1}})"));
  EXPECT_EQ(sections->digests[1], digest(R"({"config":{"seed":1}})"));
  EXPECT_EQ(sections->digests[5], digest(R"({"channels":3,"dtype":"uint8","images":[["aa"]]})"));
  EXPECT_EQ(sections->digests[6], digest("{}"));
}

TEST(ResumeToken, NamesTheSectionThatDiffers) {
  EXPECT_THAT(Refusal(R"("seed":1)", R"("seed":2)"), ::testing::EndsWith("): its config differs"));
  EXPECT_THAT(Refusal(R"("aa")", R"("ab")"), ::testing::EndsWith("): its images differ"));
  EXPECT_THAT(Refusal(R"("channels":3)", R"("channels":1)"),
              ::testing::EndsWith("): its images differ"));
  EXPECT_THAT(Refusal(R"("images")", R"("choices":[{"focal_plane":1}],"images")"),
              ::testing::EndsWith("): its images differ"));
  EXPECT_THAT(Refusal(R"("ops":1)", R"("ops":2)"),
              ::testing::HasSubstr("its versions (another build of Patchbay made it)"));
  EXPECT_THAT(Refusal(R"("images")", R"("labels":{"set":"gleason"},"images")"),
              ::testing::EndsWith("): its labels differ"));
}

/// A plan whose config has those lists of ops.
std::string PlanWith(const std::string& preprocess, const std::string& more = "") {
  return R"({"version":2,"config":{"seed":1,"numerics":"cpu","preprocess":[)" + preprocess +
         R"(]},"images":[["aa"]])" + more + "}";
}

std::string RefusalOf(const std::string& before, const std::string& now) {
  const ResumeToken then = TokenOf(before), other = TokenOf(now);
  const Status status = CheckResume(then, other.plan, other.sections);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  return std::string(status.message());
}

TEST(ResumeToken, NamesTheInputBehindTheNumbersThatDiffer) {
  const auto stain = [](const char* options) {
    return PlanWith(std::string(R"({"stain_normalize":{)") + options + "}}");
  };
  constexpr char kStain[] =
      "): its stain reference (the picture, or the slides of the cohort) differs";
  EXPECT_THAT(RefusalOf(stain(R"("reference_fit":[1,2])"), stain(R"("reference_fit":[1,3])")),
              ::testing::EndsWith(kStain));
  EXPECT_THAT(RefusalOf(stain(""), stain(R"("reference_fit":[1,3])")), ::testing::EndsWith(kStain));
  EXPECT_THAT(RefusalOf(stain(R"("scanner_fits":{"0":[1]})"), stain(R"("scanner_fits":{"0":[2]})")),
              ::testing::EndsWith(kStain));
  EXPECT_THAT(RefusalOf(stain(R"("reference_fit":[1,2])"),
                        stain(R"("profile":"reinhard","reference_fit":[1,2])")),
              ::testing::EndsWith("): its config differs"));
  const auto ct = [](const char* mean) {
    return PlanWith(std::string(R"({"ct_normalize":{"lower":1,"mean":)") + mean + "}}");
  };
  EXPECT_THAT(
      RefusalOf(ct("1"), ct("2")),
      ::testing::EndsWith("): its numbers of ct_normalize (of the config, or the lock) differ"));
  std::string cuda = PlanWith("");
  cuda.replace(cuda.find("cpu"), 3, "cuda");
  EXPECT_THAT(
      RefusalOf(PlanWith(""), cuda),
      ::testing::EndsWith("): its numerics (of the config, or what the cluster has) differ"));
  EXPECT_THAT(RefusalOf(PlanWith(""), PlanWith(R"({"stain_normalize":{}})")),
              ::testing::HasSubstr("): its config and its stain reference"));
}

TEST(ResumeToken, NamesTheMembersOfImagesUnlessTheImagesDiffer) {
  const std::pair<const char*, const char*> members[] = {
      {"places", "its places of tissue and classes differ"},
      {"groups", "its columns of sampling.weight_by differ"},
      {"positions", "its table of positions differs"},
      {"stains", "its stain fits of the images differ"},
      {"icc", "its colour profiles of the images differ"},
      {"volumes", "its spacing or statistics of the volumes differ"},
      {"views", "its resolutions of the images differ"}};
  for (const auto& [member, said] : members) {
    const auto with = [&](const char* value) {
      return PlanWith("", std::string(",\"") + member + "\":[" + value + "]");
    };
    EXPECT_THAT(RefusalOf(with("1"), with("2")), ::testing::EndsWith(std::string("): ") + said));
    std::string other = with("2");
    other.replace(other.find("aa"), 2, "ab");
    EXPECT_THAT(RefusalOf(with("1"), other), ::testing::EndsWith("): its images differ"));
  }
}

TEST(ResumeToken, OfALaterVersionIsRefusedWithBothVersions) {
  const std::string rest = TokenOf(kPlan).Text().substr(std::string("patchbay-resume-3").size());
  const Status later = ParseResumeToken("patchbay-resume-4" + rest).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(later));
  EXPECT_EQ(later.message(),
            "resume: the token has version 4, this program knows 2 and 3; use the release of "
            "Patchbay that wrote it, or a later one");
  for (const std::string& none : {"patchbay-resume-" + rest, "patchbay-resume-x" + rest}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseResumeToken(none).status())) << none;
  }
}

TEST(ResumeToken, OfTheVersionBeforeServesItsPlanAndSaysLessOfOthers) {
  const ResumeToken now = TokenOf(kPlan);
  const std::string hex = now.plan.Hex(), rest = ":" + hex + ":" + hex + ":" + hex + ":" + hex;
  const auto read = ParseResumeToken("patchbay-resume-2:3:2:64:" + hex + rest);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->next, now.next);
  EXPECT_EQ(read->global_size, 64u);
  EXPECT_TRUE(CheckResume(*read, now.plan, now.sections).ok());
  EXPECT_THAT(
      CheckResume(*read, Sha256Of("other"), now.sections).message(),
      ::testing::EndsWith("its text (the token, of an earlier version, does not tell in which "
                          "part) differs"));
  for (const std::string& bad :
       {"patchbay-resume-2:3:2:64:" + hex, "patchbay-resume-2:3:2:64:" + hex + rest + ":" + hex,
        "patchbay-resume-2:3:02:64:" + hex + rest,
        "patchbay-resume-2:3:2:64:" + hex + rest.substr(0, rest.size() - 1) + "G",
        "patchbay-resume-3:3:2:64:" + hex + rest}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseResumeToken(bad).status())) << bad;
  }
}

TEST(ResumeToken, NamesAPositionThatThePlanDoesNotHave) {
  StreamGeometry geometry;
  geometry.patches_per_epoch = 640;
  geometry.global_batch = 64;
  EXPECT_TRUE(CheckPosition(TokenOf(kPlan, {3, 9}), geometry).ok());
  EXPECT_THAT(CheckPosition(TokenOf(kPlan, {3, 10}), geometry).message(),
              ::testing::EndsWith("names batch 10: an epoch has 10"));
  geometry.global_batch = 32;
  const Status other = CheckPosition(TokenOf(kPlan, {3, 9}), geometry);
  EXPECT_TRUE(absl::IsFailedPrecondition(other));
  EXPECT_THAT(other.message(), ::testing::EndsWith("batches of 64 patches, the run's have 32"));
}

TEST(ResumeToken, RefusesGarbage) {
  const std::string good = TokenOf(kPlan).Text();
  std::string epoch = good, digits = good, digest = good, size = good;
  size.replace(good.find(":64:"), 4, ":0:");
  epoch.replace(good.find(":3:"), 3, ":65536:");
  digits.replace(good.find(":3:"), 3, ":03:");
  digest[digest.size() - 1] = 'g';
  for (const std::string& bad :
       {std::string(), std::string("patchbay-resume-3"), good + ":1", good + "x",
        good.substr(0, good.rfind(':')), "x" + good, epoch, digits, digest, size,
        std::string(5000, ':'), std::string("patchbay-resume-3:aa:1:0:0")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseResumeToken(bad).status())) << bad;
  }
}

}  // namespace
}  // namespace patchbay::client
