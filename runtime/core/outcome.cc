#include "runtime/core/outcome.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "absl/strings/cord.h"
#include "runtime/core/strings.h"

namespace patchbay {
namespace {

constexpr char kPayload[] = "patchbay/outcome";
constexpr std::size_t kMaxOthers = 16;

bool IsSet(const Subject& subject) {
  return subject.kind != SubjectKind::kNone || !subject.part.empty();
}

bool IsPath(const Subject& subject) { return subject.part.starts_with('/'); }

/// Writes fields that Taker reads back.
void Put(std::string& out, std::string_view field) { out += StrCat(field.size(), ":", field); }

void Put(std::string& out, const Subject& subject) {
  Put(out, StrCat(static_cast<int>(subject.kind)));
  Put(out, StrCat(subject.index));
  Put(out, subject.part);
}

class Taker {
 public:
  explicit Taker(std::string_view bytes) : rest_(bytes) {}

  bool AtEnd() const { return rest_.empty(); }
  std::string Text() {
    std::size_t size = 0;
    const auto read = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
    rest_.remove_prefix(static_cast<std::size_t>(read.ptr - rest_.data()) + 1);
    std::string text(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return text;
  }
  std::uint64_t Number() {
    const std::string text = Text();
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }
  Subject Next() {
    const auto kind = static_cast<SubjectKind>(Number());
    const std::uint64_t index = Number();
    return {kind, index, Text()};
  }

 private:
  std::string_view rest_;
};

std::optional<Outcome> Carried(const Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload) return std::nullopt;
  const std::string bytes(*payload);
  Taker taker(bytes);
  Outcome outcome;
  outcome.code = static_cast<std::int32_t>(status.code());
  outcome.doing = taker.Text();
  outcome.subject = taker.Next();
  outcome.cause = taker.Text();
  outcome.advice = taker.Text();
  while (!taker.AtEnd()) outcome.others.push_back(taker.Next());
  return outcome;
}

std::string Numbered(const Subject& subject) {
  switch (subject.kind) {
    case SubjectKind::kNone:
      return "";
    case SubjectKind::kRun:
      return "OUT";
    case SubjectKind::kConfigKey:
      return StrCat("key '", subject.part, "'");
    default:
      return StrCat(NameOf(subject.kind), " ", subject.index);
  }
}

std::string Shown(const Subject& subject, const SubjectNames& names) {
  if (IsPath(subject) || subject.kind == SubjectKind::kNone) return subject.part;
  std::string name = names ? names(subject) : std::string();
  if (name.empty()) name = Numbered(subject);
  if (subject.part.empty() || subject.kind == SubjectKind::kConfigKey) return name;
  return StrCat(name, "/", subject.part);
}

/// Texts with the other subjects in their places.
class Filler {
 public:
  Filler(const Outcome& outcome, const SubjectNames& names) : outcome_(outcome), names_(names) {}

  std::string Fill(std::string_view text) {
    std::string filled;
    for (const char c : text) {
      if (c != kOtherSubject) {
        filled += c;
      } else if (next_ < outcome_.others.size()) {
        filled += Shown(outcome_.others[next_++], names_);
      }
    }
    return filled;
  }

