// Copies between strided arrays of random shapes, against one element after the other.
#include "kernels/copy.h"

#include <numeric>

#include "kernels/float_types.h"

namespace plimsoll::kernels {
namespace {

// Axes, innermost first, whose source is a permuted, repeated, reversed or padded array; the target is dense
// or padded.
struct Walk {
  explicit Walk(Dice& dice) {
    const auto rank = static_cast<size_t>(dice.pick(0, 5));
    for (size_t i = 0; i < rank; ++i) dims.push_back(dice.one_of(6) ? dice.pick(17, 70) : dice.pick(1, 5));
    std::vector<size_t> order(rank);
    std::iota(order.begin(), order.end(), size_t{0});
    for (size_t i = rank; i > 1; --i)
      if (!dice.one_of(3))
        std::swap(order[i - 1], order[static_cast<size_t>(dice.pick(0, static_cast<int64_t>(i) - 1))]);
    source.resize(rank), target.resize(rank);
    for (size_t axis : order) {
      if (dice.one_of(5)) continue;  // its elements are repeated
      const int64_t step = source_size;
      source_size = step * dims[axis] + (dice.one_of(5) ? dice.pick(1, 3) : 0);
      source[axis] = step;
      if (!dice.one_of(5)) continue;
      source[axis] = -step;
      source_start += step * (dims[axis] - 1);
    }
    for (size_t axis = 0; axis < rank; ++axis) {
      target[axis] = target_size;
      target_size = target_size * dims[axis] + (dice.one_of(6) ? dice.pick(1, 3) : 0);
    }
    for (size_t axis = 0; axis < rank; ++axis) shape.add(dims[axis], source[axis], target[axis]);
  }
  int64_t elements() const {
    return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
  }
  // Where element i of the walk is, by strides.
  int64_t place(int64_t i, const std::vector<int64_t>& strides) const {
    int64_t at = 0;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      at += i % dims[axis] * strides[axis];
      i /= dims[axis];
    }
    return at;
  }
  std::vector<int64_t> dims, source, target;
  int64_t source_size = 1, source_start = 0, target_size = 1;
  CopyShape shape;
};

// Channels of an image, which lie one after the other or further apart, become neighbours.
TEST(StridedCopy, InterleavesTwoOrThreeStreams) {
  Dice dice(3);
  for (const int64_t width : {1, 2, 4, 8}) {
    for (const int64_t streams : {2, 3}) {
      for (int64_t length = 2; length < 70; ++length) {
        const int64_t apart = length + dice.pick(0, 3), padding = dice.one_of(4) ? 1 : 0;
        std::vector<uint8_t> bytes(static_cast<size_t>(streams * apart * width));
        for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(dice.pick(0, 255));
        const Array<uint8_t> source(bytes);
        const Array<uint8_t> target(((length - 1) * (streams + padding) + streams) * width);
        CopyShape shape;
        shape.add(streams, apart, 1);
        shape.add(length, 1, streams + padding);
        strided_copy(reinterpret_cast<std::byte*>(target.data()),
                     reinterpret_cast<const std::byte*>(source.data()), shape, static_cast<size_t>(width), 1);
        for (int64_t i = 0; i < length * streams * width; ++i) {
          const int64_t byte = i % width, stream = i / width % streams, at = i / width / streams;
          ASSERT_EQ(target[(at * (streams + padding) + stream) * width + byte],
                    source[(stream * apart + at) * width + byte])
              << streams << " streams of " << length << ", width " << width;
        }
      }
    }
  }
}

TEST(StridedCopy, RandomWalksOfEveryWidth) {
  Dice dice(1);
  for (int round = 0; round < 400; ++round) {
    const Walk walk(dice);
    if (walk.elements() > 200000) continue;
    const int64_t width = int64_t{1} << dice.pick(0, 4);
    std::vector<uint8_t> bytes(static_cast<size_t>(walk.source_size * width));
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(dice.pick(0, 255));
    std::vector<uint8_t> expected(static_cast<size_t>(walk.target_size * width), 7);
    const Array<uint8_t> source(bytes), target(expected);
    for (int64_t i = 0; i < walk.elements(); ++i)
      std::copy_n(&bytes[static_cast<size_t>((walk.source_start + walk.place(i, walk.source)) * width)],
                  width, &expected[static_cast<size_t>(walk.place(i, walk.target) * width)]);
    strided_copy(reinterpret_cast<std::byte*>(target.data()),
                 reinterpret_cast<const std::byte*>(source.data()) + walk.source_start * width, walk.shape,
                 static_cast<size_t>(width), static_cast<int>(dice.pick(1, 3)));
    ASSERT_EQ(target.values(), expected) << "round " << round << ", width " << width;
  }
}

TEST(StridedCopy, RandomWalksOfBits) {
  Dice dice(2);
  for (int round = 0; round < 300; ++round) {
    const Walk walk(dice);
    if (walk.elements() > 50000) continue;
    const int bits = dice.one_of(2) ? 2 : 4;
    const int64_t per_byte = 8 / bits, source_at = dice.pick(0, 9), target_at = dice.pick(0, 9);
    const auto random_bytes = [&](int64_t elements) {
      std::vector<uint8_t> bytes(static_cast<size_t>((elements + per_byte - 1) / per_byte));
      for (uint8_t& b : bytes) b = static_cast<uint8_t>(dice.pick(0, 255));
      return bytes;
    };
    const std::vector<uint8_t> from = random_bytes(source_at + walk.source_size);
    std::vector<uint8_t> expected = random_bytes(target_at + walk.target_size);
    const Array<uint8_t> source(from), target(expected);
    const unsigned mask = (1u << bits) - 1;
    for (int64_t i = 0; i < walk.elements(); ++i) {
      const int64_t s = source_at + walk.source_start + walk.place(i, walk.source);
      const int64_t t = target_at + walk.place(i, walk.target);
      const unsigned value = (from[static_cast<size_t>(s / per_byte)] >> (s % per_byte * bits)) & mask;
      uint8_t& byte = expected[static_cast<size_t>(t / per_byte)];
      byte = static_cast<uint8_t>((byte & ~(mask << (t % per_byte * bits))) | value << (t % per_byte * bits));
    }
    strided_copy_bits(reinterpret_cast<std::byte*>(target.data()), target_at,
                      reinterpret_cast<const std::byte*>(source.data()), source_at + walk.source_start,
                      walk.shape, bits);
    ASSERT_EQ(target.values(), expected) << "round " << round << ", bits " << bits;
  }
}

TEST(Fill, EveryWidthAndCount) {
  Dice dice(3);
  for (int64_t width : {1, 2, 4, 8, 16}) {
    std::vector<uint8_t> value(static_cast<size_t>(width));
    for (uint8_t& b : value) b = static_cast<uint8_t>(dice.pick(0, 255));
    for (int64_t count : {0, 1, 2, 3, 15, 16, 17, 63, 200, 5000}) {
      const Array<uint8_t> target(count * width);
      fill(reinterpret_cast<std::byte*>(target.data()), count,
           reinterpret_cast<const std::byte*>(value.data()), static_cast<size_t>(width));
      for (int64_t i = 0; i < target.size(); ++i)
        ASSERT_EQ(target[i], value[static_cast<size_t>(i % width)]) << i << " of " << count << "x" << width;
    }
  }
}

}  // namespace
}  // namespace plimsoll::kernels
