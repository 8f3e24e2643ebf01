// Errors as data: their text, their transport in a Status, and names that are filled in once.
#include "runtime/core/outcome.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "runtime/core/outcome_pseudonym.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/json_forms.h"
#include "tests/described.h"

namespace patchbay {
namespace {

const Subject kSlide3{SubjectKind::kSlide, 3, ""};

TEST(Outcome, PrintsDoingSubjectCauseAndAdvice) {
  const Status status = ErrorAbout(absl::StatusCode::kDataLoss, "read chunk",
                                   {SubjectKind::kImage, 2, "0/c/1"}, "crc32c mismatch", "copy it");
  EXPECT_EQ(MessageOf(status), "read chunk: image 2/0/c/1: crc32c mismatch; copy it");
  const Outcome outcome = OutcomeOf(status);
  EXPECT_EQ(outcome.subject, (Subject{SubjectKind::kImage, 2, "0/c/1"}));
  EXPECT_EQ(outcome.cause, "crc32c mismatch");
  EXPECT_EQ(StatusOf(outcome), status);
}

TEST(Outcome, AnnotateKeepsTheSubject) {
  const Status status = Annotate(FromErrno("open", "/data/a.svs", ENOENT), "preview");
  EXPECT_EQ(MessageOf(status), "preview: open: /data/a.svs: No such file or directory");
  EXPECT_EQ(OutcomeOf(status).doing, "preview: open");
  EXPECT_EQ(OutcomeOf(status).subject.part, "/data/a.svs");
}

TEST(Outcome, ASubjectAroundAnotherKeepsBoth) {
  const Status inner = FromErrno("open", "/data/a.svs", ENOENT);
  EXPECT_EQ(MessageOf(About(inner, "lock", "/data/a.svs")),
            "lock: open: /data/a.svs: No such file or directory");
  const Status outer = About(inner, "plan", kSlide3);
  EXPECT_EQ(MessageOf(outer), "plan: slide 3: open: /data/a.svs: No such file or directory");
  EXPECT_EQ(OutcomeOf(outer).subject, kSlide3);
  EXPECT_EQ(OutcomeOf(outer).others.at(0).part, "/data/a.svs");
  EXPECT_EQ(MessageOf(About(absl::DataLossError("cut"), "", kSlide3)), "slide 3: cut");
}

TEST(Outcome, ASubjectIsNamedByItsPathAndNotByTextThatHoldsIt) {
  const Status beside = FromErrno("open", "/data/a.svs: 2", ENOENT);
  EXPECT_EQ(MessageOf(About(beside, "lock", "/data/a.svs")),
            "lock: /data/a.svs: open: /data/a.svs: 2: No such file or directory");
  const Status text = absl::DataLossError("read: /data/a: cut");
  EXPECT_EQ(MessageOf(About(text, "lock", "/data/a")), "lock: /data/a: read: /data/a: cut");
  EXPECT_EQ(OutcomeOf(About(text, "lock", "/data/a")).subject.part, "/data/a");
}

TEST(Outcome, APseudonymTravelsBesideTheSubjectsThatTheTextsName) {
  const std::string pseudonym = "0123456789abcdef";
  Outcome outcome = OutcomeOf(About(FromErrno("open", "/data/a.svs", ENOENT), "plan", kSlide3));
  const std::string text = TextOf(outcome);
  EXPECT_EQ(PseudonymIn(outcome), "");
  AddPseudonym(outcome, pseudonym);
  AddPseudonym(outcome, "fedcba9876543210");
  EXPECT_EQ(PseudonymIn(outcome), pseudonym);
  EXPECT_EQ(PseudonymIn(OutcomeOf(StatusOf(outcome))), pseudonym);
  EXPECT_EQ(PseudonymIn(OutcomeOf(About(StatusOf(outcome), "map", "/out"))), pseudonym);
  EXPECT_EQ(TextOf(outcome), text);
}

TEST(Outcome, NothingButSixteenHexDigitsIsAPseudonym) {
  for (const char* text : {"", "Mustermann, Erika", "/data/Mustermann", "0123456789ABCDEF"}) {
    Outcome outcome = OutcomeOf(absl::DataLossError("cut"));
    AddPseudonym(outcome, text);
    EXPECT_TRUE(outcome.others.empty()) << text;
    outcome.others.push_back({SubjectKind::kNone, 0, text});
    EXPECT_EQ(PseudonymIn(outcome), "") << text;
  }
}

TEST(Outcome, KeepsItsPartsUnderAnotherCode) {
  const Status status =
      WithCode(FromErrno("open", "/data/a.svs", ENOENT), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_EQ(OutcomeOf(status).subject.part, "/data/a.svs");
  EXPECT_TRUE(WithCode(absl::OkStatus(), absl::StatusCode::kDataLoss).ok());
}

TEST(Outcome, NamesOfAnyKindComeOutUnchangedAndStay) {
  const auto names = [](const Subject& subject) {
    return subject.index == 3 ? std::string("/data/slide 3: image 2.svs") : "/data/image 2/b.zarr";
  };
  Outcome outcome = OutcomeOf(ErrorAbout(absl::StatusCode::kNotFound, "read", kSlide3,
                                         StrCat("unlike ", kOtherSubject, ": ", "slide 3")));
  outcome.others = {{SubjectKind::kImage, 0, "0/c/1"}};
  const std::string text =
      "read: /data/slide 3: image 2.svs: unlike /data/image 2/b.zarr/0/c/1: slide 3";
  EXPECT_EQ(TextOf(outcome, names), text);
  const Status named = Annotate(Named(StatusOf(outcome), names), "wait");
  EXPECT_EQ(MessageOf(named), "wait: " + text);
  EXPECT_EQ(MessageOf(Named(named, [](const Subject&) { return "/other"; })), "wait: " + text);
  EXPECT_EQ(OutcomeOf(named).subject.kind, SubjectKind::kSlide);
  EXPECT_EQ(OutcomeOf(named).subject.index, 3u);
}

TEST(Outcome, IsCutToSoManyBytes) {
  Outcome outcome{
      3, "doing", kSlide3, std::string(100, 'x'), "advice", std::vector<Subject>(40, kSlide3)};
  Cut(outcome, 50);
  EXPECT_EQ(outcome.doing, "doing");
  EXPECT_EQ(outcome.cause.size(), 45u);
  EXPECT_EQ(outcome.advice, "");
  EXPECT_EQ(outcome.others.size(), 16u);
}

TEST(Outcome, MarksOfOutsideTextAreNone) {
  EXPECT_EQ(OutcomeOf(absl::DataLossError("a\x1a"
                                          "b"))
                .cause,
            "a?b");
  Outcome outcome{3,
                  "",
                  {},
                  "a\x1a"
                  "b"};
  EXPECT_EQ(TextOf(outcome), "ab") << "a mark too many";
}

TEST(Outcome, ComesBackFromJson) {
  Outcome outcome{3, "doing", {SubjectKind::kLabelSet, 3, "p"}, "cause", "advice", {kSlide3}};
  EXPECT_EQ(DumpJson(JsonOf(outcome)),
            R"({"advice":"advice","cause":"cause","code":3,"doing":"doing",)"
            R"("others":[{"index":3,"kind":"slide"}],)"
            R"("subject":{"index":3,"kind":"label set","part":"p"}})");
  EXPECT_EQ(DumpJson(JsonOf(Outcome{})), R"({"code":0})");
  test::ExpectEveryFieldComesBack<Outcome>();
  test::ExpectEveryFieldComesBack<Subject>();
  const auto read = [](const Json& json) { return FromJson<Outcome>(json, "outcome"); };
  EXPECT_EQ(read(JsonOf(outcome)).value(), outcome);
  EXPECT_EQ(read(JsonOf(Outcome{})).value(), Outcome{});
  EXPECT_FALSE(read(Json::array()).ok());
  EXPECT_FALSE(read({{"code", 3}, {"doing", 7}}).ok());
  Json other = JsonOf(outcome);
  other["subject"]["kind"] = "room";
  EXPECT_FALSE(read(other).ok());
}

}  // namespace
}  // namespace patchbay
