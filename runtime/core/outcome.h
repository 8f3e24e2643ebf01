// An error as data: the operation that failed, and its subjects by kind and number. Its text holds
// no user's path: the code that prints it fills in names, once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"

namespace patchbay {

/// The kind of thing that an error is about; numbered ones get their names from the client.
enum class SubjectKind : std::uint8_t {
  kNone,       ///< nothing, or a thing that has a name alone: `part`
  kRun,        ///< the job itself; with a part, a file of its output folder
  kConfigKey,  ///< the key `part` of the run config
  kImage,      ///< image of a stream's plan or preview, in their order
  kRow,        ///< row of a table
  kSlide,      ///< slide of a job over slides, in its own order
  kStore,      ///< entry of the manifest's "images": a store, a slide, or a folder of them
  kVolume,
  kLabelSet,
  kPatch,
  kFile,  ///< entry of the manifest's "sources": a file, or a folder of them
  kNode,
  kPeer,
};

/// A thing that an error is about. `index` counts from 0 within the job.
struct Subject {
  SubjectKind kind = SubjectKind::kNone;
  std::uint64_t index = 0;
  std::string part;  ///< place inside it ("0/c/1/2"); a path of this machine begins with '/'
  bool operator==(const Subject&) const = default;
};

/// "slide", "label set"; "" for kNone.
std::string_view NameOf(SubjectKind kind);

/// In the texts of an outcome: here stands the next of `others`.
inline constexpr char kOtherSubject = '\x1a';

/// How work ended: "<doing>: <subject>: <cause>; <advice>". Code 0 is success and has no text.
struct Outcome {
  std::int32_t code = 0;  ///< number of an absl::StatusCode
  std::string doing = {};
  Subject subject = {};
  std::string cause = {};
  std::string advice = {};           ///< the next step for the user; may be empty
  std::vector<Subject> others = {};  ///< further things that doing, cause and advice name, in order
  bool operator==(const Outcome&) const = default;
};

/// The name of a thing without its part; "" where it is not known.
using SubjectNames = std::function<std::string(const Subject&)>;

/// One line for people; things without a name are called by number: "slide 3/0/c/1".
std::string TextOf(const Outcome& outcome, const SubjectNames& names = {});

/// `outcome` with the paths of its subjects as their parts: from there on it prints with names.
Outcome Named(Outcome outcome, const SubjectNames& names);
Status Named(const Status& status, const SubjectNames& names);

std::size_t BytesOf(const Outcome& outcome);  ///< size of its texts
/// Cuts the texts to `most` bytes together, and `others` to 16.
void Cut(Outcome& outcome, std::size_t most);

/// A status as data, and back. A status that was made from an outcome carries it.
Outcome OutcomeOf(const Status& status);
Status StatusOf(const Outcome& outcome);

/// "<doing>: <subject>: <cause>", carried apart.
Status ErrorAbout(absl::StatusCode code, std::string_view doing, const Subject& subject,
                  std::string_view cause, std::string_view advice = "");
/// A failed status under `code`, with its parts: the caller knows better what comes next. OK stays
/// OK.
Status WithCode(const Status& status, absl::StatusCode code);
/// A failed status with `advice` in place of its own; OK stays OK.
Status WithAdvice(const Status& status, std::string_view advice);
/// Puts `doing` and `subject` before a failed status; `doing` alone where it is about the subject
/// already.
Status About(const Status& status, std::string_view doing, const Subject& subject);

/// The same about what a name tells: a file on this machine by its path, a document by its kind.
Status ErrorAbout(absl::StatusCode code, std::string_view doing, std::string_view path,
                  std::string_view cause);
Status About(const Status& status, std::string_view doing, std::string_view path);

}  // namespace patchbay
