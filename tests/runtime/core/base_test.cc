// The vocabulary of values: known answers for hashes and random numbers, refusals of the parsers.
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "runtime/core/box.h"
#include "runtime/core/dtype.h"
#include "runtime/core/hash.h"
#include "runtime/core/random.h"
#include "runtime/core/tensor_view.h"
#include "runtime/format/json/json.h"
#include "runtime/os/file.h"

namespace patchbay {
namespace {

TEST(Status, OfAnErrorNumberSaysWhatTheCallerDoesNext) {
  const auto code = [](int number) { return FromErrno("open", "f", number).code(); };
  for (const int number : {ENOENT, ENOTDIR}) EXPECT_EQ(code(number), absl::StatusCode::kNotFound);
  for (const int number : {EEXIST, ENOTEMPTY}) {
    EXPECT_EQ(code(number), absl::StatusCode::kAlreadyExists);
  }
  for (const int number : {EACCES, EPERM, EROFS}) {
    EXPECT_EQ(code(number), absl::StatusCode::kPermissionDenied);
  }
  for (const int number : {ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE, ENOMEM}) {
    EXPECT_EQ(code(number), absl::StatusCode::kResourceExhausted);
  }
  for (const int number : {EINVAL, EISDIR, ENAMETOOLONG, ELOOP}) {
    EXPECT_EQ(code(number), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(code(EIO), absl::StatusCode::kInternal);
}

TEST(Philox, MatchesRandom123KnownAnswers) {
  // kat_vectors of Random123 for philox4x32, 10 rounds.
  const PhiloxBlock zero = Philox4x32({{0, 0, 0, 0}}, 0, 0);
  EXPECT_EQ(zero.word[0], 0x6627e8d5u);
  EXPECT_EQ(zero.word[3], 0x9b00dbd8u);
  const std::uint32_t f = 0xffffffffu;
  const PhiloxBlock ones = Philox4x32({{f, f, f, f}}, f, f);
  EXPECT_EQ(ones.word[0], 0x408f276du);
  EXPECT_EQ(ones.word[3], 0x6d5451fdu);
  const PhiloxBlock pi =
      Philox4x32({{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}}, 0xa4093822u, 0x299f31d0u);
  EXPECT_EQ(pi.word[0], 0xd16cfe09u);
  EXPECT_EQ(pi.word[1], 0x94fdccebu);
  EXPECT_EQ(pi.word[2], 0x5001e420u);
  EXPECT_EQ(pi.word[3], 0x24126ea1u);
}

TEST(Philox, UniformFloatStaysInsideTheOpenInterval) {
  EXPECT_GT(UniformFloat(0), 0.0f);
  EXPECT_LT(UniformFloat(0xffffffffu), 1.0f);
}

TEST(Hash, Sha256OfAbcIsTheFipsExample) {
  EXPECT_EQ(Sha256Of("abc").Hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Hash, Crc32cMatchesRfc3720AndChains) {
  EXPECT_EQ(Crc32c(AsBytes("123456789")), 0xE3069283u);
  EXPECT_EQ(Crc32c(AsBytes("6789"), Crc32c(AsBytes("12345"))), 0xE3069283u);
  EXPECT_EQ(Crc32c(AsBytes(std::string(32, '\0'))), 0x8A9136AAu);
}

TEST(Hash, Crc32cOfLongBytesIsThatOfItsShortPiecesChained) {
  std::string bytes(70001, ' ');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i % 251);
  for (const std::size_t size : {255u, 767u, 768u, 769u, 24575u, 24576u, 24600u, 70001u}) {
    std::uint32_t chained = 0;
    for (std::size_t at = 0; at < size; at += 100) {
      chained = Crc32c(AsBytes(bytes).subspan(at, std::min<std::size_t>(100, size - at)), chained);
    }
    EXPECT_EQ(Crc32c(AsBytes(bytes).first(size)), chained) << size;
  }
}

TEST(Hash, DigestRefusesWhatIsNotHex) {
  EXPECT_FALSE(Digest::FromHex("zz").ok());
  EXPECT_FALSE(Digest::FromHex(std::string(64, 'g')).ok());
  const Digest d = Sha256Of("x");
  EXPECT_EQ(*Digest::FromHex(d.Hex()), d);
}

TEST(JsonText, TextOfAnyBytesComesBackAsItWas) {
  std::vector<std::string> texts = {"plain",
                                    "b\xff.svs",
                                    "\xc3\xa9t\xc3\xa9",
                                    "\xc3",
                                    "\xe2\x82",
                                    "\xed\xa0\x80",
                                    "\xf4\x90\x80\x80",
                                    "\xc0\xaf",
                                    "\xef\xbf\xbd",
                                    std::string("\0", 1),
                                    std::string("\0ff", 3),
                                    std::string("\0\xff", 2),
                                    std::string("\0"
                                                "00",
                                                3),
                                    "\\u0000ff"};
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  texts.push_back(all);
  for (const std::string& text : texts) {
    const Json value = {{"list", {text, 7}}, {text, true}};
    const auto back = ParseJson(DumpJson(value), "t");
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, value) << DumpJson(value);
    EXPECT_EQ(DumpJson(*back), DumpJson(value));
  }
  EXPECT_EQ(DumpJson(Json("b\xff.svs")), R"("b\u0000ff.svs")");
  EXPECT_EQ(DumpJson(Json("\xef\xbf\xbd")), "\"\xef\xbf\xbd\"");
}

TEST(JsonText, RefusesMalformedDeepAndMistypedText) {
  EXPECT_FALSE(ParseJson("{", "t").ok());
  EXPECT_FALSE(ParseJson(std::string(100, '['), "t").ok());
  const Json value = *ParseJson(R"({"a": 1, "b": "x"})", "t");
  EXPECT_EQ(*JsonInt(value, "a", "t"), 1);
  EXPECT_EQ(MessageOf(JsonInt(value, "b", "t").status()), "t: key 'b': expected an integer");
  EXPECT_EQ(MessageOf(JsonInt(value, "c", "t").status()), "t: key 'c' is missing");
  EXPECT_EQ(*JsonCount(value, "a", "t"), 1u);
  EXPECT_EQ(MessageOf(JsonCount(Json{{"a", -1}}, "a", "t").status()),
            "t: key 'a': expected 0 or more");
}

TEST(BoxValue, IntersectionOfDisjointBoxesIsEmpty) {
  EXPECT_TRUE(Intersect(Box2D(0, 0, 4, 4), Box2D(4, 0, 4, 4)).Empty());
  EXPECT_EQ(Intersect(Box2D(0, 0, 4, 4), Box2D(2, 1, 4, 4)), Box2D(2, 1, 2, 3));
}

TEST(Text, NearestFindsTheTypoAndNothingForAStranger) {
  EXPECT_EQ(Nearest("ingset", {"ingest", "stream"}), "ingest");
  EXPECT_EQ(Nearest("qqqqq", {"ingest", "stream"}), "");
}

TEST(Text, StrCatWritesNumbersInTheirShortestForm) {
  EXPECT_EQ(StrCat("a", 1, ' ', 0.1, true), "a1 0.1true");
}

TEST(DTypes, NamesRoundTrip) {
  for (const char* name : {"bool", "uint8", "int16", "float16", "bfloat16", "float32", "float64"}) {
    EXPECT_EQ(NameOf(*DTypeFromName(name)), name);
  }
  EXPECT_FALSE(DTypeFromName("float8").has_value());
}

TEST(Files, ReadOfAMissingFileNamesIt) {
  const auto text = ReadFile(Folders::OfThisUser(), "/nonexistent/x", 10);
  EXPECT_EQ(text.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(MessageOf(text.status()).find("/nonexistent/x"), std::string::npos);
}

TEST(Files, AFileLargerThanItsLimitIsNeverReadAndNeverTriedAgain) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("patchbay-large-" + Hex64(RandomU64()))).string();
  ASSERT_TRUE(ReplaceFile(Folders::OfThisUser(), path, AsBytes("0123456789")).ok());
  EXPECT_TRUE(ReadFile(Folders::OfThisUser(), path, 10).ok());
  const auto text = ReadFile(Folders::OfThisUser(), path, 9);
  EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MessageOf(text.status()), StrCat("read: ", path, ": 10 B, more than 9 B"));
  std::filesystem::remove(path);
}

TEST(Files, ReadOfAPipeIsRefusedAndDoesNotWaitForAWriter) {
  std::string folder = (std::filesystem::temp_directory_path() / "patchbay-pipe-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = StrCat(folder, "/pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const auto text = ReadFile(Folders::OfThisUser(), path, 10);
  EXPECT_EQ(MessageOf(text.status()), StrCat("read: ", path, ": a pipe, not a file"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace patchbay
