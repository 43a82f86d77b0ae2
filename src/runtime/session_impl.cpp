#include "runtime/session_impl.h"

#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "kernels/random.h"
#include "runtime/config_keys.h"
#include "runtime/flush_denormals.h"

namespace plimsoll {
namespace {

// C++'s source of entropy asks the processor first, which a hypervisor answers in microseconds.
uint64_t fresh_seed() {
  uint64_t seed = 0;
  if (::getrandom(&seed, sizeof seed, 0) == sizeof seed) return seed;
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

Session::Impl::Impl(const Env& environment, const ModelLocation& location,
                    const SessionOptions& session_options, const ShapesForInputs& shapes,
                    const Rewrite& rewrite)
    : env(environment.impl()),
      options(session_options),
      budget("session", session_options.memory_limit_bytes, &env->budget),
      location_(location) {
  if (options.enable_profiling) trace = std::make_shared<Trace>(options.profile_file_prefix, budget);
  const auto start = Trace::Clock::now();
  PrepareOptions preparation = prepare_options(session_options);
  preparation.rewrite = rewrite.graph;
  preparation.finish = rewrite.finish;
  preparation.drop_pages = rewrite.drop_pages;
  preparation.memory_config = rewrite.memory_config;
  model = location.read(preparation, budget);
  model->begin_verifying();
  if (trace)
    trace->add_session_event(location.path.empty() ? "model_loading_array" : "model_loading_uri", start);
  const auto read = Trace::Clock::now();
  initialize(shapes, rewrite);
  if (trace) trace->add_session_event("session_initialization", read);
}

// Values that a run made may live on, and with them the arena.
Session::Impl::~Impl() {
  if (has_idle_entry_) env->idle.remove(idle_entry_);
  if (arena == nullptr || owns_arena_ == false) return;
  arena->shrink(true);
  arena->outlive(env->budget);
}

void Session::Impl::choose_arena() {
  if (arena != nullptr) return;
  if (options.use_env_allocators) {
    const std::lock_guard lock(env->mutex);
    arena = env->arena;
  }
  if (arena != nullptr || !options.arena || !options.keep_arena) return;
  arena = make_arena(*options.arena, env->shared_budget, budget);
  owns_arena_ = true;
}

std::vector<std::string> Session::Impl::warnings() const {
  std::vector<std::string> all = describe_warnings(model->graph());
  for (const auto& [key, value] : options.config_entries) {
    if (find_config_key(key, false) == nullptr)
      all.push_back(fmt::format("config entry '{}' = '{}': nobody knows this key", key, value));
  }
  const auto add = [&](const LoadOptions::Loose& loose) {
    if (!loose.is_empty()) all.push_back(describe(loose));
  };
  add(model->options().load.loose);
  const std::lock_guard lock(overriding_mutex_);
  if (loosened_ != nullptr) add(loosened_->model->options().load.loose);
  return all;
}

// Those of a training session stay side by side.
std::vector<std::shared_ptr<CachedPlan>> Session::Impl::first_plans(const ShapesForInputs& shapes_for,
                                                                    const Rewrite& rewrite) {
  const Graph& graph = model->graph();
  const Shapes given = rewrite.shapes ? rewrite.shapes(graph) : shapes_for ? shapes_for(inputs) : Shapes();
  const auto shapes = complete_shapes(graph, given, !shapes_for);
  if (shapes.empty() && !graph.inputs.empty()) return {};
  const int64_t limit = options.memory_limit_bytes;
  if (!rewrite.runs) return {plan_within<CachedPlan>(*model, shapes, budget, limit, false)};
  return plan_together<CachedPlan>(*model, shapes, rewrite.runs(graph), budget, limit, rewrite.recompute);
}

// Under a line, weights take more memory for speed only where the first shape is known and fits beside them.
std::vector<std::shared_ptr<CachedPlan>> Session::Impl::prepare_model(const ShapesForInputs& shapes_for,
                                                                      const Rewrite& rewrite) {
  model->prepare();
  inputs = describe_inputs(model->graph());
  overridable = describe_overridable(model->graph());
  declared_ = DeclaredShapes(inputs);
  if (shapes_for && !rewrite.shapes && may_loosen()) {
    const Shapes given = shapes_for(inputs);
    const LoadOptions::Loose loose = declared_.contradicted(shapes_by_name(inputs, given));
    if (!loose.is_empty()) {
      PrepareOptions other = model->options();
      other.load.loose = joined(loose, other.load.loose);
      model.reset();
      model = location_.read(other, budget);
      return prepare_model([&](const std::vector<ValueInfo>&) { return given; }, rewrite);
    }
  }
  const bool is_limited = options.memory_limit_bytes > 0 || env->budget.limit_bytes() > 0;
  if (!is_limited || !model->spends_memory()) return first_plans(shapes_for, rewrite);
  if (options.memory_limit_bytes > 0) {
    try {
      if (auto plans = first_plans(shapes_for, rewrite); !plans.empty()) return plans;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBudgetExceeded) throw;
    }
  }
  PrepareOptions plain = model->options();
  plain.spend_memory = false;
  model.reset();
  model = location_.read(plain, budget);
  model->prepare();
  return first_plans(shapes_for, rewrite);
}

void Session::Impl::initialize(const ShapesForInputs& shapes_for, const Rewrite& rewrite) {
  random_seed_ = options.random_seed != 0 ? kernels::mix_bits(options.random_seed) : fresh_seed();
  metadata = describe_metadata(*model);
  choose_arena();
  plans_.store(std::make_shared<const PlanTable>());
  // What cannot fit is refused before the first weight is touched.
  const std::vector<std::shared_ptr<CachedPlan>> first = prepare_model(shapes_for, rewrite);
  for (const std::shared_ptr<CachedPlan>& plan : first) remember(plan);
  const Graph& graph = model->graph();
  for (const Edge* edge : graph.outputs.span().first(graph.visible_outputs()))
    outputs.push_back(describe_edge(*edge));
  model->load_weights();
  make_defaults();
  for (const std::shared_ptr<CachedPlan>& plan : first) plan->bind_weights(model->weights());
  for (int i = 0; i < options.max_concurrent_runs; ++i) {
    idle_.push_back(std::make_unique<RunSlot>());
    idle_.back()->index = static_cast<size_t>(i);
  }
  idle_entry_ = env->idle.add([this] { release_memory(); });
  has_idle_entry_ = true;
}

namespace {

size_t find_name(const std::vector<ValueInfo>& infos, std::string_view name, const char* what) {
  for (size_t i = 0; i < infos.size(); ++i) {
    if (infos[i].name == name) return i;
  }
  std::string names;
  for (const ValueInfo& info : infos) names += fmt::format(" '{}'", info.name);
  fail(ErrorCode::kInvalidArgument, "there is no {} '{}'; the model has{}", what, name, names);
}

}  // namespace

size_t Session::Impl::input_index(std::string_view name) const {
  return find_name(inputs, name, "input");
}
size_t Session::Impl::output_index(std::string_view name) const {
  return find_name(outputs, name, "output");
}

std::shared_ptr<ShapePlan> Session::Impl::find_plan(const std::vector<std::vector<int64_t>>& shapes,
                                                    const Wanted& wanted) const {
  const std::shared_ptr<const PlanTable> table = plans_.load();
  for (size_t i = table->size(); i-- > 0;) {
    if ((*table)[i]->shapes() != shapes || (*table)[i]->wanted() != wanted) continue;
    (*table)[i]->last_use = ++uses_;
    return (*table)[i];
  }
  return nullptr;
}

std::shared_ptr<ShapePlan> Session::Impl::prepare(const std::vector<std::vector<int64_t>>& shapes,
                                                  const Wanted& wanted) {
  if (auto known = find_plan(shapes, wanted)) return known;
  const std::lock_guard lock(prepare_mutex_);
  if (auto known = find_plan(shapes, wanted)) return known;
  const std::shared_ptr<CachedPlan> plan = make_plan(shapes, wanted);
  remember(plan);
  return plan;
}

void Session::Impl::remember(const std::shared_ptr<CachedPlan>& plan) {
  auto table = std::make_shared<PlanTable>(*plans_.load());
  table->push_back(plan);
  plan->last_use = ++uses_;
  evict(*table, *plan);
  plans_.store(std::move(table));
}

// What other shapes and other sessions left behind makes room if there is too little.
std::shared_ptr<CachedPlan> Session::Impl::make_plan(const std::vector<std::vector<int64_t>>& shapes,
                                                     const Wanted& wanted) {
  return take_with_room(
      [&] {
        return plan_within<CachedPlan>(*model, shapes, budget, options.memory_limit_bytes, true, wanted);
      },
      [&] {
        env->idle.release_all();
        forget_overriding();
        forget_plans_but(nullptr);
      });
}

void Session::Impl::forget_plans_but(const ShapePlan* plan) {
  auto table = std::make_shared<PlanTable>(*plans_.load());
  std::erase_if(*table, [&](const auto& entry) { return entry.get() != plan; });
  plans_.store(std::move(table));
}

// The least recently used go first; `keep` stays. With a limit, only what fits beside it stays.
void Session::Impl::evict(PlanTable& table, const CachedPlan& keep) const {
  int64_t others = 0;
  for (const auto& entry : table) others += entry->memory_bytes();
  others -= keep.memory_bytes();
  const int64_t peak = requirement(*model, keep).peak_bytes;
  auto too_many = [&] {
    return others + keep.memory_bytes() > options.plan_cache_bytes ||
           (options.memory_limit_bytes > 0 && peak + others > options.memory_limit_bytes);
  };
  while (table.size() > 1 && too_many()) {
    auto oldest = table.end();
    for (auto entry = table.begin(); entry != table.end(); ++entry) {
      if (entry->get() != &keep && (oldest == table.end() || (*entry)->last_use < (*oldest)->last_use))
        oldest = entry;
    }
    others -= (*oldest)->memory_bytes();
    table.erase(oldest);
  }
}

// A slot that goes back when the run ends, however it ends.
class Session::Impl::Slot {
 public:
  Slot(Impl& session, const RunOptions& run)
      : session_(session), shrink_(run.shrink_arena() || !session.options.keep_arena) {
    std::unique_lock lock(session.slots_mutex_);
    if (session.idle_.empty() && session.options.when_busy == BusyPolicy::kError)
      fail(ErrorCode::kBusy, "{} runs are under way, as many as max_concurrent_runs allows",
           session.options.max_concurrent_runs);
    // Nobody is woken by the flag of the options, so it is looked at now and then.
    while (!session.slot_free_.wait_for(lock, std::chrono::milliseconds(10),
                                        [&] { return !session.idle_.empty(); }))
      check_stop(run);
    slot_ = std::move(session.idle_.back());
    session.idle_.pop_back();
  }
  ~Slot() {
    if (shrink_) slot_->release();
    {
      const std::lock_guard lock(session_.slots_mutex_);
      session_.idle_.push_back(std::move(slot_));  // never grows: capacity was there before
    }
    session_.slot_free_.notify_one();
  }
  RunSlot& operator*() { return *slot_; }

