// Label sets of slides and volumes on slow storage: every form that is read, out again, and pruned.
#include <cstring>
#include <utility>

#include "runtime/format/zarr/image_store.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/model/jobs/job_manifest.h"
#include "tests/workers/jobs/slow_storage/slow_job.h"
#include "workers/jobs/synth/synth.h"
#include "workers/sources/volumes/patient_axes.h"

namespace patchbay::workers {
namespace {

constexpr char kGeoJson[] =
    R"({"type":"Feature","geometry":{"type":"Polygon","coordinates":[[[0,0],[30000,0],[30000,90],)"
    R"([0,50],[0,0]]]},"properties":{"classification":{"name":"tumour"}}})";
constexpr char kAsap[] =
    R"(<ASAP_Annotations><Annotations><Annotation Name="a" Type="Polygon" PartOfGroup="tumour">)"
    R"(<Coordinates><Coordinate Order="0" X="0" Y="0"/><Coordinate Order="1" X="99" Y="0"/>)"
    R"(<Coordinate Order="2" X="0" Y="99"/></Coordinates></Annotation></Annotations>)"
    R"(</ASAP_Annotations>)";
constexpr char kImageScope[] =
    R"(<Annotations><Annotation Id="1" Name="tumour"><Regions><Region Id="1" Type="0"><Vertices>)"
    R"(<Vertex X="0" Y="0"/><Vertex X="80" Y="0"/><Vertex X="0" Y="80"/></Vertices></Region>)"
    R"(</Regions></Annotation></Annotations>)";

class SlowLabels : public SlowJob {
 protected:
  static Json Payload() {
    const Json classes = {{"classes",
                           {{{"name", "background"}, {"value", 0}},
                            {{"name", "tumour"}, {"value", 1}},
                            {{"name", "polyp"}, {"value", 2}}}},
                          {"exhaustive", true},
                          {"background", "background"}};
    return {{"set", "areas"},
            {"classes", classes},
            {"clip", false},
            {"dry_run", false},
            {"origin", "auto"}};
  }
  void Import(const std::vector<std::string>& stores, const std::vector<std::string>& files) {
    JobManifest manifest;
    for (std::size_t i = 0; i < stores.size(); ++i) {
      manifest.label_rows.push_back({stores[i], files[i]});
    }
    Json payload = Payload();
    Run("labels.plan", payload, JsonOf(manifest));
    payload["dry_run"] = true;
    Run("labels.plan", payload, JsonOf(manifest));
  }
  std::string Form(const std::string& name, const std::string& text) const {
    Write(name, text);
    return Path(name);
  }

