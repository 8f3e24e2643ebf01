// Metadata of a label set as it is read, and the refusal of metadata that says less.
#include "runtime/format/zarr/label_sets.h"

#include "tests/runtime/format/zarr/zarr_fixture.h"

namespace patchbay::zarr {
namespace {

constexpr const char* kRevision = "drawn.0123456789abcdef";

const Json kSeries = {{"multiscales", Json::array()}};

/// A store whose one set has a document with `patchbay` in it.
StatusOr<OpenedLabelSet> Opened(const Json& patchbay, const char* node_type = "group") {
  const TempFolder store;
  const auto write = [&](const std::string& folder, const char* type, const Json& attributes) {
    const Json document = {{"zarr_format", 3}, {"node_type", type}, {"attributes", attributes}};
    WriteText(store / (folder + "/zarr.json"), document.dump());
  };
  write("labels", "group", {{"ome", {{"labels", {kRevision}}}}});
  write(std::string("labels/") + kRevision, node_type, {{"patchbay", patchbay}, {"ome", kSeries}});
  return OpenLabelSet(Folders::OfThisUser(), store.path(), "drawn");
}

TEST(LabelSets, HaveTheAttributesOfTheirDocument) {
  const Json labels = {{"classes", {"benign", "tumour"}}};
  const auto set = Opened({{"digest", std::string(64, 'a')}, {"labels", labels}});
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->attributes, labels);
  EXPECT_EQ(set->digest.Hex(), std::string(64, 'a'));
}

TEST(LabelSets, HaveTheRootThatTheirImageIsOpenedBy) {
  const auto set = Opened({{"digest", std::string(64, 'a')}, {"labels", Json::object()}});
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->root.zarr_format, 3);
  EXPECT_EQ(set->root.attributes["ome"], kSeries);
}

TEST(LabelSets, AreRefusedWhereTheyAreNoGroup) {
  const auto set = Opened({{"digest", std::string(64, 'a')}, {"labels", Json::object()}}, "array");
  EXPECT_TRUE(absl::IsInvalidArgument(set.status())) << set.status();
}

TEST(LabelSets, AreRefusedWithoutWhatTheirDocumentMustHave) {
  const std::string digest(64, 'a');
  for (const Json& patchbay :
       {Json({{"digest", digest}}), Json({{"labels", Json::object()}}), Json("text")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Opened(patchbay).status())) << patchbay;
  }
}

}  // namespace
}  // namespace patchbay::zarr
