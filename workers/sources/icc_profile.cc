#include "workers/sources/icc_profile.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lcms2.h>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

struct CloseContext {
  void operator()(cmsContext context) const { cmsDeleteContext(context); }
};
struct CloseProfile {
  void operator()(void* profile) const { cmsCloseProfile(profile); }
};
struct CloseTransform {
  void operator()(void* transform) const { cmsDeleteTransform(transform); }
};
using Context = std::unique_ptr<std::remove_pointer_t<cmsContext>, CloseContext>;
using Profile = std::unique_ptr<void, CloseProfile>;
using Transform = std::unique_ptr<void, CloseTransform>;

constexpr std::uint16_t kTiffByte = 1, kTiffUndefined = 7;

Status Unusable(std::string_view cause) { return InvalidArgument("read ICC profile: ", cause); }

/// Drops the library's messages, which may hold texts of the profile.
void KeepQuiet(cmsContext, cmsUInt32Number, const char*) {}

StatusOr<Context> QuietContext() {
  Context context(cmsCreateContext(nullptr, nullptr));
  if (context == nullptr) return ResourceExhausted("ICC profile: no memory");
  cmsSetLogErrorHandlerTHR(context.get(), KeepQuiet);
  return context;
}

/// A scanner's profile describes the appearance of its colours. Other kinds (printers, links, named
/// colours) do not describe a picture.
bool DescribesPictures(cmsHPROFILE profile) {
  switch (cmsGetDeviceClass(profile)) {
    case cmsSigInputClass:
    case cmsSigDisplayClass:
    case cmsSigColorSpaceClass:
      return true;
    default:
      return false;
  }
}

/// The device colours of every node, 0 to 1, blue fastest.
std::vector<float> Nodes() {
  std::vector<float> nodes;
  nodes.reserve(3 * ops::kIccNodes);
  const auto at = [](int i) { return static_cast<float>(i) / (ops::kIccGrid - 1); };
  for (int r = 0; r < ops::kIccGrid; ++r) {
    for (int g = 0; g < ops::kIccGrid; ++g) {
      for (int b = 0; b < ops::kIccGrid; ++b) nodes.insert(nodes.end(), {at(r), at(g), at(b)});
    }
  }
  return nodes;
}

}  // namespace

StatusOr<ops::IccLookup> LookupOfIccProfile(std::string_view profile) {
  if (profile.size() > kMaxIccProfileBytes) {
    return Unusable(StrCat(profile.size(), " bytes, at most ", kMaxIccProfileBytes));
  }
  PB_ASSIGN_OR_RETURN(const Context context, QuietContext());
  const Profile from(cmsOpenProfileFromMemTHR(context.get(), profile.data(),
                                              static_cast<cmsUInt32Number>(profile.size())));
  if (from == nullptr) return Unusable("not a profile");
  if (cmsGetColorSpace(from.get()) != cmsSigRgbData) return Unusable("not of RGB");
  if (!DescribesPictures(from.get())) return Unusable("not of a scanner, display or colour space");
  const Profile to(cmsCreate_sRGBProfileTHR(context.get()));
  // In floating point the library does not clip to the gamut of sRGB.
  const Transform transform(cmsCreateTransformTHR(context.get(), from.get(), TYPE_RGB_FLT, to.get(),
                                                  TYPE_RGB_FLT, INTENT_RELATIVE_COLORIMETRIC,
                                                  cmsFLAGS_NOOPTIMIZE | cmsFLAGS_NOCACHE));
  if (transform == nullptr) return Unusable("it does not lead to sRGB");
  const std::vector<float> nodes = Nodes();
  std::vector<float> shown(nodes.size());
  cmsDoTransform(transform.get(), nodes.data(), shown.data(),
                 static_cast<cmsUInt32Number>(ops::kIccNodes));
  std::vector<double> levels(shown.begin(), shown.end());
  for (double& level : levels) level *= 255;
  auto lookup = ops::IccLookup::FromLevels(levels);
  return lookup.ok() ? std::move(lookup) : Unusable("it does not lead to sRGB");
}

