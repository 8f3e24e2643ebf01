#include "runtime/model/jobs/label_options.h"

#include <algorithm>
#include <utility>

#include "runtime/model/jobs/label_formats.h"
#include "runtime/model/jobs/tissue_options.h"
#include "runtime/model/results/label_agreement.h"

namespace patchbay {

std::vector<Option> LabelsImportOptions::Options() {
  return {
      {.name = "--set",
       .value = "NAME",
       .help = "the label set: one for each reader and purpose",
       .target = &set,
       .required = true,
       .always = true},
      {.name = "--origin",
       .help = "(0, 0) is the slide's corner or its scanned area's",
       .target = &origin,
       .choices = {"auto", "slide", "bounds"}},
      {.name = "--class-from",
       .value = "PROPERTY",
       .help = "property of GeoJSON with the class",
       .target = &class_from,
       .otherwise = "the classification"},
      {.name = "--clip", .help = "accept masks beyond the volume, with a warning", .target = &clip},
      {.name = "--dry-run",
       .help = "write nothing; show the area of each class",
       .target = &dry_run}};
}

std::vector<Option> LabelsTissueOptions::Options() {
  return {
      {.name = "--set", .value = "NAME", .help = "the label set", .target = &set, .always = true},
      {.name = "--profile",
       .help = "how to separate tissue from background",
       .target = &profile,
       .choices = TissueProfiles(),
       .always = true},
      {.name = "--option",
       .value = "KEY=VALUE",
       .help = "a setting in place of the profile's, such as closing=40",
       .target = &options}};
}

Status LabelsTissueOptions::Check() const { return ParseTissueOptions(options).status(); }

std::vector<Option> LabelsMajorityOptions::Options() {
  return {{.name = "--set",
           .value = "NAME",
           .help = "the label set to make",
           .target = &set,
           .required = true,
           .always = true},
          {.name = "--ties",
           .help = "a tie is ignored, or goes to the first set named",
           .target = &ties,
           .choices = {"ignore", "first"},
           .always = true},
          {.name = "--min-votes",
           .value = "N",
           .help = "votes that a class needs, else ignored",
           .target = &min_votes,
           .min = 1,
           .max = static_cast<double>(results::kMaxComparedSets)}};
}

std::vector<Option> LabelsCompareOptions::Options() {
  return {{.name = "--level",
           .value = "N",
           .help = "store level to compare, 0 = finest",
           .target = &level,
           .min = 0,
           .max = 31}};
}

std::vector<Option> LabelsExportOptions::Options() {
  std::vector<std::string> names;
  for (const LabelFormat& format : LabelFormats()) names.emplace_back(format.name);
  return {{.name = "--set",
           .value = "NAME",
           .help = "the label set of a store",
           .target = &set,
           .always = true},
          {.name = "--to",
           .help = "format of the file",
           .target = &to,
           .choices = std::move(names),
           .otherwise = "that of its ending"},
          {.name = "--origin",
           .help = "corner that is (0, 0), as for `labels import`",
           .target = &origin,
           .choices = {"slide", "bounds"}},
          {.name = "--smooth",
           .value = "UM",
           .help = "straighten outlines, by no more than that",
           .target = &smooth,
           .min = 0.01,
           .max = 1000,
           .unit = "um"},
          {.name = "--min-area",
           .value = "UM2",
           .help = "leave out smaller outlines and holes",
           .target = &min_area,
           .min = 0,
           .max = 1e9,
           .unit = "um2"},
          {.name = "--level",
           .value = "N",
           .help = "store level to write",
           .target = &level,
           .min = 0,
           .max = 31,
           .otherwise = "the slide's size"}};
}

Status LabelsExportOptions::Check() const {
  const LabelFormat* own = FindLabelFormat(to);
  if (own == nullptr) return InvalidArgument("--to: no format");
  const Json given = PayloadOf(*this);
  for (const LabelFormat& format : LabelFormats()) {
    for (const std::string_view option : format.options) {
      const std::string key = Option{.name = std::string(option)}.Key();
      const auto& taken = own->options;
      if (!given.contains(key) || std::find(taken.begin(), taken.end(), option) != taken.end()) {
        continue;
      }
      return InvalidArgument(option, ": an option of ", format.name, ", and the format is ", to);
    }
  }
  return absl::OkStatus();
}

std::vector<Option> LabelsPruneOptions::Options() {
  return {{.name = "--set",
           .value = "NAME",
           .help = "only revisions of this label set",
           .target = &set},
          {.name = "--dry-run", .help = "show what would be removed", .target = &dry_run}};
}

std::vector<Option> LabelsDeleteOptions::Options() {
  return {{.name = "--set",
           .value = "NAME",
           .help = "the label set",
           .target = &set,
           .required = true,
           .always = true},
          {.name = "--dry-run", .help = "show what would be removed", .target = &dry_run}};
}

}  // namespace patchbay
