#include "ops/invoke.h"

namespace plimsoll {

Facts facts_of(const TensorView& view, BumpArena& arena) {
  Facts facts;
  if (!view) return facts;
  std::span<Dim> dims = arena.array<Dim>(view.rank());
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = view.dims[i];
  facts.type = {ValueKind::kTensor, view.type, ElementType::kUndefined, true, dims, nullptr};
  facts.constant = &view;
  return facts;
}

namespace {

TensorView allocate_output(const Node& node, size_t i, const Facts& facts, BumpArena& arena) {
  if (node.outputs[i] == nullptr) return {};
  if (!facts.is_concrete())
    fail(ErrorCode::kInvalidModel, "{}: the shape of output {} cannot be told: {}", node.label(), i,
         to_string(facts.type));
  std::span<int64_t> dims = arena.array<int64_t>(facts.type.rank());
  for (size_t d = 0; d < dims.size(); ++d) dims[d] = facts.type.dims[d].value();
  TensorView view{nullptr, facts.type.type, false, dims};
  view.data = static_cast<std::byte*>(arena.allocate(static_cast<size_t>(view.bytes()) + 64, 64));
  return view;
}

}  // namespace

std::vector<TensorView> invoke(const Node& node, std::span<const TensorView> inputs, BumpArena& arena,
                               DimPool& pool, int threads) {
  if (node.op->run == nullptr)
    fail(ErrorCode::kNotImplemented, "{}: an operator with bodies or lists cannot run by itself",
         node.label());
  std::vector<Facts> facts;
  for (const TensorView& view : inputs) facts.push_back(facts_of(view, arena));
  std::vector<Facts> output_facts = infer_node(node, facts, arena, pool);
  std::vector<TensorView> outputs;
  for (size_t i = 0; i < output_facts.size(); ++i)
    outputs.push_back(allocate_output(node, i, output_facts[i], arena));

  RunContext run;
  run.node = &node;
  run.inputs = inputs;
  run.outputs = outputs;
  run.threads = threads;
  if (node.op->select != nullptr) {
    SelectContext select(node, facts, output_facts, nullptr, threads, arena);
    run.choice_made = node.op->select(select);
    run.scratch =
        static_cast<std::byte*>(arena.allocate(static_cast<size_t>(select.scratch_bytes().value()), 64));
  }
  if (node.op->bind != nullptr) {
    BindContext bind(node, facts, output_facts, run.choice_made, threads, arena);
    run.bound = node.op->bind(bind);
  }
  struct Text : TextMemory {
    explicit Text(BumpArena& a) : arena(a) {}
    char* allocate(size_t bytes) override { return static_cast<char*>(arena.allocate(bytes, 1)); }
    BumpArena& arena;
  } text(arena);
  run.text = &text;
  node.op->run(run);
  return outputs;
}

}  // namespace plimsoll
