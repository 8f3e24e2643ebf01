// The report of an ingest at its end: its stores, their sizes, its failures with their reasons.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/cli/jobs/failed_sources.h"
#include "runtime/cli/terminal.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/wire/protocol/messages.h"

namespace patchbay::cli {

struct IngestedStore {
  std::string name, source;
  std::uint64_t source_bytes = 0, stored_bytes = 0;
  std::string digest, pixel_digest;
  bool already_there = false;
  std::vector<std::string> copies;    ///< further sources of the same content
  std::vector<std::string> warnings;  ///< of its voxels, as the store holds them
};

struct IngestReport : SlideReport {
  std::vector<IngestedStore> stores;  ///< each once
  std::size_t without_tissue = 0;     ///< of `failed`: slides that have a store
  Json passed_over = Json::object();  ///< kind -> files in the folders that are not sources
  bool has_pseudonyms = false;        ///< the stores are named by this home's key
};

/// From the job's last row and the result of its summary task. `sources` are the files in the order
/// of the job's slide numbers; a slide beyond them is called by its number.
StatusOr<IngestReport> MakeIngestReport(const protocol::JobRow& job, const Json& summary,
                                        const std::vector<std::string>& sources);

Json ToJson(const IngestReport& report);
/// Footprint table on stdout, failures on stderr.
void SayReport(Terminal& terminal, const IngestReport& report);

}  // namespace patchbay::cli
