// Metadata of a label set as it is read, and the refusal of metadata that says less.
#include "runtime/format/zarr/label_sets.h"

#include "tests/runtime/format/zarr/zarr_fixture.h"

namespace patchbay::zarr {
namespace {

constexpr const char* kRevision = "drawn.0123456789abcdef";

/// A store whose one set has a document with `patchbay` in it.
StatusOr<OpenedLabelSet> Opened(const Json& patchbay) {
  const TempFolder store;
  const auto group = [&](const std::string& folder, const Json& attributes) {
    const Json document = {{"zarr_format", 3}, {"node_type", "group"}, {"attributes", attributes}};
    WriteText(store / (folder + "/zarr.json"), document.dump());
  };
  group("labels", {{"ome", {{"labels", {kRevision}}}}});
  group(std::string("labels/") + kRevision, {{"patchbay", patchbay}});
  return OpenLabelSet(Folders::OfThisUser(), store.path(), "drawn");
}

TEST(LabelSets, HaveTheAttributesOfTheirDocument) {
  const Json labels = {{"classes", {"benign", "tumour"}}};
  const auto set = Opened({{"digest", std::string(64, 'a')}, {"labels", labels}});
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->attributes, labels);
  EXPECT_EQ(set->digest.Hex(), std::string(64, 'a'));
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