 private:
  Impl& session_;
  const bool shrink_;
  std::unique_ptr<RunSlot> slot_;
};

void Session::Impl::map_arena(RunSlot& slot, const ShapePlan& plan) {
  if (slot.planned.size() < plan.planned_bytes()) {
    slot.planned = Arena();
    slot.planned = Arena(budget, Account::kPlanned, plan.planned_bytes(), options.guard_pages);
  }
  if (options.poison && slot.planned.size() > 0)
    std::memset(slot.planned.data(), 0xff, static_cast<size_t>(slot.planned.size()));
}

// The arena and the charge for inputs and outputs. What other shapes and other sessions left behind makes
// room if there is too little.
Charge Session::Impl::take_memory(RunSlot& slot, const std::shared_ptr<ShapePlan>& plan, Budget& run_budget,
                                  int64_t bound_bytes) {
  return take_with_room(
      [&] {
        map_arena(slot, *plan);
        return Charge(run_budget, Account::kBound, bound_bytes);
      },
      [&] {
        slot.release();
        env->idle.release_all();
        forget_overriding();
        const std::lock_guard lock(prepare_mutex_);
        forget_plans_but(plan.get());
      });
}

namespace {

// Whether a value can be what the type says.
bool fits(const Value& value, const TypeInfo& type) {
  if (type.kind == ValueKind::kOptional) return !value.HasValue() || fits(value, *type.element);
  if (!value || value.GetKind() != type.kind) return false;
  if (type.kind == ValueKind::kMap)
    return value.GetValue(0).GetElementType() == type.key && fits(value.GetValue(1), *type.element);
  if (type.kind != ValueKind::kSequence) return value.GetElementType() == type.type;
  const std::vector<Value>& elements = value.impl()->elements;
  return value.GetElementType() == tensor_type(type) &&
         std::all_of(elements.begin(), elements.end(),
                     [&](const Value& v) { return fits(v, *type.element); });
}

// A value as a run sees it: tensors stay in the caller's memory, lists of them are made.
TensorView view_of(const Value& value, ElementType type, DynamicMemory& memory) {
  if (!value.HasValue()) return none_of(type);
  const Value::Impl& impl = *value.impl();
  if (impl.kind == ValueKind::kTensor) return impl.view();
  const TensorView list =
      memory.allocate_list(impl.kind, impl.type, static_cast<int64_t>(impl.elements.size()));
  for (size_t i = 0; i < impl.elements.size(); ++i) list.items()[i] = view_of(impl.elements[i], type, memory);
  return list;
}

}  // namespace

void Session::Impl::check_inputs(std::span<const Value> values) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = values[i];
    if (inputs[i].kind != ValueKind::kTensor) {
      if (!value && inputs[i].kind != ValueKind::kOptional)
        fail(ErrorCode::kInvalidArgument, "input '{}' is missing", inputs[i].name);
      if (!fits(value, model->graph().inputs[i]->facts.type))
        fail(ErrorCode::kInvalidArgument, "input '{}': expected {}, found {}", inputs[i].name,
             inputs[i].type_text, value.GetTypeInfo());
      continue;
    }
    if (!value) fail(ErrorCode::kInvalidArgument, "input '{}' is missing", inputs[i].name);
    if (!value.IsTensor() || value.GetElementType() != inputs[i].type)
      fail(ErrorCode::kInvalidArgument, "input '{}': expected {}, found {}", inputs[i].name,
           element_type_name(inputs[i].type),
           value.IsTensor() ? element_type_name(value.GetElementType()) : value.GetTypeInfo());
  }
}

