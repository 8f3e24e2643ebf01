// One table of options defines flags, payloads and help.
#include "runtime/model/jobs/option.h"

#include <gtest/gtest.h>

#include "runtime/core/strings.h"
#include "runtime/model/jobs/convert_options.h"
#include "runtime/model/jobs/ingest_settings.h"
#include "runtime/model/jobs/label_formats.h"
#include "runtime/model/jobs/label_options.h"
#include "runtime/model/jobs/local_job_options.h"
#include "runtime/model/jobs/spectra_request.h"
#include "runtime/model/jobs/tissue_options.h"
#include "runtime/os/file.h"

namespace patchbay {
namespace {

std::string Refusal(const Json& payload) {
  return std::string(MessageOf(ReadPayload<IngestSettings>(payload, "ingest settings").status()));
}

TEST(Options, ValuesOutsideTheTableAreRefusedByKey) {
  EXPECT_EQ(Refusal({{"chunk", 63}}),
            "ingest settings: chunk: expected a whole number in 64..4096, not '63'");
  EXPECT_EQ(Refusal({{"spacing_order", 2}}),
            "ingest settings: spacing_order: expected one of 0, 1, 3, not '2'");
  EXPECT_EQ(Refusal({{"volume_chunk", 33}}),
            "ingest settings: volume_chunk: expected one of 32, 48, 64, 96, 128, not '33'");
  EXPECT_EQ(Refusal({{"mpp", 1000}}),
            "ingest settings: mpp: expected a number in 0.001..999, not '1000'");
  EXPECT_EQ(Refusal({{"codec", "gzip"}}),
            "ingest settings: codec: expected one of zstd, lz4, keep, auto, not 'gzip'");
  EXPECT_EQ(Refusal({{"codec", 1}}),
            "ingest settings: codec: expected one of zstd, lz4, keep, auto, not '1'");
  EXPECT_NE(Refusal({{"spacing", {1, 1}}}), "");
  EXPECT_NE(Refusal({{"spacing", {1, 1, 101}}}), "");
  EXPECT_NE(Refusal({{"keep_names", 1}}), "");
  EXPECT_NE(Refusal({{"codec", nullptr}}), "");
  EXPECT_EQ(Refusal({{"chunks", 64}}), "ingest settings: unknown key 'chunks'");
  EXPECT_EQ(Refusal(Json::array()), "ingest settings: not an object");
  EXPECT_EQ(Refusal({{"mpp", nullptr}, {"spacing", nullptr}}), "");
}

TEST(Options, BordersOfARangeAreAllowed) {
  for (const char* key : {"mpp", "assume_mpp"}) EXPECT_EQ(Refusal({{key, 0.001}}), "") << key;
  EXPECT_EQ(Refusal({{"mpp", 999}, {"assume_mpp", 50}, {"nan", -1e6}}), "");
  EXPECT_EQ(Refusal({{"chunk", 4096}, {"shard", 32768}, {"codec_level", 9}}), "");
  EXPECT_EQ(Refusal({{"spacing", {0.1, 100, 1}}, {"spacing_order", 0}}), "");
}

TEST(Options, PayloadsLeaveOutDefaultsSoThatNamesOfFinishedWorkStay) {
  IngestSettings settings;
  EXPECT_EQ(DumpJson(ToJson(settings)),
            R"({"chunk":512,"codec":"zstd","codec_level":5,"keep_names":false,"shard":4096})");
  settings.tissue = "clam";
  settings.keep_names = true;
  settings.modality = "MR";
  EXPECT_EQ(settings.Canonical(), R"({"chunk":512,"codec":"zstd","codec_level":5,"shard":4096})");
  settings.spacing_order = 1;
  EXPECT_EQ(settings.Canonical(), IngestSettings{}.Canonical()) << "no spacing, no order";
  settings.choice = {1.5, "2"};
  EXPECT_EQ(settings.Canonical(),
            R"({"chunk":512,"codec":"zstd","codec_level":5,"focal_plane":1.5,"optical_path":"2",)"
            R"("shard":4096})");
  settings.choice = {};
  settings.spacing = {{1, 0.5, 0.5}};
  settings.spacing_order = 3;
  settings.mpp = 0.5;
  settings.assume_mpp = 0.25;
  settings.nan = -1024;
  settings.volume_chunk = 64;
  settings.geometry = "resample";
  settings.orientation = "source";
  EXPECT_EQ(
      settings.Canonical(),
      R"({"assume_mpp":0.25,"chunk":512,"codec":"zstd","codec_level":5,"geometry":"resample",)"
      R"("mpp":0.5,"nan":-1024.0,"orientation":"source","shard":4096,"spacing":[1.0,0.5,0.5],)"
      R"("spacing_order":3,"volume_chunk":64})");
  const auto read = ReadPayload<IngestSettings>(ToJson(settings), "ingest settings");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToJson(*read), ToJson(settings));
}

TEST(Options, KeysThatAreReadElsewhereAreNamed) {
  LabelsImportOptions options;
  const Json payload = {{"set", "a"}, {"clip", true}, {"classes", 1}};
  EXPECT_FALSE(ReadOptions(options.Options(), payload, "labels").ok());
  EXPECT_TRUE(ReadOptions(options.Options(), payload, "labels", {"classes"}).ok());
  EXPECT_TRUE(options.clip);
  EXPECT_EQ(DumpJson(PayloadOf(options)), R"({"clip":true,"set":"a"})");
}

TEST(Options, SidesAreAListWithinTheirRange) {
  SynthCtOptions options;
  const auto read = [&](const Json& size) {
    return ReadOptions(options.Options(), {{"size", size}}, "synth.ct");
  };
  EXPECT_TRUE(read({8, 24, 32}).ok());
  EXPECT_EQ(options.size, (Extent{8, 24, 32}));
  EXPECT_EQ(DumpJson(PayloadOf(options)), R"({"size":[8,24,32]})");
  EXPECT_EQ(MessageOf(read({8, 24})),
            "synth.ct: size: expected ZxYxX, such as 8x24x32, each in 6..1024, not '[8,24]'");
  EXPECT_FALSE(read({8, 24, 2000}).ok());
  EXPECT_FALSE(read("8x24x32").ok());
  options.size = {8, 24, 15};
  EXPECT_EQ(MessageOf(ReadPayload<SynthCtOptions>(PayloadOf(options), "synth ct").status()),
            "synth ct: --size 8x24x15: rows and columns are 16 to 1024");
}

TEST(Options, APayloadSaysWhatTellsItsJobFromOthersAlsoAtItsDefault) {
  LabelsTissueOptions tissue;  // by "profile" a worker tells it from an import
  EXPECT_EQ(DumpJson(PayloadOf(tissue)), R"({"profile":"clam","set":"tissue"})");
}

TEST(Options, FramesAreAtLeastTwoPixelsApart) {
  SpectraRequest request;
  EXPECT_TRUE(ReadOptions(request.Options(), {{"hop", 2}}, "spectra").ok());
  EXPECT_FALSE(ReadOptions(request.Options(), {{"hop", 1}}, "spectra").ok());
}

TEST(Options, HelpSaysRangeAndDefault) {
  std::string chunk, mpp, codec;
  IngestSettings settings;
  for (const Option& option : ForHelp(settings.Options())) {
    if (option.name == "--chunk") chunk = option.help;
    if (option.name == "--mpp") mpp = option.help;
    if (option.name == "--codec") codec = option.help;
  }
  EXPECT_EQ(chunk, "side of a chunk; of `keep`: the slide's tile, 64 to 4096 (default 512)");
  EXPECT_EQ(mpp, "um per pixel of the finest level, 0.001 to 999 (default: the slide's)");
  EXPECT_EQ(codec, "smaller, faster, the slide's own tiles, or as measured (default zstd)");
}

TEST(Options, ThePageListsThemAsTheCodeHasThem) {
  const auto page = ReadFile(Folders::OfThisUser(), PATCHBAY_CONFIGS "/jobs.md", 1 << 20);
  ASSERT_TRUE(page.ok()) << page.status();
  IngestSettings ingest;
  ConvertOptions convert;
  SpectraRequest spectra;
  LabelsImportOptions import;
  LabelsTissueOptions tissue;
  LabelsExportOptions to_file;
  LabelsMajorityOptions majority;
  LabelsCompareOptions compare;
  LabelsPruneOptions prune;
  LabelsDeleteOptions remove;
  SynthSlideOptions slide;
  SynthVolumeOptions volume;
  SynthCtOptions ct;
  PreviewOptions preview;
  ScanOptions scan;
  TissueOptions settings;
  for (const auto& [job, options] : {std::pair{"ingest", ingest.Options()},
                                     {"convert", convert.Options()},
                                     {"spectra", spectra.Options()},
                                     {"labels import", import.Options()},
                                     {"labels tissue", tissue.Options()},
                                     {"tissue settings", settings.Options()},
                                     {"labels export", to_file.Options()},
                                     {"labels majority", majority.Options()},
                                     {"labels compare", compare.Options()},
                                     {"labels prune", prune.Options()},
                                     {"labels delete", remove.Options()},
                                     {"synth slide", slide.Options()},
                                     {"synth volume", volume.Options()},
                                     {"synth ct", ct.Options()},
                                     {"preview", preview.Options()},
                                     {"scan", scan.Options()}}) {
    const std::string part = StrCat("## ", job, "\n\n", DocumentOptions(options));
    EXPECT_NE(page->find(part), std::string::npos) << "the page should hold\n" << part;
  }
}

TEST(LabelFormats, ThePageHasTheTable) {
  const auto page = ReadFile(Folders::OfThisUser(), PATCHBAY_CONFIGS "/export.md", 1 << 20);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_NE(page->find(DocumentLabelFormats()), std::string::npos) << DocumentLabelFormats();
}

TEST(LabelFormats, EveryRowIsFoundByItsNameAndItsEndingsAndOptionsExist) {
  LabelsExportOptions options;
  const std::vector<Option> known = options.Options();
  for (const LabelFormat& format : LabelFormats()) {
    SCOPED_TRACE(std::string(format.name));
    EXPECT_EQ(FindLabelFormat(format.name), &format);
    EXPECT_NE(format.of_slides, format.of_volumes);
    ASSERT_FALSE(format.endings.empty());
    for (const std::string_view ending : format.endings) {
      EXPECT_EQ(LabelFormatOfFile(StrCat("a/B.", ending)), &format) << ending;
    }
    for (const std::string_view option : format.options) {
      EXPECT_TRUE(std::any_of(known.begin(), known.end(), [&](const Option& one) {
        return one.name == option;
      })) << option;
    }
  }
  EXPECT_EQ(LabelFormatOfFile("a.geojson.bak"), nullptr);
  EXPECT_EQ(LabelFormatOfFile("geojson"), nullptr);
  EXPECT_EQ(LabelFormatOfFile("A.TIF"), FindLabelFormat("tiff"));
}

TEST(LabelFormats, OptionsOfAnotherFormatAreRefused) {
  LabelsExportOptions options;
  EXPECT_FALSE(options.Check().ok()) << "without a format";
  options.to = "tiff";
  options.level = 0;
  EXPECT_TRUE(options.Check().ok());
  options.min_area = 3;
  EXPECT_EQ(MessageOf(options.Check()), "--min-area: an option of geojson, and the format is tiff");
}

}  // namespace
}  // namespace patchbay
