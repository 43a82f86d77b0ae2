#include <algorithm>

#include "kernels/parallel.h"
#include "ops/lookup_table.h"
#include "ops/movement.h"
#include "ops/text_elements.h"

namespace plimsoll {
namespace {

enum class Weighting : uint8_t { kTf, kIdf, kTfIdf };

// N-grams as a tree of tokens: an edge leads from a node by a token (a number, made from texts by `tokens`)
// to another node. Nodes are numbered from 1, the root is 0.
struct TfIdfAttrs {
  Weighting weighting = Weighting::kTf;
  bool strings = false;
  int64_t shortest = 1, longest = 1, most_skipped = 0;
  int64_t width = 0;                    // of the output
  LookupTable<std::string_view> texts;  // to tokens
  LookupTable<int64_t> numbers;
  LookupTable<int64_t> edges;           // node * 2^32 + token -> node
  std::span<const int32_t> ngram_of;    // by node: the n-gram that ends there, or -1
  std::span<const int64_t> coordinate;  // by n-gram
  std::span<const float> weights;       // by n-gram; empty: all one
};

int64_t edge_key(int32_t node, int32_t token) {
  return (int64_t{node} << 32) | static_cast<uint32_t>(token);
}

Weighting read_mode(AttrContext& c) {
  const std::string_view mode = c.text("mode");
  if (mode == "TF") return Weighting::kTf;
  if (mode == "IDF") return Weighting::kIdf;
  if (mode != "TFIDF") c.reject("attribute 'mode': expected TF, IDF or TFIDF, found '{}'", mode);
  return Weighting::kTfIdf;
}

void read_lengths(AttrContext& c, TfIdfAttrs& a, size_t lengths) {
  a.shortest = c.integer("min_gram_length");
  a.longest = c.integer("max_gram_length");
  a.most_skipped = std::min(c.integer("max_skip_count"), int64_t{1} << 40);  // longer than any row
  if (a.shortest < 1 || a.longest < a.shortest)
    c.reject(
        "attributes 'min_gram_length' and 'max_gram_length': expected 1 <= minimum <= maximum, found {} and "
        "{}",
        a.shortest, a.longest);
  if (static_cast<size_t>(a.longest) > lengths)
    c.reject("attribute 'max_gram_length': {} is more than the {} lengths of 'ngram_counts'", a.longest,
             lengths);
  if (a.most_skipped < 0)
    c.reject("attribute 'max_skip_count': expected at least 0, found {}", a.most_skipped);
}

// The tokens of the pool, in its order.
std::vector<int32_t> read_pool(AttrContext& c, TfIdfAttrs& a) {
  const auto texts = c.texts("pool_strings");
  const auto numbers = c.integers("pool_int64s");
  if (texts.empty() == numbers.empty())
    c.reject("expected one of the attributes 'pool_strings' and 'pool_int64s'");
  a.strings = !texts.empty();
  std::vector<int32_t> tokens;
  const auto add = [&](auto& table, auto key) {
    int32_t token = table.find(key);
    if (token < 0) table.insert(key, token = static_cast<int32_t>(tokens.size()));
    tokens.push_back(token);
  };
  if (a.strings) {
    a.texts = LookupTable<std::string_view>(c.arena(), texts.size());
    for (const std::string_view text : texts) add(a.texts, text);
  } else {
    a.numbers = LookupTable<int64_t>(c.arena(), numbers.size());
    for (const int64_t number : numbers) add(a.numbers, number);
  }
  return tokens;
}

class NgramTree {
 public:
  NgramTree(AttrContext& c, TfIdfAttrs& a, size_t tokens)
      : a_(a), ngram_of_(c.arena().array<int32_t>(tokens + 1)) {
    a.edges = LookupTable<int64_t>(c.arena(), tokens);
    std::fill(ngram_of_.begin(), ngram_of_.end(), -1);
    a.ngram_of = ngram_of_;
  }
  void add(std::span<const int32_t> tokens, int32_t ngram) {
    int32_t node = 0;
    for (const int32_t token : tokens) {
      const int64_t key = edge_key(node, token);
      int32_t next = a_.edges.find(key);
      if (next < 0) a_.edges.insert(key, next = ++nodes_);
      node = next;
    }
    ngram_of_[static_cast<size_t>(node)] = ngram;
  }

