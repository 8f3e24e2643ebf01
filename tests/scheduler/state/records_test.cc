#include "scheduler/state/records.h"

#include <gtest/gtest.h>

#include "scheduler/state/job_table.h"
#include "scheduler/state/wire.h"

namespace patchbay::scheduler {
namespace {

protocol::TaskSpec FullSpec() {
  protocol::TaskSpec spec;
  spec.op = "op";
  spec.payload = "{}";
  spec.depends_on = {1, 2};
  spec.group = 3;
  spec.label = "label";
  spec.weight = 1u << 20;
  spec.after_failures = true;
  return spec;
}

std::vector<Record> Samples() {
  return {
      {-5, StartRecord{7}},
      {1,
       SubmitRecord{
           1, "who", "key", "kind", "name", FullSpec(), "m", -3, 2, {"/r"}, {"/w", ""}, "team"}},
      {2, CommitRecord{{1, 2}, {3, 4}, "result", 5, {FullSpec(), FullSpec()}}},
      {3,
       FailRecord{{1, 2}, {3, "doing", {SubjectKind::kSlide, 3, "0/c"}, "why", "do", {{}}}, true}},
      {4, CancelRecord{9}},
      {5, RetryRecord{9, 77, 78, {1, 2}, true}},
      {6, EndStreamRecord{9, protocol::JobState::kFailed, {14, "gone"}}},
      {7, WorkerSeenRecord{"node", 1, 2, 3, -4, "host"}},
      {8, WorkerGoneRecord{"node", 1}},
      {9, DetachRecord{9, 1}},
      {10, FinishUnitRecord{9, 99'999, {13, "bad tile"}}},
      {11, UsageRecord{{{{9, "team", "who"}, {{5, 6, 7, 8}, {1, 2, 3, 4}}}}}},
      {12, ChangeJobRecord{9, -3, true}},
      {13, ChangeNodeRecord{"node", "ops", "new disk", "rack 7"}},
      {14, ApplyTeamsRecord{R"({"default":{}})", "default: {}", "ops", "team"}},
      {15, ForgetJobRecord{9}}};
}

TEST(Records, EveryKindComesBackAsItWasWritten) {
  const auto samples = Samples();
  ASSERT_EQ(samples.size(), std::variant_size_v<RecordBody>);
  for (const Record& sample : samples) {
    const std::string bytes = EncodeRecord(sample);
    const StatusOr<Record> back = DecodeRecord(bytes);
    ASSERT_TRUE(back.ok()) << sample.body.index();
    EXPECT_EQ(back->at, sample.at);
    EXPECT_EQ(EncodeRecord(*back), bytes);
  }
}

TEST(Records, AnErrorOfVersionTwoIsItsText) {
  WireWriter out;
  out.U64(2);
  out.U64(3);  // FailRecord
  out.I64(-1);
  out.Task({1, 2});
  out.I64(14);
  out.Text("open: slide 3: gone");
  out.U64(1);
  const StatusOr<Record> read = DecodeRecord(out.Take());
  ASSERT_TRUE(read.ok()) << read.status();
  const auto& fail = std::get<FailRecord>(read->body);
  EXPECT_EQ(fail.outcome.code, 14);
  EXPECT_EQ(TextOf(fail.outcome), "open: slide 3: gone");
  EXPECT_TRUE(fail.quarantined);
}

TEST(Records, ARecordOrSnapshotOfALaterVersionIsRefusedWithBothVersions) {
  WireWriter out;
  out.U64(kRecordVersion + 1);
  out.U64(0);
  const std::string later = out.Take();
  const std::string versions =
      StrCat("version ", kRecordVersion + 1, ", this program knows 1 to ", kRecordVersion,
             "; use the release of Patchbay that wrote it");
  const Status record = DecodeRecord(later).status(), snapshot = JobTable().Decode(later);
  for (const Status& refused : {record, snapshot}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_NE(refused.message().find(versions), std::string_view::npos) << refused;
  }
}

TEST(Records, CutOrLengthenedBytesAreDataLoss) {
  for (const Record& sample : Samples()) {
    const std::string bytes = EncodeRecord(sample);
    for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
      EXPECT_TRUE(absl::IsDataLoss(DecodeRecord(bytes.substr(0, cut)).status())) << cut;
    }
    EXPECT_TRUE(absl::IsDataLoss(DecodeRecord(bytes + "x").status()));
  }
}

TEST(Records, AnyChangedByteIsReadOrRefusedNeverACrash) {
  for (const Record& sample : Samples()) {
    const std::string bytes = EncodeRecord(sample);
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      for (const int change : {1, 0x80, 0xFF}) {
        std::string bad = bytes;
        bad[at] = static_cast<char>(bad[at] ^ change);
        const StatusOr<Record> read = DecodeRecord(bad);
        EXPECT_TRUE(read.ok() || absl::IsDataLoss(read.status()) || at == 0) << "its version";
      }
    }
  }
}

TEST(Snapshot, DamageIsDataLossNeverACrash) {
  JobTable table;
  Effects effects;
  SubmitRecord submit;
  submit.job = 1;
  submit.root.op = "op";
  ASSERT_TRUE(table.Apply({1, submit}, effects).ok());
  const std::string bytes = table.Encode();
  JobTable back;
  ASSERT_TRUE(back.Decode(bytes).ok());
  EXPECT_EQ(back.Encode(), bytes);
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_FALSE(back.Decode(bytes.substr(0, cut)).ok());
  }
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string bad = bytes;
    bad[at] = static_cast<char>(bad[at] ^ 0xFF);
    back.Decode(bad).IgnoreError();
  }
}

TEST(JobTable, RefusesRecordsThatDoNotFit) {
  JobTable table;
  Effects effects;
  EXPECT_FALSE(table.Apply({1, CommitRecord{{1, 0}, {}, "", 0, {}}}, effects).ok());
  EXPECT_FALSE(table.Apply({1, CancelRecord{4}}, effects).ok());
  EXPECT_FALSE(table.Apply({1, StartRecord{0}}, effects).ok());
}

TEST(JobTable, ResultIsKeptUntilEveryConsumerCommitted) {
  JobTable table;
  Effects effects;
  SubmitRecord submit;
  submit.job = 1;
  submit.root.op = "op";
  ASSERT_TRUE(table.Apply({1, submit}, effects).ok());
  protocol::TaskSpec first, second, third;
  first.op = second.op = third.op = "op";
  second.depends_on = third.depends_on = {protocol::kSpawnedBase};
  ASSERT_TRUE(
      table.Apply({1, CommitRecord{{1, 0}, {}, "root", 0, {first, second, third}}}, effects).ok());
  ASSERT_TRUE(table.Apply({1, CommitRecord{{1, 1}, {}, "needed", 0, {}}}, effects).ok());
  ASSERT_TRUE(table.Apply({1, CommitRecord{{1, 2}, {}, "", 0, {}}}, effects).ok());
  EXPECT_EQ(table.Find(TaskId{1, 1})->result, "needed");
  ASSERT_TRUE(table.Apply({1, CommitRecord{{1, 3}, {}, "", 0, {}}}, effects).ok());
  EXPECT_EQ(table.Find(TaskId{1, 1})->result, "");
  EXPECT_EQ(table.Find(TaskId{1, 0})->result, "root") << "the root's is kept for FetchResult";
  EXPECT_EQ(table.Find(JobId{1})->state, protocol::JobState::kDone);
}

}  // namespace
}  // namespace patchbay::scheduler