 private:
  const Outcome& outcome_;
  const SubjectNames& names_;
  std::size_t next_ = 0;
};

void Join(std::string& text, std::string_view separator, std::string_view piece) {
  if (piece.empty()) return;
  if (!text.empty()) text += separator;
  text += piece;
}

bool IsWithin(const Subject& inner, const Subject& outer) {
  if (outer.kind != SubjectKind::kNone) {
    return inner.kind == outer.kind && inner.index == outer.index;
  }
  if (!inner.part.starts_with(outer.part)) return false;
  return inner.part.size() == outer.part.size() || inner.part[outer.part.size()] == '/';
}

}  // namespace

std::string_view NameOf(SubjectKind kind) {
  constexpr std::string_view kNames[] = {"",      "run",   "config key", "image",     "row",
                                         "slide", "store", "volume",     "label set", "patch",
                                         "file",  "node",  "peer"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string TextOf(const Outcome& outcome, const SubjectNames& names) {
  Filler filler(outcome, names);
  std::string text = filler.Fill(outcome.doing);
  Join(text, ": ", Shown(outcome.subject, names));
  Join(text, ": ", filler.Fill(outcome.cause));
  Join(text, "; ", filler.Fill(outcome.advice));
  return text;
}

Outcome Named(Outcome outcome, const SubjectNames& names) {
  const auto name = [&](Subject& subject) {
    std::string shown = Shown(subject, names);
    if (shown.starts_with('/')) subject.part = std::move(shown);
  };
  name(outcome.subject);
  for (Subject& other : outcome.others) name(other);
  return outcome;
}

Status Named(const Status& status, const SubjectNames& names) {
  std::optional<Outcome> outcome = Carried(status);
  if (!outcome) return status;
  const Outcome named = Named(*outcome, names);
  return named == *outcome ? status : StatusOf(named);
}

std::size_t BytesOf(const Outcome& outcome) {
  std::size_t bytes = outcome.doing.size() + outcome.subject.part.size() + outcome.cause.size() +
                      outcome.advice.size();
  for (const Subject& other : outcome.others) bytes += sizeof(Subject) + other.part.size();
  return bytes;
}

void Cut(Outcome& outcome, std::size_t most) {
  const auto cut = [&most](std::string& text) {
    if (text.size() > most) text.resize(most);
    most -= text.size();
  };
  if (outcome.others.size() > kMaxOthers) outcome.others.resize(kMaxOthers);
  for (std::string* text :
       {&outcome.doing, &outcome.subject.part, &outcome.cause, &outcome.advice}) {
    cut(*text);
  }
  for (Subject& other : outcome.others) cut(other.part);
}

Outcome OutcomeOf(const Status& status) {
  if (std::optional<Outcome> carried = Carried(status)) return *std::move(carried);
  Outcome outcome;
  outcome.code = static_cast<std::int32_t>(status.code());
  outcome.cause = std::string(MessageOf(status));
  std::replace(outcome.cause.begin(), outcome.cause.end(), kOtherSubject, '?');
  return outcome;
}

Status StatusOf(const Outcome& outcome) {
  if (outcome.code == 0) return absl::OkStatus();
  const bool is_known =
      outcome.code > 0 && outcome.code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  Status status(
      is_known ? static_cast<absl::StatusCode>(outcome.code) : absl::StatusCode::kInternal,
      TextOf(outcome));
  std::string bytes;
  Put(bytes, outcome.doing);
  Put(bytes, outcome.subject);
  Put(bytes, outcome.cause);
  Put(bytes, outcome.advice);
  for (const Subject& other : outcome.others) Put(bytes, other);
  status.SetPayload(kPayload, absl::Cord(bytes));
  return status;
}

Status ErrorAbout(absl::StatusCode code, std::string_view doing, const Subject& subject,
                  std::string_view cause, std::string_view advice) {
  return StatusOf({static_cast<std::int32_t>(code),
                   std::string(doing),
                   subject,
                   std::string(cause),
                   std::string(advice),
                   {}});
}

Status WithCode(const Status& status, absl::StatusCode code) {
  if (status.ok()) return status;
  Outcome outcome = OutcomeOf(status);
  outcome.code = static_cast<std::int32_t>(code);
  return StatusOf(outcome);
}

Status WithAdvice(const Status& status, std::string_view advice) {
  if (status.ok()) return status;
  Outcome outcome = OutcomeOf(status);
  outcome.advice = advice;
  return StatusOf(outcome);
}

Status About(const Status& status, std::string_view doing, const Subject& subject) {
  if (status.ok()) return status;
  const Outcome inner = OutcomeOf(status);
  const bool is_named = IsSet(inner.subject) && IsWithin(inner.subject, subject);
  if (is_named) return doing.empty() ? status : Annotate(status, doing);
  Outcome outcome{inner.code, std::string(doing), subject, "", inner.advice, {}};
  Join(outcome.cause, ": ", inner.doing);
  if (IsSet(inner.subject)) {
    Join(outcome.cause, ": ", std::string_view(&kOtherSubject, 1));
    const auto in_doing = std::count(inner.doing.begin(), inner.doing.end(), kOtherSubject);
    outcome.others = inner.others;
    outcome.others.insert(
        outcome.others.begin() +
            std::min<std::ptrdiff_t>(in_doing, static_cast<std::ptrdiff_t>(inner.others.size())),
        inner.subject);
  } else {
    outcome.others = inner.others;
  }
  Join(outcome.cause, ": ", inner.cause);
  return StatusOf(outcome);
}

Status Annotate(const Status& status, std::string_view context) {
  if (status.ok()) return status;
  std::optional<Outcome> outcome = Carried(status);
  if (!outcome) return Status(status.code(), StrCat(context, ": ", status.message()));
  std::string doing(context);
  Join(doing, ": ", outcome->doing);
  outcome->doing = std::move(doing);
  return StatusOf(*outcome);
}

Status ErrorAbout(absl::StatusCode code, std::string_view doing, std::string_view path,
                  std::string_view cause) {
  return ErrorAbout(code, doing, {SubjectKind::kNone, 0, std::string(path)}, cause);
}

Status About(const Status& status, std::string_view doing, std::string_view path) {
  return About(status, doing, {SubjectKind::kNone, 0, std::string(path)});
}

}  // namespace patchbay
