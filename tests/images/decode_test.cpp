// The samples show 17 x 12 pixels: red grows by 15 to the right, green by 20 downwards.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "images/image.h"
#include "plimsoll/error.h"
#include "support/places.h"

namespace plimsoll::images {
namespace {

using File = std::vector<uint8_t>;

struct Sample {
  std::string name;
  File file;
};

std::vector<Sample> samples() {
  std::vector<Sample> result;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() + "/tests/images/samples")) {
    std::ifstream in(entry.path(), std::ios::binary);
    result.push_back({entry.path().filename().string(), File(std::istreambuf_iterator<char>(in), {})});
  }
  std::sort(result.begin(), result.end(), [](const Sample& a, const Sample& b) { return a.name < b.name; });
  return result;
}

// Pixels in memory of exactly their size, or nothing for an Error.
std::vector<uint8_t> decoded(Bytes file) {
  const Header header = read_header(file);
  std::vector<uint8_t> rgb(static_cast<size_t>(header.width * header.height * 3));
  std::vector<uint32_t> workspace(static_cast<size_t>(header.workspace_bytes + 3) / 4);
  decode(header, file, rgb.data(), reinterpret_cast<uint8_t*>(workspace.data()));
  return rgb;
}

// Damaged files may ask for large pictures; memory for those is not what this is about.
void expect_pixels_or_error(const std::string& what, const File& file) {
  SCOPED_TRACE(what);
  try {
    const Header header = read_header(file);
    if (header.width * header.height > 4096) return;
    decoded(file);
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()), "");
  }
}

TEST(Images, SamplesShowWhatTheyShould) {
  ASSERT_GE(samples().size(), 15u);
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(sample.name);
    const Header header = read_header(sample.file);
    EXPECT_EQ(header.width, 17);
    EXPECT_EQ(header.height, 12);
    const std::vector<uint8_t> rgb = decoded(sample.file);
    if (sample.name == "fax.tif" || sample.name == "runs.bmp" || sample.name == "palette.png") continue;
    for (const int64_t at : {0, 8, 16}) {
      EXPECT_NEAR(rgb[static_cast<size_t>(at) * 3], at * 15, 25) << "column " << at;
      EXPECT_NEAR(rgb[(11 * 17 + static_cast<size_t>(at)) * 3 + 1], 220, 25) << "column " << at;
    }
  }
}

TEST(Images, EveryCutIsAnErrorOrAnImage) {
  for (const Sample& sample : samples()) {
    for (size_t size = 0; size < sample.file.size(); ++size)
      expect_pixels_or_error(sample.name + " cut to " + std::to_string(size),
                             File(sample.file.begin(), sample.file.begin() + static_cast<ptrdiff_t>(size)));
  }
}

TEST(Images, ChangedBytesAreAnErrorOrAnImage) {
  std::mt19937 random(1);
  for (const Sample& sample : samples()) {
    for (int round = 0; round < 400; ++round) {
      File file = sample.file;
      for (int change = 0; change < 1 + round % 4; ++change)
        file[random() % file.size()] = static_cast<uint8_t>(random());
      expect_pixels_or_error(sample.name + " round " + std::to_string(round), file);
    }
  }
}

}  // namespace
}  // namespace plimsoll::images
