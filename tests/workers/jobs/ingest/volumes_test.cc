// CT series through the ingest job: stores, refusals, and no trace of planted names.
#include <cstring>
#include <filesystem>
#include <limits>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dcdicent.h>
#include <dcmtk/dcmdata/dcdict.h>
#include <dcmtk/dcmdata/dctk.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "runtime/core/strings.h"
#include "runtime/format/zarr/inspect.h"
#include "runtime/format/zarr/verify.h"
#include "runtime/os/file.h"
#include "tests/workers/jobs/ingest/small_ingest.h"
#include "tests/workers/sources/volumes/volume_fixtures.h"
#include "workers/jobs/synth/synth.h"
#include "workers/sources/volumes/dicom_writer.h"
#include "workers/sources/zarr_source.h"

namespace patchbay::workers {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

/// False where the VR of the element takes no text.
bool PutDicomText(const std::string& path, const DcmTag& tag, const char* text) {
  DcmFileFormat format;
  if (format.loadFile(OFFilename(path.c_str())).bad()) return false;
  if (format.getDataset()->putAndInsertString(tag, text).bad()) return false;
  return format.saveFile(OFFilename(path.c_str()), format.getDataset()->getOriginalXfer()).good();
}

class VolumeIngest : public SmallIngest {
 protected:
  void MakeSeries(const std::string& name, std::string_view fault = "none",
                  std::uint64_t seed = 1) const {
    SynthCtOptions options;
    options.size = {12, 40, 48};
    options.seed = seed;
    options.fault = fault;
    const auto made = SynthCt(Folders::OfThisUser(), Path(name), options);
    ASSERT_TRUE(made.ok()) << made.status();
  }

  /// Runs the job to its end.
  JobRunner Ingest(const std::vector<std::string>& names, Json more = Json::object()) {
    JobRunner scheduler(Manifest(names), 7);
    scheduler.repeat_every = 3;
    Json settings = settings_;
    settings["volume_chunk"] = 32;
    settings.update(more);
    scheduler.Submit("ingest.plan", settings);
    scheduler.Run();
    return scheduler;
  }

  Json Attributes(const std::string& store) const {
    const auto text =
        ReadFile(Folders::OfThisUser(), StrCat(out_, "/", store, "/zarr.json"), 1u << 24);
    EXPECT_TRUE(text.ok()) << text.status();
    return (*ParseJson(*text, "store"))["attributes"]["patchbay"];
  }

  std::vector<std::string> Stores() const {
    std::vector<std::string> stores;
    for (const std::string& name : Below(out_)) {
      if (name.ends_with(".zarr")) stores.push_back(name);
    }
    return stores;
  }

