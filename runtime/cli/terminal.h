// The user's terminal: results on stdout, everything else on stderr.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay::cli {

/// One process has one; used from the main thread only.
class Terminal {
 public:
  /// With `json`, Say is silent and Result writes the one object.
  explicit Terminal(bool json);

  bool json() const { return json_; }
  /// stderr is a terminal: progress may redraw its line.
  bool live() const { return live_; }

  /// A line of a result for people (stdout). As of every line here, its control characters are
  /// shown as Printable has them: a name in it ends no line and begins none.
  void Say(std::string_view line);
  /// The lines of a text that holds no name from outside: a help page, a config.
  void SayText(std::string_view text);
  /// The result for programs (stdout), with --json only.
  void Result(const Json& object);
  /// The reason for a missing result, for programs (stderr), with --json only.
  void Failure(const Json& object);
  /// A line on stderr, apart from the result.
  void Note(std::string_view line);
  /// SayText, but to stderr as Note does.
  void NoteText(std::string_view text);
  /// "patchbay: text" on stderr.
  void Error(std::string_view text);

  /// The progress of a long operation. On a terminal it redraws one line, cut to the terminal's
  /// width; elsewhere every call prints a line, and the caller decides how often.
  void Progress(std::string_view text);
  /// Ends the redrawn line, if there is one.
  void EndProgress();

  /// Not OK once a part of the result could not be written to stdout.
  Status written() const { return written_; }

 private:
  void WriteResult(std::string_view text);

  bool json_;
  bool live_;  ///< stderr is a terminal
  bool drawn_ = false;
  Status written_;
};

/// The beginning of `text` that fits into `columns` columns, at one column per UTF-8 character.
std::string_view FirstColumns(std::string_view text, std::size_t columns);

/// Columns as wide as their widest cell, cells as Printable has them; the first row is the heading.
/// Cells of `right` columns are aligned right.
std::vector<std::string> FormatTable(const std::vector<std::vector<std::string>>& rows,
                                     const std::vector<bool>& right = {});

/// "1:02:03", "4:05", "12 s": for people.
std::string HumanSeconds(double seconds);

/// "312 MB/s": a rate of raw pixels, in millions of bytes.
std::string MegabytesPerSecond(double bytes_per_s);

/// `value` with that many digits after the point.
std::string Fixed(double value, int digits);

}  // namespace patchbay::cli
