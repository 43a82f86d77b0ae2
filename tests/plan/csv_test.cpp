#include "plan/csv.h"

#include <gtest/gtest.h>

#include "plimsoll/error.h"

namespace plimsoll::plan {
namespace {

std::string error_of(std::string_view text) {
  try {
    parse_csv(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

TEST(Csv, ReadsColumnsByName) {
  const NamedProblem named = parse_csv("size,id,upper,lower\r\n40,a,3,1\r\n\r\n50, b ,9,-2\n");
  ASSERT_EQ(named.problem.buffers.size(), 2u);
  EXPECT_EQ(named.ids, (std::vector<std::string>{"a", "b"}));
  const Buffer& b = named.problem.buffers[1];
  EXPECT_EQ(b.size, 50);
  EXPECT_EQ(b.lower, -2);
  EXPECT_EQ(b.upper, 9);
  EXPECT_EQ(b.alignment, 1);
  EXPECT_FALSE(b.offset);
}

TEST(Csv, ReadsAlignmentsAndPins) {
  const NamedProblem named = parse_csv("id,lower,upper,size,alignment,offset\na,0,1,8,16,32\nb,0,1,8,1,\n");
  EXPECT_EQ(named.problem.buffers[0].alignment, 16);
  EXPECT_EQ(named.problem.buffers[0].offset, 32);
  EXPECT_FALSE(named.problem.buffers[1].offset);
}

TEST(Csv, WritesWhatItReads) {
  const NamedProblem named = parse_csv("id,lower,upper,size\na,0,2,8\nb,1,3,4\n");
  const std::string text = format_csv(named, {{4, 0}, {12}});
  EXPECT_EQ(text, "id,lower,upper,size,offset\na,0,2,8,4\nb,1,3,4,0\n");
  EXPECT_EQ(format_csv(parse_csv(text), {{4, 0}, {12}}), text);
}

TEST(Csv, AHeaderAloneIsAnEmptyProblem) {
  EXPECT_TRUE(parse_csv("id,lower,upper,size").problem.buffers.empty());
}

TEST(Csv, NamesWhatIsWrong) {
  EXPECT_EQ(error_of("id,lower,upper,colour\n"),
            "line 1: column 'colour' is not one of id, lower, upper, size, alignment, offset");
  EXPECT_EQ(error_of("id,lower,size\n"), "line 1: column 'upper' is missing");
  EXPECT_EQ(error_of("id,lower,upper,size,size\n"), "line 1: column 'size' appears twice");
  EXPECT_EQ(error_of("id,lower,upper,size\na,0,1,8\nb,0,1\n"), "line 3: 4 fields expected, found 3");
  EXPECT_EQ(error_of("id,lower,upper,size\na,0,1,8x\n"),
            "line 2: size: an integer of 64 bits expected, found '8x'");
  EXPECT_EQ(error_of("id,lower,upper,size\na,0,99999999999999999999,8\n"),
            "line 2: upper: an integer of 64 bits expected, found '99999999999999999999'");
  EXPECT_EQ(error_of("id,lower,upper,size\na,0,1,-8\n"), "line 2: a size from 0 to 2^62 expected, found -8");
  EXPECT_EQ(error_of("id,lower,upper,size\na,2,3,8\n\nb,2,2,8\n"), "line 4: lifetime [2, 2) is empty");
  EXPECT_EQ(error_of("id,lower,upper,size\na,0,1,4611686018427387904\nb,0,1,4611686018427387904\n"),
            "line 2: the buffers up to it need more than 2^62 bytes");
  for (const char* nothing : {"", "\n", "\xEF\xBB\xBF"})
    EXPECT_EQ(error_of(nothing), "line 1: expected the names of columns, id,lower,upper,size, found nothing");
  EXPECT_LT(error_of(std::string(100'000, 'x')).size(), 200u);
  EXPECT_LT(error_of("id,lower,upper,size\na,0,1," + std::string(100'000, 'x')).size(), 200u);
}

TEST(Csv, EveryIdIsAnother) {
  EXPECT_EQ(error_of("id,lower,upper,size\na,0,1,8\nb,0,1,8\n\na,1,2,8\n"),
            "line 5: id 'a' is that of line 2 already");
}

TEST(Csv, AByteOrderMarkIsNoPartOfAName) {
  EXPECT_EQ(parse_csv("\xEF\xBB\xBFid,lower,upper,size\na,0,1,8\n").problem.buffers.size(), 1u);
}

}  // namespace
}  // namespace plimsoll::plan