  /// A store of so many pixels, without ever having been a slide.
  std::string MakeStore(const std::string& name, const Extent& size) const {
    zarr::ImageStoreSpec spec;
    spec.settings.chunk = Flat(512, 512);
    spec.settings.shard = Flat(1024, 1024);
    spec.levels = {size};
    std::vector<zarr::ShardRecord> records;
    const Extent grid = zarr::ShardGridOf(spec.settings, size);
    for (std::int64_t i = 0; i < grid.Pixels(); ++i) {
      const auto shard = zarr::EncodeShard(
          spec.settings, size, {0, CellAt(grid, i)}, [](const Point&, const TensorView& out) {
            for (std::int64_t y = 0; y < out.shape[1]; ++y) {
              std::memset(out.data + y * out.stride_bytes[1], 255,
                          static_cast<std::size_t>(out.shape[2] * out.stride_bytes[2]));
            }
            return absl::OkStatus();
          });
      EXPECT_TRUE(shard.ok()) << shard.status();
      EXPECT_TRUE(zarr::WriteShardFile(Folders::OfThisUser(), Path(name), *shard).ok());
      records.push_back(shard->record);
    }
    const auto roots = zarr::CombineRoots(spec, records);
    EXPECT_TRUE(roots.ok() &&
                zarr::WriteStoreMetadata(Folders::OfThisUser(), Path(name), spec, *roots).ok());
    return Path(name);
  }
};

TEST_F(SlowLabels, OfSlidesKeepTheirLeases) {
  const std::string wide = MakeStore("wide.ome.zarr", Flat(100, 30'000));
  Import({wide}, {Form("a.geojson", kGeoJson)});
  Run("labels.export", {{"set", "areas"}, {"to", "tiff"}},
      {{"images", {wide}}, {"out", Path("a.tif")}});
  Import({wide}, {Path("a.tif")});
  Run("labels.export", {{"set", "areas"}, {"to", "geojson"}, {"origin", "bounds"}},
      {{"images", {wide}}, {"out", Path("b.geojson")}});

  const std::string small = MakeStore("s.ome.zarr", Flat(300, 300));
  Import({small}, {Form("a.xml", kAsap)});
  Import({small}, {Form("b.xml", kImageScope)});
  Json other = Payload();
  other["set"] = "areas@second";
  Run("labels.plan", other, JsonOf(JobManifest{.label_rows = {{small, Path("a.xml")}}}));
  const Json both = {"areas", "areas@second"};
  Run("labels.compare", {{"sets", both}}, {{"images", {small}}});
  Run("labels.plan", {{"set", "majority"}, {"ties", "ignore"}, {"sets", both}},
      JsonOf(JobManifest{.label_rows = {{small}}}));
  const Json tissue = {{"set", "tissue"}, {"profile", "clam"}};
  Run("labels.plan", tissue, JsonOf(JobManifest{.label_rows = {{small}}}));
  const std::vector<std::string> many = Copies(small);
  Run("labels.prune", {{"set", ""}, {"dry_run", true}},
      {{"images", many}, {"kept", Json::array()}});
  Run("labels.prune", {{"set", ""}, {"dry_run", false}},
      {{"images", many}, {"kept", Json::array()}});
  EXPECT_EQ(zarr::ListLabelFolders(Folders::OfThisUser(), many[0])->revisions.size(), 4u)
      << "ASAP's went";
  Run("labels.delete", {{"set", "areas"}, {"dry_run", true}},
      {{"images", many}, {"kept", Json::array()}});
  Run("labels.delete", {{"set", "areas"}, {"dry_run", false}},
      {{"images", many}, {"kept", Json::array()}});
  EXPECT_EQ(zarr::ListLabelFolders(Folders::OfThisUser(), many[0])->revisions.size(), 3u)
      << "the others stay";
  ExpectLeasesHold(kLabelOps);
}

/// The headers of text formats for a mask on the store's own grid.
std::string MetaImage(const Extent& size, const Vec3& origin, const std::string& voxels) {
  return StrCat(
      "ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = False\n",
      "CompressedData = False\nTransformMatrix = 1 0 0 0 1 0 0 0 1\nOffset = ", origin.x, " ",
      origin.y, " ", origin.z, "\nElementSpacing = 0.78125 0.78125 2.5\nDimSize = ", size.x, " ",
      size.y, " ", size.z, "\nElementType = MET_UCHAR\nElementDataFile = LOCAL\n", voxels);
}
std::string Nrrd(const Extent& size, const Vec3& origin, const std::string& more,
                 const std::string& voxels) {
  return StrCat("NRRD0004\ntype: uchar\ndimension: 3\nspace: left-posterior-superior\nsizes: ",
                size.x, " ", size.y, " ", size.z,
                "\nspace directions: (0.78125,0,0) (0,0.78125,0) (0,0,2.5)\nkinds: domain domain "
                "domain\nencoding: raw\nspace origin: (",
                origin.x, ",", origin.y, ",", origin.z, ")\n", more, "\n", voxels);
}

TEST_F(SlowLabels, OfVolumesKeepTheirLeases) {
  SynthCtOptions options;
  options.size = {24, 48, 48};
  options.lesions = Path("lesions.nii");
  const auto made = SynthCt(Folders::OfThisUser(), Path("ct"), options);
  ASSERT_TRUE(made.ok()) << made.status();
  settings_["volume_chunk"] = 32;
  JobRunner ingest(Manifest({"ct"}), 1);
  ingest.Submit("ingest.plan", settings_);
  ingest.Run();
  const std::string store = Store();
  const auto text = ReadFile(Folders::OfThisUser(), store + "/zarr.json", 1u << 24);
  const Json root = *ParseJson(*text, "store");
  const Json& affine = root["attributes"]["patchbay"]["affine_lps"];
  const Vec3 origin{affine[0][3], affine[1][3], affine[2][3]};
  std::string voxels(static_cast<std::size_t>(options.size.Pixels()), '\0');
  for (std::size_t i = 9'000; i < 9'040; ++i) voxels[i] = '\1';
  const std::string segment =
      "Segment0_ID:=Segment_1\nSegment0_Name:=tumour\nSegment0_LabelValue:=1\nSegment0_Layer:=0\n";
  for (const std::string& file :
       {options.lesions, Form("a.mha", MetaImage(options.size, origin, voxels)),
        Form("a.nrrd", Nrrd(options.size, origin, "", voxels)),
        Form("a.seg.nrrd", Nrrd(options.size, origin, segment, voxels))}) {
    SCOPED_TRACE(file);
    Import({store}, {file});
  }
  ExpectLeasesHold({"labels.plan", "labels.import"});
}

}  // namespace
}  // namespace patchbay::workers
