#include "runtime/model/jobs/label_options.h"

namespace patchbay {

std::vector<Option> LabelsImportOptions::Options() {
  return {{.name = "--set",
           .value = "NAME",
           .help = "the label set: one for each reader and purpose",
           .target = &set,
           .required = true,
           .always = true},
          {.name = "--origin",
           .help = "(0, 0) is the slide's corner or its scanned area's",
           .target = &origin,
           .choices = {"auto", "slide", "bounds"}},
          {.name = "--clip",
           .help = "take masks that reach beyond a volume, however far; warned of",
           .target = &clip},
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
       .choices = {"clam", "tiatoolbox", "histolab"},
       .always = true}};
}

std::vector<Option> LabelsExportOptions::Options() {
  return {{.name = "--set",
           .value = "NAME",
           .help = "the label set",
           .target = &set,
           .required = true,
           .always = true},
          {.name = "--to",
           .help = "outlines or a mask of the slide's size",
           .target = &to,
           .choices = {"geojson", "tiff"}},
          {.name = "--origin",
           .help = "corner that is (0, 0), as for `labels import`",
           .target = &origin,
           .choices = {"slide", "bounds"}}};
}

std::vector<Option> LabelsPruneOptions::Options() {
  return {{.name = "--set",
           .value = "NAME",
           .help = "only revisions of this label set",
           .target = &set},
          {.name = "--dry-run", .help = "show what would be removed", .target = &dry_run}};
}

}  // namespace patchbay
