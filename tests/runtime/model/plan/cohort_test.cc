// Tables as spreadsheets write them, the rows a run takes, and everything that is refused.
#include "runtime/model/plan/cohort.h"

#include <gtest/gtest.h>

#include "runtime/core/strings.h"
#include "tests/contract/known_ops.h"

namespace patchbay::plan {
namespace {

constexpr std::string_view kCohortTable =
    "path,slide_id,patient_id,site,fold_0,content_hash\n"
    "a.svs,001,P1,A,train,\n"
    "b.svs,2,P1,A,train,\n"
    "c.svs,3,P2,B,val,\n"
    "d.svs,4,P3,B,,\n";

StatusOr<CohortTable> ReadCohort(std::string_view text) { return ParseCohortTable(text, "t.csv"); }

std::string CohortError(std::string_view text) {
  const auto table = ReadCohort(text);
  return table.ok() ? "" : std::string(MessageOf(table.status()));
}

TEST(CohortTable, ReadsWhatSpreadsheetsWrite) {
  const std::string comma = "path,id\r\na.svs,007\r\n\"b, c.svs\", 1.50 \r\n";
  std::string semicolon =
      "\xEF\xBB\xBFpath;id;;\r\na.svs;007;;\r\n\"b, c.svs\"; 1.50 ;;\r\n;;;\r\n";
  std::string tabs = "path\tid\na.svs\t007\nb, c.svs\t1.50\n";
  std::string hinted = "sep=;\r\npath;id\r\na.svs;007\r\nb, c.svs;1.50";
  for (const std::string& text : {comma, semicolon, tabs, hinted}) {
    SCOPED_TRACE(text);
    const auto table = ReadCohort(text);
    ASSERT_TRUE(table.ok()) << table.status();
    EXPECT_EQ(table->columns, (std::vector<std::string>{"path", "id"}));
    ASSERT_EQ(table->rows.size(), 2u);
    EXPECT_EQ(table->Cell(table->rows[0], "id"), "007");
    EXPECT_EQ(table->Cell(table->rows[1], "path"), "b, c.svs");
    EXPECT_EQ(table->Cell(table->rows[1], "id"), "1.50");
    EXPECT_EQ(table->Cell(table->rows[1], "nothing"), "");
    EXPECT_EQ(table->rows[1].slide_id, "b, c");
    EXPECT_EQ(table->rows[1].line, text == hinted ? 4 : 3);
  }
}

TEST(CohortTable, SpacesOfEveryKindAroundACellAreTrimmed) {
  const auto table = ReadCohort(
      "path,patient_id\na.svs,\xC2\xA0P 1\xE2\x80\xAF\t\nb.svs,\xE2\x80\x8BP 1 \xEF\xBB\xBF\v\n"
      "c.svs,\xC2\xA0\xE3\x80\x80\n");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->Cell(table->rows[0], "patient_id"), "P 1");
  EXPECT_EQ(table->Cell(table->rows[1], "patient_id"), "P 1");
  EXPECT_EQ(table->Cell(table->rows[2], "patient_id"), "");
}

TEST(CohortTable, TheStemLeavesTheEndingsAway) {
  EXPECT_EQ(StemOf("/x/CMU-1.2-Region.SVS"), "CMU-1.2-Region");
  EXPECT_EQ(StemOf("s.ome.tif"), "s");
  EXPECT_EQ(StemOf("ct_017.nii.gz"), "ct_017");
  EXPECT_EQ(StemOf("stores/b3.zarr/"), "b3");
  EXPECT_EQ(StemOf("series"), "series");
  EXPECT_EQ(StemOf(".mrxs"), ".mrxs");
}

TEST(CohortTable, RefusalsNameLineAndColumn) {
  EXPECT_EQ(CohortError(""), "t.csv:1: the table is empty");
  EXPECT_EQ(CohortError("path\n"), "t.csv:1: the table has no rows");
  EXPECT_EQ(CohortError("paths,b\nx,y\n"),
            "t.csv:1: no column 'path' (is it 'paths'?); the first line names the columns");
  EXPECT_EQ(CohortError("path,a,a\nx,1,2\n"), "t.csv:1: two columns are named 'a'");
  EXPECT_EQ(CohortError("path,,a\nx,1,2\n"), "t.csv:1: column 2 has no name");
  EXPECT_EQ(CohortError("path,a\nx,1,2\n"),
            "t.csv:2: 3 cells under 2 columns; quote a cell that contains the separator");
  EXPECT_EQ(CohortError("path,a,b\nx,1,2\n\ny,1\n"),
            "t.csv:4: column 'b': the line ends before it, with 2 of 3 cells; write the separator "
            "of an empty cell too");
  EXPECT_EQ(CohortError("path;a;b;;\nx\n"),
            "t.csv:2: column 'a': the line ends before it, with 1 of 3 cells; write the separator "
            "of an empty cell too");
  EXPECT_EQ(CohortError("path,a\n,1\n"), "t.csv:2: column 'path': it is empty");
  EXPECT_EQ(CohortError("path,a\nx,\"1\n"), "t.csv:2: a quote that nothing closes");
  EXPECT_EQ(CohortError("path,a\nx,1\nx,2\n"),
            "t.csv:3: column 'path': 'x' is already in line 2 too; a slide has one row");
  EXPECT_EQ(CohortError("path,slide_id\nx,1\ny,1\n"),
            "t.csv:3: column 'slide_id': the slide_id '1' is that of line 2 too");
  EXPECT_EQ(CohortError("path\nx/1.svs\ny/1.tif\n"),
            "t.csv:3: column 'path': the slide_id '1' is that of line 2 too; add a column slide_id "
            "that tells them apart");
  EXPECT_EQ(CohortError("path,slide_id\nx,\n"), "t.csv:2: column 'slide_id': it is empty");
  EXPECT_EQ(CohortError("path,content_hash\nx,abc\n"),
            "t.csv:2: column 'content_hash': 'abc' is not a SHA-256 (64 hex digits)");
  EXPECT_EQ(CohortError("path\nx\nM\xC3\xBCller \xE2\x82\xAC \xF0\x9F\xA7\xAC \x7F.svs\n"), "");
  for (const std::string_view bad :
       {std::string_view("\xC0\x80"), std::string_view("\xC1\xBF"),
        std::string_view("\xF5\x80\x80\x80"), std::string_view("\xFF\xBF\xBF\xBF"),
        std::string_view("\x80"), std::string_view("\xC3("), std::string_view("\xE2\x82("),
        std::string_view("\xE2(\xAC"), std::string_view("a\0b", 3)}) {
    EXPECT_EQ(CohortError(StrCat("path\nx\n", bad, "\n")),
              "t.csv:3: the text is not UTF-8; save it as CSV UTF-8");
  }
  for (const char* cut : {"\xC3", "\xE2\x82", "\xF0\x9F\xA7"}) {
    // In a buffer of exactly its bytes, so that a read past the end is found.
    const std::string text = StrCat("path\nx\n", cut);
    EXPECT_EQ(CohortError(std::string_view(text)),
              "t.csv:3: the text is not UTF-8; save it as CSV UTF-8");
    EXPECT_EQ(CohortError(std::string_view(StrCat(text, "\x80\x80")).substr(0, text.size())),
              "t.csv:3: the text is not UTF-8; save it as CSV UTF-8");
  }
  EXPECT_EQ(CohortError("path\nx\nM\xFCller.svs\n"),
            "t.csv:3: the text is not UTF-8; save it as CSV UTF-8");
  EXPECT_EQ(CohortError(std::string_view("\xFF\xFEp\0", 4)),
            "t.csv:1: the text is UTF-16; save it as CSV UTF-8");
}

RunConfig CohortConfig(std::string_view rest) {
  const auto config = ParseRunConfig(
      StrCat("dataset: t.csv\npatch: {size: [64, 64]}\nbatch: {global_size: 8}\n", rest), "run");
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : RunConfig{};
}

/// The chosen rows, or the error.
std::string Selected(std::string_view config, std::string_view split,
                     std::string_view table = kCohortTable) {
  const auto read = ReadCohort(table);
  EXPECT_TRUE(read.ok()) << read.status();
  const auto rows = SelectRows(*read, CohortConfig(config), split);
  if (!rows.ok()) return std::string(MessageOf(rows.status()));
  std::string text;
  for (const std::size_t row : *rows) text += StrCat(row, " ");
  return text;
}

TEST(Cohort, TakesTheRowsOfTheColumnsAndTheSplit) {
  EXPECT_EQ(Selected("", ""), "0 1 2 3 ");
  EXPECT_EQ(Selected("where: {site: B}", ""), "2 3 ");
  EXPECT_EQ(Selected("where: {site: [A, B], slide_id: 001}", ""), "0 ");
  EXPECT_EQ(Selected("split_column: fold_0", ""), "0 1 2 3 ");
  EXPECT_EQ(Selected("split_column: fold_0", "train"), "0 1 ");
  EXPECT_EQ(Selected("split_column: fold_0", "val"), "2 ");
  EXPECT_EQ(Selected("split_column: fold_0", "all"), "0 1 2 3 ");
  EXPECT_EQ(Selected("split_column: fold_0\nwhere: {site: B, slide_id: [1, 4, 3, 001]}", "all"),
            "key 'split_column': column 'fold_0' of t.csv has one value, val: these are not "
            "splits");
}

TEST(Cohort, CountsTheRowsThatWhereLeaves) {
  const auto table = ReadCohort(kCohortTable);
  const auto count = [&](std::string_view config) {
    const auto rows = CountRows(*table, CohortConfig(config));
    return rows.ok() ? StrCat(*rows) : std::string(MessageOf(rows.status()));
  };
  EXPECT_EQ(count("split_column: fold_0"), "4");
  EXPECT_EQ(count("split_column: fold_0\nwhere: {site: B}"), "2");
  EXPECT_EQ(count("where: {site: C}"), "key 'where.site': no row of t.csv is left with 'C'");
}

TEST(Cohort, SplitsThatDifferOnlyInCaseOrAreCalledAllAreRefusedByLine) {
  const std::string_view rows = "path,f\na.svs,train\nb.svs,val\nc.svs,\nd.svs,Val\n";
  for (const char* split : {"", "all", "train", "val"}) {
    EXPECT_EQ(Selected("split_column: f", split, rows),
              "t.csv:5: column 'f': the split 'Val' and 'val' in line 3 differ only in case; spell "
              "them alike");
  }
  for (const char* name : {"all", "ALL"}) {
    EXPECT_EQ(Selected("split_column: f", "train", StrCat("path,f\na,train\nb,", name, "\n")),
              StrCat("t.csv:3: column 'f': '", name,
                     "' stands for every row of the table where a split is asked for; give the "
                     "split another name"));
  }
  EXPECT_EQ(Selected("split_column: f\nsplits: {all: {role: train}}", "train",
                     "path,f\na,train\nb,val\n"),
            "key 'splits.all': column 'f' of t.csv has train, val (did you mean 'val'?)");
}

/// The notices of CensusOf, one a line.
std::string Notices(std::string_view text, std::string_view config = "split_column: f") {
  const auto table = ReadCohort(text);
  EXPECT_TRUE(table.ok()) << table.status();
  const RunConfig run = CohortConfig(config);
  const auto rows = SelectRows(*table, run, "");
  EXPECT_TRUE(rows.ok()) << rows.status();
  return StrJoin(CensusOf(*table, run, *rows).notices, "\n");
}

TEST(Cohort, ACensusCountsWhatSplitsHaveAndWhatWasCompared) {
  const auto table = ReadCohort(
      "path,patient_id,f,use\na,P1,train,1\nb,,train,1\nc,P2,hold,1\nd,P3,,1\ne,P4,,0\n");
  const RunConfig config = CohortConfig("split_column: f\nwhere: {use: 1}");
  const SplitCensus census = CensusOf(*table, config, *SelectRows(*table, config, ""));
  EXPECT_EQ(census.splits.size(), 2u);
  EXPECT_EQ(census.splits.at("train").rows, 2u);
  EXPECT_EQ(census.splits.at("train").role, SplitRole::kTrain);
  EXPECT_EQ(census.splits.at("hold").rows, 1u);
  EXPECT_EQ(census.splits.at("hold").role, std::nullopt);
  EXPECT_EQ(census.rows, 3u);
  EXPECT_EQ(census.with_patient, 2u);
  EXPECT_EQ(census.without_split, 1u);
}

TEST(Cohort, WhatWasNotComparedIsNoticed) {
  EXPECT_EQ(Notices("path,patient_id,f\na,P1,x\nb,P2,y\n"), "");
  EXPECT_EQ(Notices("path,patient_id,f\na,P1,x\nb,P2,y\nc,P3,\nd,P3,\n"),
            "t.csv:4: column 'f': it is empty, as in 1 more: the rows are in no split; only `all` "
            "has them");
  EXPECT_EQ(Notices("path,patient_id,f\na,P1,x\nb,P2,y\nc,P1,\n"),
            "t.csv:4: column 'f': it is empty: the row is in no split; only `all` has it");
  EXPECT_EQ(Notices("path,f\na,x\nb,y\n"),
            "t.csv: no column 'patient_id': none were compared, so patients may be in several "
            "splits");
  for (const char* near : {"patient", "Subject ID", "PatientID", "patientid", "patient-id"}) {
    EXPECT_EQ(Notices(StrCat("path,", near, ",f\na,P1,x\nb,P1,y\n")),
              StrCat("t.csv: no column 'patient_id' (is it '", near,
                     "'?): none were compared, so patients may be in several splits"));
  }
  EXPECT_EQ(Notices("path,patient_age,patient_no,f\na,60,P1,x\nb,61,P1,y\n"),
            "t.csv: no column 'patient_id' (is it 'patient_no'?): none were compared, so patients "
            "may be in several splits");
  EXPECT_EQ(
      Notices("path,patient_id,f\na,,x\nb, ,y\nc,P1,\n"),
      "t.csv:4: column 'f': it is empty: the row is in no split; only `all` has it\n"
      "t.csv: column 'patient_id' is empty: none were compared, so patients may be in several "
      "splits");
  EXPECT_EQ(Notices("path,patient_id,f\na,P1,x\nb,,y\n"),
            "t.csv: column 'patient_id' is empty in 1 of 2 rows: these were not compared, so "
            "patients may be in several splits");
}

TEST(Cohort, PatientsThatDifferOnlyInCaseAreNoticedAcrossSplits) {
  EXPECT_EQ(Notices("path,patient_id,f\na,p1,x\nb,P1,x\nc,P2,y\n"), "");
  EXPECT_EQ(Notices("path,patient_id,f\na,p1,x\nb,P2,y\nc, P1,y\n"),
            "t.csv:4: column 'patient_id': 'P1' in the split 'y' and 'p1' in 'x' in line 2 differ "
            "only in case and count as two patients; spell them alike if they are one");
}

/// The labels of all rows, or the error.
std::string Labels(std::string_view cells) {
  const auto table = ReadCohort(StrCat("path,isup\n", cells));
  EXPECT_TRUE(table.ok()) << table.status();
  const RunConfig config = CohortConfig("labels: {label: {column: isup}}");
  const auto rows = SelectRows(*table, config, "");
  const auto labels = LabelsOf(*table, config, *rows);
  if (!labels.ok()) return std::string(MessageOf(labels.status()));
  std::string text;
  for (const std::int64_t label : *labels) text += StrCat(label, " ");
  return text;
}

TEST(Cohort, TheLabelsOfAColumnAreIntegers) {
  EXPECT_EQ(Labels("a,3\nb, \nc,-1\nd,4.0\n"), "3 255 -1 4 ");
  for (const char* wrong : {"high", "3.5", "3+3", "4.", "0x1", "9223372036854775808", "1e3"}) {
    EXPECT_EQ(Labels(StrCat("a,3\nb,", wrong, "\n")),
              StrCat("t.csv:3: column 'isup': '", wrong,
                     "' is not an integer; labels.label.column "
                     "takes the number of a class, or nothing"));
  }
  EXPECT_EQ(Labels("a,\nb,\n"), "key 'labels.label.column': column 'isup' of t.csv is empty");
  const RunConfig config = CohortConfig("labels: {label: {column: isupp}}");
  EXPECT_EQ(MessageOf(LabelsOf(*ReadCohort("path,isup\na,1\n"), config, {0}).status()),
            "key 'labels.label.column': t.csv has no column 'isupp' (did you mean 'isup'?)");
}

TEST(Cohort, RefusesWhatIsNotThere) {
  EXPECT_EQ(Selected("where: {sites: B}", ""),
            "key 'where.sites': t.csv has no column 'sites' (did you mean 'site'?)");
  EXPECT_EQ(Selected("where: {site: C}", ""), "key 'where.site': no row of t.csv is left with 'C'");
  EXPECT_EQ(Selected("split_column: fold", ""),
            "key 'split_column': t.csv has no column 'fold' (did you mean 'fold_0'?)");
  EXPECT_EQ(Selected("split_column: fold_0", "vali"),
            "split 'vali': column 'fold_0' of t.csv has train, val (did you mean 'val'?)");
  EXPECT_EQ(Selected("", "val"), "split 'val': the config has no split_column");
  EXPECT_EQ(Selected("split_column: fold_0\nwhere: {site: A}", ""),
            "key 'split_column': column 'fold_0' of t.csv has one value, train: these are not "
            "splits");
  EXPECT_EQ(Selected("split_column: fold_0\nsplits: {vall: {batch: {tail: pad}}}", "train"),
            "key 'splits.vall': column 'fold_0' of t.csv has train, val (did you mean 'val'?)");
}

TEST(Cohort, PatientsAndContentsStayWithinASplit) {
  EXPECT_EQ(Selected("split_column: f", "a", "path,patient_id,f\nx,P1,a\ny,P2,b\nz,P1,b\n"),
            "t.csv:4: column 'patient_id': the patient 'P1' is in the split 'b' here and in 'a' in "
            "line 2, so that one split knows the other; put both rows into one");
  const std::string hash(64, 'a'), other(64, 'b');
  const std::string rows = StrCat("path,content_hash,f,use\nx,", hash, ",a,1\ny,", other,
                                  ",b,1\nz,", std::string(64, 'A'), ",b,0\n");
  EXPECT_NE(Selected("split_column: f", "a", rows).find("t.csv:4: column 'content_hash'"),
            std::string::npos);
  EXPECT_EQ(Selected("split_column: f\nwhere: {use: 1}", "a", rows), "0 ");
  EXPECT_EQ(Selected("", "", rows),
            "t.csv:4: column 'content_hash': the content is that of line 2 too; a slide has one "
            "row");
  EXPECT_EQ(Selected("split_column: f", "a", "path,patient_id,f\nx,,a\ny,,b\nz,P1,\nw,P1,b\n"),
            "0 ");
}

std::string CohortConfigError(std::string_view yaml) {
  return std::string(MessageOf(ParseRunConfig(yaml, "run.yaml").status()));
}

TEST(Cohort, KeysOfATableNeedATable) {
  EXPECT_EQ(CohortConfigError("dataset: stores/\npatch: {size: [8, 8]}\nwhere: {a: b}\n"),
            "run.yaml:3: key 'where': the dataset is not a table (a .csv or .tsv file)");
  EXPECT_EQ(CohortConfigError("dataset: t.csv\npatch: {size: [8, 8]}\nsplits: {val: }\n"),
            "run.yaml:3: key 'splits': there is no split_column");
  EXPECT_EQ(
      CohortConfigError("dataset: t.csv\npatch: {size: [8, 8]}\nsplit_column: f\nwhere:\n  f: x\n"),
      "run.yaml:5: key 'where.f': this is the split column; ask for the split instead "
      "(--split)");
  EXPECT_EQ(CohortConfigError("dataset: [t.csv, stores/]\npatch: {size: [8, 8]}\n"),
            "run.yaml:1: key 'dataset': a table stands alone: put the other images into it");
}

TEST(Cohort, ASplitReplacesSamplingAndMergesBatch) {
  const RunConfig config = CohortConfig(
      "split_column: fold_0\n"
      "sampling: {positions: random, patches_per_epoch: 100}\n"
      "augment: [flip]\n"
      "splits: {val: {sampling: {order: sequential}, batch: {tail: pad, per_rank: 2}}}\n");
  const auto train = ForSplit(config, "train");
  ASSERT_TRUE(train.ok()) << train.status();
  EXPECT_EQ(train->positions, Positions::kRandom);
  EXPECT_EQ(train->global_size, 8u);
  EXPECT_EQ(train->augment.size(), 1u);
  EXPECT_TRUE(train->splits.empty());
  const auto val = ForSplit(config, "val");
  ASSERT_TRUE(val.ok()) << val.status();
  EXPECT_EQ(val->positions, Positions::kGrid);
  EXPECT_EQ(val->order, PatchOrder::kSequential);
  EXPECT_EQ(val->patches_per_epoch, 0u);
  EXPECT_EQ(val->tail, Tail::kPad);
  EXPECT_EQ(val->global_size, 0u);
  EXPECT_EQ(val->per_rank, 2u);
  EXPECT_TRUE(val->augment.empty());
  const RunConfig by_rank = *ParseRunConfig(
      "dataset: t.csv\npatch: {size: [64, 64]}\nsplit_column: fold_0\n"
      "batch: {per_rank: 3}\nsplits: {val: {batch: {global_size: 5}}}\n",
      "run");
  EXPECT_EQ(ForSplit(by_rank, "val")->global_size, 5u);
  EXPECT_EQ(ForSplit(by_rank, "val")->per_rank, 0u);
  EXPECT_EQ(ForSplit(by_rank, "train")->per_rank, 3u);
  EXPECT_EQ(ForSplit(config, "val", true)->augment.size(), 1u);
  EXPECT_EQ(ForSplit(config, "train", false)->augment.size(), 0u);
  EXPECT_EQ(ForSplit(config, "")->augment.size(), 1u);
  EXPECT_EQ(CohortConfigError("dataset: t.csv\npatch: {size: [8, 8]}\nsplit_column: f\n"
                              "splits: {val: {seed: 3}}\n"),
            "run.yaml:4: unknown key 'splits.val.seed' (known: role, sampling, batch)");
  const std::string role = CohortConfigError(
      "dataset: t.csv\npatch: {size: [8, 8]}\nsplit_column: f\n"
      "splits: {val: {role: Train}}\n");
  EXPECT_NE(role.find("'splits.val.role': expected one of "), std::string::npos) << role;
}

/// Whether a split of a config with `augment` is augmented, or the error.
std::string Augmented(std::string_view config, const std::string& split,
                      std::optional<bool> asked = std::nullopt) {
  const auto run = ForSplit(CohortConfig(config), split, asked);
  return run.ok() ? (run->augment.empty() ? "no" : "yes") : std::string(MessageOf(run.status()));
}

TEST(Cohort, AugmentationFollowsTheRole) {
  const std::string config = "split_column: f\naugment: [flip]\n";
  EXPECT_EQ(Augmented(config, ""), "yes");
  EXPECT_EQ(Augmented(config, "all"), "no");
  EXPECT_EQ(Augmented(config, "all", true), "yes");
  EXPECT_EQ(Augmented(config, "train"), "yes");
  for (const char* usual : {"val", "valid", "validation", "test", "tune"}) {
    EXPECT_EQ(Augmented(config, usual), "no");
    EXPECT_EQ(Augmented(config, usual, true), "yes");
  }
  for (const std::string other : {"training", "Train", "Val", "holdout", "0", "eval", "dev"}) {
    EXPECT_EQ(
        Augmented(config, other),
        StrCat("key 'augment': it applies to splits whose role is train, and the split '", other,
               "' has none: say `splits: {", other, ": {role: train}}`, or `role: evaluate`"));
    EXPECT_EQ(Augmented(config, other, true), "yes");
    EXPECT_EQ(Augmented(config, other, false), "no");
    EXPECT_EQ(Augmented("split_column: f\n", other), "no");
    EXPECT_EQ(Augmented(StrCat(config, "splits: {'", other, "': {role: train}}"), other), "yes");
    EXPECT_EQ(Augmented(StrCat(config, "splits: {'", other, "': {role: evaluate}}"), other), "no");
  }
  // Stated before usual.
  EXPECT_EQ(Augmented(config + "splits: {train: {role: evaluate}, val: {role: train}}", "train"),
            "no");
  EXPECT_EQ(Augmented(config + "splits: {train: {role: evaluate}, val: {role: train}}", "val"),
            "yes");
  EXPECT_EQ(CohortConfigError("dataset: t.csv\npatch: {size: [8, 8]}\nsplit_column: f\nsplits:\n"
                              "  a: {role: tain}\n"),
            "run.yaml:5: key 'splits.a.role': expected one of train, evaluate, got 'tain' (did you "
            "mean 'train'?)");
}

TEST(Scanners, RowsAreOfListedScannersOrOfTheOthers) {
  const auto table = ReadCohort("path,device\na.svs,at2\nb.svs,s360\nc.svs,at2\nd.svs,\n");
  ASSERT_TRUE(table.ok()) << table.status();
  const auto config_of = [](const char* options) {
    return *RunConfigFromJson(
        {{"dataset", {"t.csv"}},
         {"patch", {{"size", {64, 64}}}},
         {"batch", {{"global_size", 4}}},
         {"preprocess", Json::array({{{"stain_normalize", Json::parse(options)}}})}});
  };
  const auto found = ScannersOf(
      *table, config_of(R"({"scanners": {"other": "default", "at2": "x.zarr", "z": "cohort"},
                               "scanner_column": "device"})"),
      {1, 2, 3, 0});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->names, (std::vector<std::string>{"other", "at2"}));
  EXPECT_EQ(found->of_rows, (std::vector<std::uint32_t>{0, 1, 0, 1}));
  const auto refusal = [&](const char* options, CohortRows rows) {
    return std::string(MessageOf(ScannersOf(*table, config_of(options), rows).status()));
  };
  EXPECT_EQ(refusal(R"({"scanners": {"at3": "default"}, "scanner_column": "device"})", {0}),
            "t.csv:2: column 'device': the scanner 'at2' is not in "
            "preprocess[0].stain_normalize.scanners (did you mean 'at3'?); list it there, or give "
            "`other` a reference");
  EXPECT_EQ(refusal(R"({"scanners": {"at2": "default"}, "scanner_column": "device"})", {0, 3}),
            "t.csv:5: column 'device': no scanner is named, or give `other` a reference");
  EXPECT_EQ(refusal(R"({"scanners": {"at2": "default"}})", {0}),
            "key 'preprocess[0].stain_normalize.scanner_column': t.csv has no column 'scanner'");
}

}  // namespace
}  // namespace patchbay::plan