namespace {

/// Lab of version 4 in 16 bits, node after node.
StatusOr<std::vector<cmsUInt16Number>> LabOf(cmsContext context, const ops::IccLookup& lookup) {
  const Profile from(cmsCreate_sRGBProfileTHR(context));
  const Profile to(cmsCreateLab4ProfileTHR(context, nullptr));
  const Transform transform(cmsCreateTransformTHR(context, from.get(), TYPE_RGB_FLT, to.get(),
                                                  TYPE_Lab_FLT, INTENT_RELATIVE_COLORIMETRIC,
                                                  cmsFLAGS_NOOPTIMIZE | cmsFLAGS_NOCACHE));
  if (transform == nullptr) return ResourceExhausted("write ICC profile: no memory");
  std::vector<float> levels;
  for (const ops::IccNode& node : lookup.nodes()) {
    for (int c = 0; c < 3; ++c) levels.push_back(node.level[c] / 255);
  }
  std::vector<float> colours(levels.size());
  cmsDoTransform(transform.get(), levels.data(), colours.data(),
                 static_cast<cmsUInt32Number>(ops::kIccNodes));
  std::vector<cmsUInt16Number> encoded;
  for (std::size_t i = 0; i < colours.size(); ++i) {
    const double value = i % 3 == 0 ? colours[i] * 655.35 : (colours[i] + 128) * 257;
    encoded.push_back(static_cast<cmsUInt16Number>(std::lround(std::clamp(value, 0.0, 65535.0))));
  }
  return encoded;
}

/// Puts the tags into a profile of a scanner.
bool WriteTags(cmsContext context, cmsHPROFILE profile,
               const std::vector<cmsUInt16Number>& colours) {
  cmsSetProfileVersion(profile, 4.3);
  cmsSetDeviceClass(profile, cmsSigInputClass);
  cmsSetColorSpace(profile, cmsSigRgbData);
  cmsSetPCS(profile, cmsSigLabData);
  cmsSetHeaderRenderingIntent(profile, INTENT_RELATIVE_COLORIMETRIC);
  cmsPipeline* const pipeline = cmsPipelineAlloc(context, 3, 3);
  cmsMLU* const text = cmsMLUalloc(context, 1);
  const auto add = [&](cmsStage* stage) {
    return stage != nullptr && cmsPipelineInsertStage(pipeline, cmsAT_END, stage) != FALSE;
  };
  const bool done = pipeline != nullptr && text != nullptr &&
                    add(cmsStageAllocToneCurves(context, 3, nullptr)) &&
                    add(cmsStageAllocCLut16bit(context, ops::kIccGrid, 3, 3, colours.data())) &&
                    add(cmsStageAllocToneCurves(context, 3, nullptr)) &&
                    cmsMLUsetASCII(text, "en", "US", "Patchbay") != FALSE &&
                    cmsWriteTag(profile, cmsSigProfileDescriptionTag, text) != FALSE &&
                    cmsWriteTag(profile, cmsSigCopyrightTag, text) != FALSE &&
                    cmsWriteTag(profile, cmsSigMediaWhitePointTag, cmsD50_XYZ()) != FALSE &&
                    cmsWriteTag(profile, cmsSigAToB0Tag, pipeline) != FALSE;
  cmsPipelineFree(pipeline);
  cmsMLUfree(text);
  return done;
}

}  // namespace

StatusOr<std::string> IccProfileOf(const ops::IccLookup& lookup) {
  constexpr std::size_t kDateAt = 24, kDateBytes = 12;  // creation date in the header
  PB_ASSIGN_OR_RETURN(const Context context, QuietContext());
  PB_ASSIGN_OR_RETURN(const auto colours, LabOf(context.get(), lookup));
  const Profile profile(cmsCreateProfilePlaceholder(context.get()));
  std::string bytes;
  cmsUInt32Number size = 0;
  if (profile == nullptr || !WriteTags(context.get(), profile.get(), colours) ||
      cmsSaveProfileToMem(profile.get(), nullptr, &size) == FALSE) {
    return ResourceExhausted("write ICC profile: no memory");
  }
  bytes.resize(size);
  if (cmsSaveProfileToMem(profile.get(), bytes.data(), &size) == FALSE) {
    return ResourceExhausted("write ICC profile: no memory");
  }
  bytes.replace(kDateAt, kDateBytes, kDateBytes, '\0');
  return bytes;
}

StatusOr<SharedLookup> LookupOfTiff(const zarr::StoredBytes& file, const TiffDirectory& directory) {
  if (!directory.icc_profile) return nullptr;
  const TiffEntry& entry = *directory.icc_profile;
  if (entry.type != kTiffByte && entry.type != kTiffUndefined) return Unusable("not bytes");
  if (entry.count > kMaxIccProfileBytes) {
    return Unusable(StrCat(entry.count, " bytes, at most ", kMaxIccProfileBytes));
  }
  if (entry.offset > file.size_bytes() || entry.count > file.size_bytes() - entry.offset) {
    return Unusable("it lies past the end of the file");
  }
  std::string profile(entry.count, '\0');
  PB_RETURN_IF_ERROR(file.Read(entry.offset, std::as_writable_bytes(std::span(profile)), "slide"));
  PB_ASSIGN_OR_RETURN(ops::IccLookup lookup, LookupOfIccProfile(profile));
  return std::make_shared<const ops::IccLookup>(std::move(lookup));
}

}  // namespace patchbay::workers