 private:
  TfIdfAttrs& a_;
  std::span<int32_t> ngram_of_;
  int32_t nodes_ = 0;
};

// Returns the number of n-grams, those of lengths that are not looked for among them.
size_t read_ngrams(AttrContext& c, TfIdfAttrs& a, std::span<const int32_t> pool,
                   std::span<const int64_t> starts) {
  NgramTree tree(c, a, pool.size());
  size_t ngrams = 0;
  for (size_t n = 1; n <= starts.size(); ++n) {
    const int64_t start = starts[n - 1];
    const int64_t end = n < starts.size() ? starts[n] : static_cast<int64_t>(pool.size());
    if (start < 0 || end < start || end > static_cast<int64_t>(pool.size()))
      c.reject("attribute 'ngram_counts': {}-grams from {} to {} of a pool of {}", n, start, end,
               pool.size());
    const auto count = static_cast<size_t>(end - start);
    if (count % n != 0)
      c.reject("attribute 'ngram_counts': {} elements of the pool are not whole {}-grams", count, n);
    const bool wanted = static_cast<int64_t>(n) >= a.shortest && static_cast<int64_t>(n) <= a.longest;
    for (size_t i = 0; i < count; i += n, ++ngrams) {
      if (wanted) tree.add(pool.subspan(static_cast<size_t>(start) + i, n), static_cast<int32_t>(ngrams));
    }
  }
  return ngrams;
}

const void* attrs(AttrContext& c) {
  auto* a = c.make<TfIdfAttrs>();
  a->weighting = read_mode(c);
  const auto starts = c.integers("ngram_counts");
  read_lengths(c, *a, starts.size());
  const std::vector<int32_t> pool = read_pool(c, *a);
  const size_t ngrams = read_ngrams(c, *a, pool, starts);
  a->coordinate = c.integers("ngram_indexes");
  a->weights = c.reals("weights");
  if (a->coordinate.size() != ngrams)
    c.reject("attribute 'ngram_indexes': expected one for each of {} n-grams, found {}", ngrams,
             a->coordinate.size());
  if (!a->weights.empty() && a->weights.size() != ngrams)
    c.reject("attribute 'weights': expected one for each of {} n-grams, found {}", ngrams, a->weights.size());
  constexpr int64_t kMost = int64_t{1} << 31;
  for (const int64_t at : a->coordinate) {
    if (at < 0 || at >= kMost) c.reject("attribute 'ngram_indexes': {} is outside [0, {})", at, kMost);
    a->width = std::max(a->width, at + 1);
  }
  return a;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<TfIdfAttrs>();
  c.expect_type(0, a.strings ? kStringType : kIndexTypes);
  c.expect_rank(0, 1, 2);
  if (!c.ranked(0)) return c.set_unranked_output(0, ElementType::kFloat);
  std::vector<Dim> dims{Dim(a.width)};
  if (c.rank(0) == 2) dims.insert(dims.begin(), c.dims(0)[0]);
  c.set_output(0, ElementType::kFloat, dims);
}

// The tokens of the input, -1 for those that no n-gram has.
const void* select(SelectContext& c) {
  if (c.ranked(0)) c.scratch(product(c.dims(0)) * Dim(4));
  return nullptr;
}

void find_tokens(const TfIdfAttrs& a, const TensorView& x, int32_t* tokens) {
  for (int64_t i = 0; i < x.elements(); ++i)
    tokens[i] = a.strings ? a.texts.find(text_at(x, i)) : a.numbers.find(index_at(x, i));
}

void count_row(const TfIdfAttrs& a, const int32_t* tokens, int64_t length, float* y) {
  std::fill_n(y, a.width, 0.f);
  for (int64_t distance = 1; distance <= a.most_skipped + 1 && (distance == 1 || distance < length);
       ++distance) {
    // Single tokens have no distance: they count once.
    const int64_t shortest = distance == 1 ? a.shortest : std::max<int64_t>(a.shortest, 2);
    for (int64_t first = 0; first < length; ++first) {
      int32_t node = 0;
      for (int64_t n = 1, at = first; n <= a.longest && at < length; ++n, at += distance) {
        if (tokens[at] < 0 || (node = a.edges.find(edge_key(node, tokens[at]))) < 0) break;
        const int32_t ngram = n < shortest ? -1 : a.ngram_of[static_cast<size_t>(node)];
        if (ngram < 0) continue;
        const float weight =
            a.weights.empty() || a.weighting == Weighting::kTf ? 1.f : a.weights[static_cast<size_t>(ngram)];
        float& count = y[a.coordinate[static_cast<size_t>(ngram)]];
        count = a.weighting == Weighting::kIdf ? weight : count + weight;
      }
    }
  }
}

void run(const RunContext& c) {
  const auto& a = c.attrs<TfIdfAttrs>();
  const TensorView& x = c.inputs[0];
  auto* tokens = c.scratch_as<int32_t>(0);
  find_tokens(a, x, tokens);
  const int64_t rows = x.rank() == 2 ? x.dims[0] : 1, length = x.dims.back();
  kernels::parallel_for(rows > 8 ? c.threads : 1, rows, [&](int64_t row) {
    count_row(a, tokens + row * length, length, c.outputs[0].as<float>() + row * a.width);
  });
}

}  // namespace

extern const OpDef op_tf_idf_vectorizer = {
    .name = "TfIdfVectorizer",
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
};

}  // namespace plimsoll