// What is not declared as a tensor has none: nothing is planned for its sizes.
const std::vector<int64_t>& Session::Impl::planned_shape(size_t input, const Value& value) const {
  static const std::vector<int64_t> none;
  return inputs[input].kind == ValueKind::kTensor ? value.GetShape() : none;
}

// Looks a prepared shape up without taking memory.
std::shared_ptr<ShapePlan> Session::Impl::plan_for(std::span<const Value> values, const Wanted& wanted) {
  const std::shared_ptr<const PlanTable> table = plans_.load();
  for (size_t i = table->size(); i-- > 0;) {
    const auto& known = (*table)[i]->shapes();
    bool same = known.size() == values.size() && (*table)[i]->wanted() == wanted;
    for (size_t v = 0; same && v < values.size(); ++v) same = known[v] == planned_shape(v, values[v]);
    if (!same) continue;
    (*table)[i]->last_use = ++uses_;
    return (*table)[i];
  }
  std::vector<std::vector<int64_t>> shapes;
  for (size_t v = 0; v < values.size(); ++v) shapes.push_back(planned_shape(v, values[v]));
  return prepare(shapes, wanted);
}

const std::string& Session::Impl::output_name(const ShapePlan& plan, size_t output) const {
  return outputs[plan.wanted() ? (*plan.wanted())[output] : output].name;
}

