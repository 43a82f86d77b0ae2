#include "memory/arena_image.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace plimsoll {
namespace {

// A list in an arena that also points at somebody else's text.
struct Item {
  int64_t number = 0;
  Item* next = nullptr;
  std::string_view text;
};

class ArenaImageTest : public testing::Test {
 protected:
  using Bytes = std::vector<std::byte>;

  Item* fill(BumpArena& arena, int items = 3) const {
    Item* first = nullptr;
    for (int i = items; i-- > 0;) first = arena.make<Item>(Item{i, first, std::string_view(text_).substr(i)});
    return first;
  }
  std::optional<Bytes> image_of(const BumpArena& arena, const void* root, std::string_view text) const {
    const Place places[] = {place_of(arena), {{std::as_bytes(std::span(text))}}};
    return write_image(arena, root, places, 64);
  }

  Budget budget_{"test", 0};
  const std::string text_ = "a text that is long enough to be on the heap by itself";
};

TEST_F(ArenaImageTest, IsUsedAtOtherAddresses) {
  BumpArena one(budget_), other(budget_);
  one.allocate(40'000);  // several chunks
  const auto first = image_of(one, fill(one), text_);
  other.allocate(40'000);
  const auto second = image_of(other, fill(other), text_);
  ASSERT_TRUE(first && second);
  const auto common = common_image(*first, *second);
  ASSERT_TRUE(common);
  EXPECT_EQ(*common, *first);

  const auto image = ArenaImage::in(*common);
  ASSERT_TRUE(image);
  BumpArena loaded(budget_);
  const std::string moved = "A TEXT that is long enough to be on the heap by itself";
  const std::byte* begins[] = {nullptr, reinterpret_cast<const std::byte*>(moved.data())};
  std::byte* const begin = image->load(loaded, begins);
  const Item* item = reinterpret_cast<const Item*>(begin + image->root_offset());
  for (int i = 0; i < 3; ++i, item = item->next) {
    EXPECT_EQ(item->number, i);
    EXPECT_EQ(item->text, std::string_view(moved).substr(i));
  }
  EXPECT_EQ(item, nullptr);
  const int64_t mapped = loaded.mapped_bytes();
  EXPECT_EQ(budget_.report().now_bytes, one.mapped_bytes() + other.mapped_bytes() + mapped);
  loaded.allocate(64, 1);  // the room that was asked for
  EXPECT_EQ(loaded.mapped_bytes(), mapped);
}

TEST_F(ArenaImageTest, MemoryThatNobodyElseHasIsNotWritten) {
  BumpArena arena(budget_);
  const std::string elsewhere = text_;
  EXPECT_TRUE(image_of(arena, fill(arena), text_));
  EXPECT_FALSE(image_of(arena, fill(arena), elsewhere));
  EXPECT_FALSE(image_of(arena, &budget_, text_));  // a root outside
}

TEST_F(ArenaImageTest, ANumberThatLooksLikeAnAddressIsFoundOut) {
  BumpArena one(budget_), other(budget_);
  Item *const first = fill(one), *const second = fill(other);
  first->number = second->number = reinterpret_cast<intptr_t>(first);
  // In the other arena it is an address of memory that is none of its own.
  EXPECT_TRUE(image_of(one, first, text_));
  EXPECT_FALSE(image_of(other, second, text_));
  second->number = reinterpret_cast<intptr_t>(first) / 2;
  const auto a = image_of(one, first, text_), b = image_of(other, second, text_);
  ASSERT_TRUE(a && b);
  EXPECT_FALSE(common_image(*a, *b));
}

TEST_F(ArenaImageTest, AddressesOfMemoryThatIsGoneAreZeros) {
  std::optional<Bytes> images[2];
  for (int i = 0; i < 2; ++i) {
    BumpArena arena(budget_);
    Item* item = fill(arena, 1);
    item->number = (int64_t{1} << 46) + i;
    images[i] = image_of(arena, item, text_);
    ASSERT_TRUE(images[i]);
  }
  const auto common = common_image(*images[0], *images[1]);
  ASSERT_TRUE(common);
  BumpArena loaded(budget_);
  const std::byte* begins[] = {nullptr, reinterpret_cast<const std::byte*>(text_.data())};
  const auto image = ArenaImage::in(*common);
  const auto* item = reinterpret_cast<const Item*>(image->load(loaded, begins) + image->root_offset());
  EXPECT_EQ(item->number, 0);
  EXPECT_EQ(item->text, text_);
}

TEST_F(ArenaImageTest, OtherDifferencesAreRefused) {
  std::optional<Bytes> images[2];
  for (int i = 0; i < 2; ++i) {
    BumpArena arena(budget_);
    Item* item = fill(arena, 1);
    item->number = 5 + i;
    images[i] = image_of(arena, item, text_);
    ASSERT_TRUE(images[i]);
  }
  EXPECT_FALSE(common_image(*images[0], *images[1]));
}

TEST_F(ArenaImageTest, OtherBytesAreNone) {
  BumpArena arena(budget_);
  Bytes bytes = *image_of(arena, fill(arena), text_);
  EXPECT_TRUE(ArenaImage::in(bytes));
  EXPECT_FALSE(ArenaImage::in(std::span(bytes).first(bytes.size() - 8)));
  EXPECT_FALSE(ArenaImage::in(std::span(bytes).first(16)));
  bytes[0] ^= std::byte{1};
  EXPECT_FALSE(ArenaImage::in(bytes));
}

}  // namespace
}  // namespace plimsoll