  /// All voxels of level 0.
  std::vector<std::byte> Voxels(const std::string& store) const {
    const auto image = OpenZarrImage(Folders::OfThisUser(), StrCat(out_, "/", store));
    EXPECT_TRUE(image.ok()) << image.status();
    const ImageLayout& layout = (*image)->layout();
    const Extent size = layout.levels[0].size;
    std::vector<std::byte> bytes(static_cast<std::size_t>(size.Pixels()) * SizeOf(layout.dtype));
    const auto scratch = (*image)->MakeScratch();
    EncodedPatch patch;
    EXPECT_TRUE((*image)->Fetch(0, WholeOf(size), patch).ok());
    const TensorView view =
        ContiguousView<4>(bytes.data(), layout.dtype, {size.z, size.y, size.x, 1});
    EXPECT_TRUE((*image)->Decode(patch, view, 0, *scratch).ok());
    return bytes;
  }
};

TEST_F(VolumeIngest, StoresTheVoxelsAndWhereTheyLie) {
  MakeSeries("ct", "shuffled-names");
  const JobRunner scheduler = Ingest({"ct"});
  ASSERT_THAT(scheduler.Failures(), testing::IsEmpty());
  ASSERT_EQ(Stores().size(), 1u);
  const auto expected = ReadCanonical(Path("ct"));
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_EQ(Voxels(Stores()[0]), expected->voxels);
  const Json said = Attributes(Stores()[0]);
  EXPECT_EQ(said["affine_lps"], ToJson(LpsOf(expected->affine)));
  EXPECT_EQ(said["affine_ras"][0][0], -0.78125);
  EXPECT_EQ(said["affine_lps"][2][3], -100);
  EXPECT_EQ(said["slice_table"]["positions_lps_mm"].size(), 12u);
  EXPECT_EQ(said["slice_table"]["positions_lps_mm"][11][2], -100 + 11 * 2.5);
  EXPECT_EQ(said["acquisition"]["verdict"], "uniform");
  EXPECT_EQ(said["acquisition"]["kernel"], "SOFT");
  EXPECT_EQ(said["orientation"], "LPS");
  EXPECT_TRUE(zarr::VerifyStore(Folders::OfThisUser(), StrCat(out_, "/", Stores()[0]), {}, nullptr)
                  ->faults == 0);
  EXPECT_FALSE(std::filesystem::exists(out_ + "/.patchbay-ingest"));
}

TEST_F(VolumeIngest, ASecondRunFindsTheStoreAndOtherSettingsAreAnotherStore) {
  MakeSeries("ct");
  const JobRunner first = Ingest({"ct"});
  ASSERT_THAT(first.Failures(), testing::IsEmpty());
  const JobRunner again = Ingest({"ct"});
  ASSERT_THAT(again.Failures(), testing::IsEmpty());
  EXPECT_EQ(again.CountOf("ingest.volume"), 0u);
  EXPECT_EQ(again.ResultOf("ingest.summary")["stores"][0]["stored_bytes"],
            first.ResultOf("ingest.summary")["stores"][0]["stored_bytes"]);
  EXPECT_THAT(Ingest({"ct"}, {{"orientation", "source"}}).FailedOps(), Contains("ingest.open"));
}

TEST_F(VolumeIngest, FilesThatAreExchangedBetweenHashAndReadFailTheSeries) {
  MakeSeries("ct", "none", 1);
  MakeSeries("other", "none", 2);
  bool exchanged = false;
  JobRunner scheduler(Manifest({"ct"}), 7);
  scheduler.before_each = [this, &exchanged](const std::string& op) {
    if (op != "ingest.volume" || exchanged) return;
    for (const std::string& name : Below(Path("other"))) {
      std::filesystem::rename(Path("other/" + name), Path("ct/" + name));
    }
    exchanged = true;
  };
  Json settings = settings_;
  settings["volume_chunk"] = 32;
  scheduler.Submit("ingest.plan", settings);
  scheduler.Run();
  ASSERT_TRUE(exchanged);
  ASSERT_EQ(scheduler.Failures().size(), 1u);
  EXPECT_TRUE(absl::IsFailedPrecondition(scheduler.Failures()[0])) << scheduler.Failures()[0];
  EXPECT_THAT(Stores(), testing::IsEmpty());
}

TEST_F(VolumeIngest, AxesMayStayTheSources) {
  MakeSeries("ct", "flipped-rows");
  ASSERT_THAT(Ingest({"ct"}, {{"orientation", "source"}}).Failures(), testing::IsEmpty());
  const auto canonical = ReadCanonical(Path("ct"));
  ASSERT_TRUE(canonical.ok()) << canonical.status();
  const std::vector<std::byte> found = Voxels(Stores()[0]);
  EXPECT_NE(Attributes(Stores()[0])["orientation"], "LPS");
  ASSERT_EQ(found.size(), canonical->voxels.size());
  EXPECT_NE(found, canonical->voxels);
  // Columns to anterior, so that the normal of the slices, by which they are ordered, is inferior.
  const Extent size = canonical->size;
  const auto row_bytes = static_cast<std::size_t>(size.x) * 2;
  for (std::int64_t z = 0; z < size.z; ++z) {
    for (std::int64_t y = 0; y < size.y; ++y) {
      const auto row = [&](std::int64_t slice, std::int64_t at) {
        return static_cast<std::size_t>(slice * size.y + at) * row_bytes;
      };
      const std::byte* turned = &canonical->voxels[row(size.z - 1 - z, size.y - 1 - y)];
      ASSERT_EQ(std::memcmp(&found[row(z, y)], turned, row_bytes), 0) << z << " " << y;
    }
  }
}

TEST_F(VolumeIngest, SeriesOfAStudyShareItsPseudonym) {
  MakeSeries("ct", "two-series");
  ASSERT_THAT(Ingest({"ct"}).Failures(), testing::IsEmpty());
  ASSERT_EQ(Stores().size(), 2u);
  const Json a = Attributes(Stores()[0])["identity"], b = Attributes(Stores()[1])["identity"];
  EXPECT_EQ(a["study"], b["study"]);
  EXPECT_EQ(a["patient"], b["patient"]);
  EXPECT_NE(a["series"], b["series"]);
}

TEST_F(VolumeIngest, AFrameOfReferenceForEverySliceIsRecordedAsAWarning) {
  MakeSeries("ct", "frame-a-slice");
  MakeSeries("plain", "none", 2);
  const JobRunner scheduler = Ingest({"ct", "plain"});
  ASSERT_THAT(scheduler.Failures(), testing::IsEmpty());
  const Json stores = scheduler.ResultOf("ingest.summary")["stores"];
  ASSERT_EQ(stores.size(), 2u);
  const Json said = Attributes(stores[0]["name"].get<std::string>());
  ASSERT_EQ(said["warnings"].size(), 1u);
  EXPECT_THAT(said["warnings"][0].get<std::string>(), HasSubstr("a frame of reference of its own"));
  EXPECT_EQ(stores[0]["warnings"], said["warnings"]);
  const Json frames = said["identity"]["frame_of_reference"];
  ASSERT_EQ(frames.size(), 12u);
  for (const Json& frame : frames) {
    EXPECT_THAT(frame.get<std::string>(), testing::MatchesRegex("[0-9a-f]{16}"));
    EXPECT_EQ(std::count(frames.begin(), frames.end(), frame), 1);
  }
  const Json plain = Attributes(stores[1]["name"].get<std::string>());
  EXPECT_FALSE(plain.contains("warnings"));
  EXPECT_TRUE(plain["identity"]["frame_of_reference"].is_string());
  EXPECT_EQ(stores[1]["warnings"], Json::array());
  const auto verdicts = ReadFile(Folders::OfThisUser(), out_ + "/verdicts.csv", 1u << 20);
  ASSERT_TRUE(verdicts.ok());
  EXPECT_THAT(*verdicts, HasSubstr(",uniform,\"every slice has a frame of reference of its own"));
  // A second run says it of the store that is there.
  EXPECT_EQ(Ingest({"ct", "plain"}).ResultOf("ingest.summary")["stores"][0]["warnings"],
            said["warnings"]);
}

TEST_F(VolumeIngest, ARefusedSeriesFailsAloneAndLeavesNothing) {
  MakeSeries("good");
  MakeSeries("gap", "missing-slice", 2);
  const JobRunner scheduler = Ingest({"gap", "good"});
  ASSERT_EQ(scheduler.Failures().size(), 1u);
  const std::string message(scheduler.Failures()[0].message());
  EXPECT_THAT(message, HasSubstr("gap"));
  EXPECT_THAT(message, Not(HasSubstr("IM1")));
  EXPECT_THAT(message, Not(HasSubstr(folder_)));
  EXPECT_EQ(OutcomeOf(scheduler.Failures()[0]).advice, "OUT/verdicts.csv names the files");
  EXPECT_EQ(Stores().size(), 1u);
  const auto verdicts = ReadFile(Folders::OfThisUser(), out_ + "/verdicts.csv", 1u << 20);
  ASSERT_TRUE(verdicts.ok());
  EXPECT_THAT(*verdicts, HasSubstr("IM1007.dcm"));
  struct stat st {};
  ASSERT_EQ(stat((out_ + "/verdicts.csv").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
}

TEST_F(VolumeIngest, ADamagedSliceKeepsItsSubjectAndTheVerdictsNameItsFile) {
  MakeSeries("cut", "truncated");
  const JobRunner scheduler = Ingest({"cut"});
  ASSERT_EQ(scheduler.Failures().size(), 1u);
  const Outcome outcome = OutcomeOf(scheduler.Failures()[0]);
  EXPECT_EQ(outcome.code, static_cast<int>(absl::StatusCode::kDataLoss));
  EXPECT_EQ(outcome.advice, "OUT/verdicts.csv names the file");
}

TEST_F(VolumeIngest, AVerdictThatOnlyTheVoxelsGiveIsTheOneThatIsWritten) {
  MakeSeries("ct", "signedness");
  for (const auto& entry : std::filesystem::directory_iterator(Path("ct"))) {
    ASSERT_TRUE(PutDicomText(entry.path().string(), DCM_KVP, ""));
    ASSERT_TRUE(PutDicomText(entry.path().string(), DCM_RescaleIntercept, "900"));
  }
  const JobRunner scheduler = Ingest({"ct"});
  EXPECT_THAT(scheduler.FailedOps(), Contains("ingest.volume"));
  const auto verdicts = ReadFile(Folders::OfThisUser(), out_ + "/verdicts.csv", 1u << 20);
  ASSERT_TRUE(verdicts.ok());
  EXPECT_THAT(*verdicts, HasSubstr(",not-ct,"));
  EXPECT_THAT(*verdicts, Not(HasSubstr(",uniform,")));
}

TEST_F(VolumeIngest, VerdictsNameFilesByTheirPathsBelowTheFolder) {
  MakeSeries("study/portal", "missing-slice");
  MakeSeries("study/late", "missing-slice", 2);
  ASSERT_EQ(Ingest({"study"}).Failures().size(), 2u);
  const auto verdicts = ReadFile(Folders::OfThisUser(), out_ + "/verdicts.csv", 1u << 20);
  ASSERT_TRUE(verdicts.ok());
  for (const char* folder : {"portal", "late"}) {
    EXPECT_THAT(*verdicts, testing::ContainsRegex(StrCat(",", folder, "/IM1[0-9]+\\.dcm")));
  }
}

TEST_F(VolumeIngest, PoliciesAreRecorded) {
  MakeSeries("tilt", "tilt");
  ASSERT_THAT(Ingest({"tilt"}, {{"geometry", "resample"}}).Failures(), testing::IsEmpty());
  const Json said = Attributes(Stores()[0]);
  EXPECT_EQ(said["acquisition"]["verdict"], "tilted");
  EXPECT_EQ(said["codec_plan"]["geometry"], "resample");
  EXPECT_EQ(said["transform_log"][0]["geometry"], "resample");
  EXPECT_THAT(DumpJson(said["transform_log"]), HasSubstr("resample slices"));
}

TEST_F(VolumeIngest, SpacingIsMadeAndThePlaceStays) {
  MakeSeries("ct");
  ASSERT_THAT(
      Ingest({"ct"}, {{"spacing", {1.25, 1.5625, 1.5625}}, {"spacing_order", 1}}).Failures(),
      testing::IsEmpty());
  const Json said = Attributes(Stores()[0]);
  const auto row = zarr::InspectStore(Folders::OfThisUser(), StrCat(out_, "/", Stores()[0]));
  EXPECT_EQ(row->levels[0].shape, std::vector<std::int64_t>({24, 20, 24}));
  EXPECT_NEAR(said["affine_lps"][2][2].get<double>(), 1.25, 1e-9);
  EXPECT_NEAR(said["affine_lps"][0][0].get<double>(), 1.5625, 1e-9);
  // The corner of the first voxel: half a step before its centre, as before.
  EXPECT_NEAR(said["affine_lps"][2][3].get<double>() - 0.625, -100 - 1.25, 1e-9);
  EXPECT_THAT(DumpJson(said["transform_log"]), HasSubstr("\"asked_mm\":[1.25,1.5625,1.5625]"));
  // Two by two pixels at equal weight, halfway between slices but at the ends.
  const auto plain = ReadCanonical(Path("ct"));
  const std::vector<std::byte> voxels = Voxels(Stores()[0]);
  const auto* made = reinterpret_cast<const std::int16_t*>(voxels.data());
  double worst = 0;
  for (std::int64_t y = 0; y < 20; ++y) {
    for (std::int64_t x = 0; x < 24; ++x) {
      double sum = 0;
      for (const std::int64_t at : {2 * y * 48 + 2 * x, 2 * y * 48 + 2 * x + 1,
                                    (2 * y + 1) * 48 + 2 * x, (2 * y + 1) * 48 + 2 * x + 1}) {
        sum += ValueOf(*plain, static_cast<std::size_t>(at));
      }
      worst = std::max(worst, std::abs(sum / 4 - made[y * 24 + x]));
    }
  }
  EXPECT_LE(worst, 0.5);
}

TEST_F(VolumeIngest, ACoarseAxisIsResampledByNearestWhereSeparateZIsAsked) {
  MakeSeries("ct");  // slices of 2.5 mm, pixels of 0.78125
  const Json half_step = {{"spacing", {1.25, 0.78125, 0.78125}}, {"anisotropic", "separate_z"}};
  ASSERT_THAT(Ingest({"ct"}, half_step).Failures(), testing::IsEmpty());
  EXPECT_THAT(DumpJson(Attributes(Stores()[0])["transform_log"]), HasSubstr("\"order\":[0,3,3]"));
  const auto plain = ReadCanonical(Path("ct"));
  const auto plane = static_cast<std::size_t>(plain->size.y * plain->size.x);
  const std::vector<std::byte> voxels = Voxels(Stores()[0]);
  const auto* made = reinterpret_cast<const std::int16_t*>(voxels.data());
  ASSERT_EQ(voxels.size(), 2 * plain->voxels.size());
  std::size_t differ = 0;
  for (std::size_t i = 0; i < voxels.size() / 2; ++i) {
    differ += ValueOf(*plain, i / plane / 2 * plane + i % plane) != made[i] ? 1 : 0;
  }
  EXPECT_EQ(differ, 0u);
}

/// A float NRRD of 2 x 3 x 4 voxels 0.5, 1.5, ... but for the first of `others`.
void WriteFloats(const std::string& path, const std::vector<float>& others) {
  std::vector<float> values;
  for (int i = 0; i < 24; ++i) values.push_back(static_cast<float>(i) + 0.5f);
  std::copy(others.begin(), others.end(), values.begin() + 5);
  std::string text =
      "NRRD0004\ntype: float\ndimension: 3\nsizes: 4 3 2\nspace: left-posterior-superior\n"
      "space directions: (1,0,0) (0,1,0) (0,0,1)\nspace origin: (0,0,0)\nendian: little\n"
      "encoding: raw\n\n";
  text.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  ASSERT_TRUE(WriteFileDurably(Folders::OfThisUser(), path, AsBytes(text)).ok());
}

TEST_F(VolumeIngest, NanAndInfinityAreCountedAndNotStored) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  WriteFloats(Path("odd.nrrd"), {nan, -infinity, 7, nan});
  WriteFloats(Path("plain.nrrd"), {});
  const JobRunner refused = Ingest({"odd.nrrd", "plain.nrrd"});
  ASSERT_EQ(refused.Failures().size(), 1u);
  EXPECT_THAT(std::string(refused.Failures()[0].message()),
              HasSubstr("2 NaN and 1 infinite of 24 voxels, the first at (z, y, x) = (0, 1, 1): "
                        "--nan VALUE"));
  ASSERT_EQ(Stores().size(), 1u);
  EXPECT_FALSE(Attributes(Stores()[0]).contains("warnings"));
  const std::string plain = Stores()[0];
  const JobRunner taken = Ingest({"odd.nrrd"}, {{"nan", -1024.25}});
  ASSERT_THAT(taken.Failures(), testing::IsEmpty());
  const std::string store = Stores()[0] == plain ? Stores()[1] : Stores()[0];
  const std::vector<std::byte> bytes = Voxels(store);
  const auto* values = reinterpret_cast<const float*>(bytes.data());
  for (int i = 0; i < 24; ++i) {
    const bool is_odd = i == 5 || i == 6 || i == 8;
    EXPECT_EQ(values[i], is_odd ? -1024.25f : i == 7 ? 7.0f : static_cast<float>(i) + 0.5f) << i;
  }
  const Json said = Attributes(store);
  EXPECT_EQ(said["warnings"], Json({"2 NaN and 1 infinite of 24 voxels are -1024.25 here"}));
  EXPECT_EQ(said["codec_plan"]["nan"], -1024.25);
  EXPECT_THAT(DumpJson(said["transform_log"]), HasSubstr("\"infinite_voxels\":1,\"nan_voxels\":2"));
  for (const Json& value : {Json(2e6), Json("x")}) {
    EXPECT_FALSE(Ingest({"plain.nrrd"}, {{"nan", value}}).Failures().empty());
  }
}

// Every attribute that takes text gets an identifier: a superset of the confidentiality profile.
constexpr std::pair<unsigned, unsigned> kNeeded[] = {
    {0x0008, 0x0008}, {0x0008, 0x0016}, {0x0008, 0x0060}, {0x0008, 0x0070}, {0x0008, 0x1090},
    {0x0018, 0x0015}, {0x0018, 0x1210}, {0x0018, 0x5100}, {0x0020, 0x0032}, {0x0020, 0x0037},
    {0x0028, 0x0004}, {0x0028, 0x0008}, {0x0028, 0x0030}, {0x0028, 0x0301}, {0x0028, 0x1052},
    {0x0028, 0x1053}, {0x0028, 0x1054}, {0x0018, 0x0050}, {0x0018, 0x0060}, {0x0018, 0x0088},
    {0x0018, 0x0090}, {0x0018, 0x1100}, {0x0018, 0x1120}, {0x0018, 0x1151}, {0x0008, 0x0005}};

const char* PlantOf(DcmEVR vr) {
  switch (vr) {
    case EVR_UI:
      return "1.2.74471.99.74471";
    case EVR_DA:
      return "19320417";
    case EVR_AS:
      return "093Y";
    case EVR_TM:
      return "074471.74471";
    case EVR_DT:
      return "19320417074471";
    case EVR_DS:
    case EVR_IS:
      return "74471";
    case EVR_AE:
    case EVR_CS:
    case EVR_LO:
    case EVR_LT:
    case EVR_PN:
    case EVR_SH:
    case EVR_ST:
    case EVR_UC:
    case EVR_UT:
    case EVR_UR:
      return "PLANTED74471";
    default:
      return nullptr;
  }
}

/// How many attributes were given an identifier.
int Plant(const std::string& path) {
  DcmFileFormat format;
  if (format.loadFile(OFFilename(path.c_str())).bad()) return 0;
  DcmDataset& item = *format.getDataset();
  std::vector<std::pair<DcmTagKey, DcmEVR>> tags;  // inserting takes the dictionary's lock itself
  DcmDataDictionary& dictionary = dcmDataDict.wrlock();
  for (auto it = dictionary.normalBegin(); it != dictionary.normalEnd(); ++it) {
    tags.emplace_back((*it)->getKey(), (*it)->getEVR());
  }
  dcmDataDict.wrunlock();
  int planted = 0;
  for (const auto& [key, vr] : tags) {
    const std::pair<unsigned, unsigned> tag(key.getGroup(), key.getElement());
    const bool is_needed =
        std::find(std::begin(kNeeded), std::end(kNeeded), tag) != std::end(kNeeded);
    const char* plant = PlantOf(vr);
    if (is_needed || plant == nullptr || tag.first < 8 || tag.first % 2 == 1) continue;
    if (item.putAndInsertString(DcmTag(key, DcmVR(vr)), plant).good()) ++planted;
  }
  item.putAndInsertString(DcmTag(0x0009, 0x0010, DcmVR(EVR_LO)), "PLANTED74471");
  return format.saveFile(OFFilename(path.c_str()), EXS_LittleEndianExplicit).good() ? planted : 0;
}

void ExpectNothingPlanted(const std::string& text, const std::string& where) {
  for (const char* plant : {"74471", "PLANTED", "19320417", "093Y"}) {
    EXPECT_EQ(text.find(plant), std::string::npos) << where << " says " << plant;
  }
}

TEST_F(VolumeIngest, NoPlantedIdentifierIsFoundAnywhere) {
  MakeSeries("whole");
  MakeSeries("bad", "tilt", 2);
  for (const char* name : {"whole", "bad"}) {
    for (const auto& entry : std::filesystem::directory_iterator(Path(name))) {
      ASSERT_GT(Plant(entry.path().string()), 1500) << entry.path();
    }
  }
  const JobRunner scheduler = Ingest({"bad", "whole"});
  ASSERT_EQ(scheduler.Failures().size(), 1u);
  ExpectNothingPlanted(std::string(scheduler.Failures()[0].message()), "the error");
  for (const char* op : {"ingest.plan", "ingest.open", "ingest.volume", "ingest.summary"}) {
    ExpectNothingPlanted(DumpJson(scheduler.ResultOf(op)), op);
  }
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(out_)) {
    const std::string path = entry.path().string();
    if (!entry.is_regular_file() || path.find(".zarr/") == std::string::npos) continue;
    const auto text = ReadFile(Folders::OfThisUser(), path, 1u << 24);
    ASSERT_TRUE(text.ok());
    ExpectNothingPlanted(*text, path);
    ++files;
  }
  EXPECT_GE(files, 3);
  // Only the owner may read the tables that name source files, and so the series.
  for (const char* name : {"manifest.csv", "verdicts.csv"}) {
    struct stat st {};
    ASSERT_EQ(stat(StrCat(out_, "/", name).c_str(), &st), 0) << name;
    EXPECT_EQ(st.st_mode & 0777, 0600u) << name;
  }
}

}  // namespace
}  // namespace patchbay::workers
