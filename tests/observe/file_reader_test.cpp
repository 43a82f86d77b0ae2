#include "observe/file_reader.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "support/recorded_tree.h"

namespace plimsoll {
namespace {

TEST(FileReader, ReadsFilesOfAnySize) {
  RecordedTree tree;
  FileReader reader;
  for (const size_t size : {0, 1, 8191, 8192, 8193, 1000000}) {
    const std::string text(size, 'x');
    tree.add("/file", text);
    EXPECT_EQ(reader.read((tree.root() + "/file").c_str()), text);
  }
  EXPECT_FALSE(reader.read((tree.root() + "/none").c_str()));
  EXPECT_EQ(reader.error(), ENOENT);
  EXPECT_FALSE(reader.read(tree.root().c_str()));
  EXPECT_EQ(reader.error(), EISDIR);
}

TEST(FileReader, MovedFromIsUsable) {
  FileReader first;
  ASSERT_TRUE(first.read("/proc/self/stat"));
  FileReader second = std::move(first);
  EXPECT_TRUE(first.read("/proc/self/stat"));
  EXPECT_TRUE(second.read("/proc/self/stat"));
}

TEST(Parsing, LinesWordsAndNumbers) {
  std::string_view text = "a 1\n\nb";
  EXPECT_EQ(next_line(text), "a 1");
  EXPECT_EQ(next_line(text), "");
  EXPECT_EQ(next_line(text), "b");
  EXPECT_FALSE(next_line(text));
  std::string_view line = "  one\ttwo ";
  EXPECT_EQ(next_word(line), "one");
  EXPECT_EQ(next_word(line), "two");
  EXPECT_EQ(next_word(line), "");
  EXPECT_EQ(parse_number(" 12\n"), 12);
  EXPECT_EQ(parse_number("-3"), -3);
  for (const char* wrong : {"", "max", "1x", "99999999999999999999", "1 2"})
    EXPECT_FALSE(parse_number(wrong)) << wrong;
}

TEST(Parsing, NumberOfFindsTheWholeKey) {
  constexpr std::string_view kText = "filex 1\nfile 2\nVmRSS:\t  345 kB\nempty\n";
  EXPECT_EQ(number_of(kText, "file"), 2);
  EXPECT_EQ(number_of(kText, "VmRSS"), 345);
  EXPECT_FALSE(number_of(kText, "empty"));
  EXPECT_FALSE(number_of(kText, "fil"));
}

}  // namespace
}  // namespace plimsoll