int64_t Session::Impl::pooled_output_bytes(const ShapePlan& plan, std::span<const Value> values) const {
  if (arena == nullptr) return 0;
  int64_t bytes = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const ProgramValue& value = plan.program().values[plan.program().outputs[i]];
    if (!values[i] && value.is_static && value.view.kind == ValueKind::kTensor &&
        value.view.type != ElementType::kString)
      bytes += value.view.bytes();
  }
  return bytes;
}

void Session::Impl::make_outputs(const ShapePlan& plan, std::span<Value> values,
                                 std::vector<TensorView>& views) {
  const Program& program = plan.program();
  for (size_t i = 0; i < values.size(); ++i) {
    const ProgramValue& value = program.values[program.outputs[i]];
    const std::span<const int64_t> dims = value.view.dims;
    if (values[i] && (value.view.kind != ValueKind::kTensor || !values[i].IsTensor()))
      fail(ErrorCode::kInvalidArgument,
           "output '{}': expected {}, bound to {}: only tensors are written in place", output_name(plan, i),
           value_kind_name(value.view.kind), values[i].GetTypeInfo());
    if (!values[i] && value.is_static) {
      // Of strings these are the handles; their characters follow at the end.
      const bool pooled = arena != nullptr && value.view.type != ElementType::kString;
      values[i] = pooled ? make_tensor(arena, value.view.type, {dims.begin(), dims.end()})
                         : Value::CreateTensor(value.view.type, {dims.begin(), dims.end()});
    } else if (value.is_static) {
      const Value& bound = values[i];
      if (bound.GetElementType() != value.view.type ||
          !std::equal(dims.begin(), dims.end(), bound.GetShape().begin(), bound.GetShape().end()))
        fail(ErrorCode::kInvalidArgument, "output '{}': expected {}{}, found {}{}", output_name(plan, i),
             element_type_name(value.view.type), to_string(dims), element_type_name(bound.GetElementType()),
             to_string(bound.GetShape()));
    }
    views.push_back(values[i] ? values[i].impl()->view() : TensorView{});
  }
}

