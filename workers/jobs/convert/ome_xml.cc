#include "workers/jobs/convert/ome_xml.h"

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

/// Schema 2016-06 calls float32 `float`.
std::string_view TypeOf(DType dtype) { return dtype == DType::kFloat32 ? "float" : NameOf(dtype); }

std::string PhysicalSizes(const Spacing& spacing) {
  std::string sizes;
  for (const auto& [axis, one] :
       {std::pair("X", spacing.x), std::pair("Y", spacing.y), std::pair("Z", spacing.z)}) {
    if (!one) continue;
    sizes += StrCat(" PhysicalSize", axis, "=\"", DumpJson(Json(one->Micrometres())),
                    "\" PhysicalSize", axis, "Unit=\"\u00B5m\"");
  }
  return sizes;
}

std::string ChannelsOf(int channels, bool planar) {
  if (!planar) return StrCat("<Channel ID=\"Channel:0:0\" SamplesPerPixel=\"", channels, "\"/>");
  std::string text;
  for (int c = 0; c < channels; ++c) {
    text += StrCat("<Channel ID=\"Channel:0:", c, "\" SamplesPerPixel=\"1\"/>");
  }
  return text;
}

}  // namespace

std::string OmeXmlOf(const Conversion& from, std::string_view creator, bool planar) {
  const zarr::ImageStoreSettings& store = from.store.settings;
  const Extent& size = from.store.levels.front().size;
  return StrCat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?><OME "
      "xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\" "
      "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
      "xsi:schemaLocation=\"http://www.openmicroscopy.org/Schemas/OME/2016-06 "
      "http://www.openmicroscopy.org/Schemas/OME/2016-06/ome.xsd\" Creator=\"",
      creator, "\"><Image ID=\"Image:0\"><Pixels ID=\"Pixels:0\" DimensionOrder=\"",
      planar ? "XYZCT" : "XYCZT", "\" SizeX=\"", size.x, "\" SizeY=\"", size.y, "\" SizeZ=\"",
      size.z, "\" SizeC=\"", store.channels, "\" SizeT=\"1\" Type=\"", TypeOf(store.dtype), "\"",
      PhysicalSizes(from.layout.spacing), planar ? "" : " Interleaved=\"true\"", ">",
      ChannelsOf(store.channels, planar),
      planar ? "<MetadataOnly/>" : "<TiffData IFD=\"0\" PlaneCount=\"1\"/>",
      "</Pixels></Image></OME>");
}

}  // namespace patchbay::workers