// Strings, whose characters come now, and outputs whose shape only the run could tell.
void Session::Impl::finish_outputs(const ShapePlan& plan, const Frame& frame, std::span<Value> results,
                                   Charge& bound_charge) {
  const Program& program = *frame.program;
  auto copy = [&](const TensorView& value) {
    bound_charge.grow(value_copy_bytes(value));
    return copy_to_value(value);
  };
  std::vector<Value> replaced;  // the handles of strings may be read again, as another output
  for (size_t i = 0; i < results.size(); ++i) {
    const TensorView& value = frame.values[program.outputs[i]];
    if (value.kind != ValueKind::kTensor) {
      results[i] = copy(value);
    } else if (value.type == ElementType::kString) {
      Value made = copy(value);
      replaced.push_back(std::exchange(results[i], std::move(made)));
    } else if (!program.values[program.outputs[i]].is_static) {
      if (!results[i] && arena != nullptr) {
        results[i] = make_tensor(arena, value.type, {value.dims.begin(), value.dims.end()});
      } else if (!results[i]) {
        results[i] = copy(value);
        continue;
      }
      const Value& bound = results[i];
      if (bound.GetElementType() != value.type ||
          !std::equal(value.dims.begin(), value.dims.end(), bound.GetShape().begin(), bound.GetShape().end()))
        fail(ErrorCode::kInvalidArgument, "output '{}': bound to shape {}, the run made {}",
             output_name(plan, i), to_string(bound.GetShape()), to_string(value.dims));
      if (value.bytes() > 0) std::memcpy(bound.impl()->data, value.data, static_cast<size_t>(value.bytes()));
    }
  }
}

void Session::Impl::run(const RunOptions& run_options, const Io& io) {
  check_inputs(io.inputs);
  model->verify_weights();
  static const Wanted all;
  const auto start = Trace::Clock::now();
  const std::shared_ptr<ShapePlan> plan = plan_for(io.inputs, io.wanted != nullptr ? *io.wanted : all);
  Slot slot(*this, run_options);

  Budget run_budget("run", 0, &budget);
  const int64_t run_limit = run_options.memory_limit_bytes();
  if (run_limit > 0) {
    const int64_t fixed = plan->planned_bytes() + plan->bound_bytes();
    if (fixed > run_limit)
      fail(ErrorCode::kBudgetExceeded, "the run's limit of {} bytes is too small: these shapes need {} bytes",
           run_limit, fixed);
    run_budget.set_limit_bytes(run_limit - plan->planned_bytes());
  }
  const int64_t pooled = pooled_output_bytes(*plan, io.outputs);
  Charge bound = take_memory(*slot, plan, run_budget, plan->bound_bytes() - pooled);
  if (pooled > 0) take_from_run(run_budget, pooled);
  std::vector<TensorView>& input_views = (*slot).inputs;
  std::vector<TensorView>& output_views = (*slot).outputs;
  input_views.clear();
  output_views.clear();
  DynamicMemory dynamic(run_budget, arena.get());
  for (size_t i = 0; i < io.inputs.size(); ++i) {
    if (inputs[i].kind != ValueKind::kTensor) bound.grow(value_bytes(io.inputs[i]));
    input_views.push_back(view_of(io.inputs[i], inputs[i].type, dynamic));
  }
  make_outputs(*plan, io.outputs, output_views);

  Executor::Context context;
  const bool has_team = model->options().threads > 1 && !env->team_busy.exchange(true);
  context.threads = has_team ? model->options().threads : 1;
  struct ReleaseTeam {
    std::atomic<bool>* busy;
    ~ReleaseTeam() {
      if (busy != nullptr) busy->store(false);
    }
  } const release{has_team ? &env->team_busy : nullptr};
  context.options = &run_options;
  context.dynamic = &dynamic;
  context.budget = &run_budget;
  context.poison = options.poison;
  const uint64_t runs_before = runs_.fetch_add(1, std::memory_order_relaxed);
  context.random_seed =
      kernels::mix_bits(random_seed_ + io.counter.value_or(run_options.random_seed().value_or(runs_before)));
  context.run_number = runs_before + 1;
  Profile own_profile;
  if (profiling_) own_profile.entries.resize(model->graph().node_count());
  context.profile = own_profile.entries.empty() ? nullptr : &own_profile;
  context.trace = trace.get();
  Frame& frame = plan->frame((*slot).index);
  const auto execution = Trace::Clock::now();
  {
    const FlushDenormals flush(options.denormal_as_zero, context.threads);
    Executor(context).run(frame, (*slot).planned.data(), input_views, output_views);
  }
  if (trace != nullptr) trace->add_session_event("SequentialExecutor::Execute", execution);
  finish_outputs(*plan, frame, io.outputs, bound);
  if (context.profile != nullptr) add_to_profile(own_profile);
  if (trace != nullptr) trace->add_session_event("model_run", start, run_options.GetRunTag());
}

void Session::Impl::enable_profiling(bool on) {
  const std::lock_guard lock(slots_mutex_);
  profile_.entries.assign(on ? model->graph().node_count() : 0, {});
  profiling_ = on;
}

Profile Session::Impl::profile() const {
  const std::lock_guard lock(slots_mutex_);
  return profile_;
}

void Session::Impl::add_to_profile(const Profile& run) {
  const std::lock_guard lock(slots_mutex_);
  if (profile_.entries.size() != run.entries.size()) return;  // turned off meanwhile
  for (size_t i = 0; i < run.entries.size(); ++i) {
    const Profile::Entry& from = run.entries[i];
    Profile::Entry& to = profile_.entries[i];
    if (from.node != nullptr) to.node = from.node;
    to.count += from.count;
    to.nanoseconds += from.nanoseconds;
    to.operations += from.operations;
    to.bytes += from.bytes;
  }
}

void Session::Impl::release_memory() {
  const std::lock_guard lock(slots_mutex_);
  for (auto& slot : idle_) slot->release();
  if (arena != nullptr && owns_arena_) arena->shrink(true);
}

void Session::Impl::release_idle_regions() {
  if (arena != nullptr) arena->shrink();
}

void Session::Impl::run_some(const RunOptions& run_options, std::span<const Value> given,
                             std::span<const size_t> numbers, std::span<Value> values) {
  Wanted wanted;
  if (run_options.only_execute_path_to_fetches()) {
    wanted.emplace(numbers.begin(), numbers.end());
    std::sort(wanted->begin(), wanted->end());
    wanted->erase(std::unique(wanted->begin(), wanted->end()), wanted->end());
    if (wanted->size() == model->graph().outputs.size()) wanted.reset();
  }
  const auto place = [&](size_t number) {
    if (!wanted) return number;
    return static_cast<size_t>(std::find(wanted->begin(), wanted->end(), number) - wanted->begin());
  };
  std::vector<Value> made(wanted ? wanted->size() : outputs.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    Value& bound = made[place(numbers[i])];
    if (!values[i]) continue;
    if (bound && bound.impl() != values[i].impl())
      fail(ErrorCode::kInvalidArgument, "output '{}': expected one place for it, found two",
           outputs[numbers[i]].name);
    bound = values[i];
  }
  run(run_options, {given, made, &wanted});
  for (size_t i = 0; i < numbers.size(); ++i) values[i] = made[place(numbers[i])];
}

}  // namespace plimsoll
