"""Follows a loop from outside: samples at the start of each iteration, takes a census now and then, explains growth."""
import contextlib
import gc
import os
import sys
import threading
import time
import weakref

from . import census as censuses
from . import diagnose, explain, holders, loaders, modules, patches, process, source, tensors
from .report import Report
from .series import Series

REFERENCE_ITERATION = 2  # what came before is warm-up


@contextlib.contextmanager
def collector_off():
    """What the caller's garbage holds is not freed in the doctor's time: it would be taken for the doctor's."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class RootCall:
    """A line of the caller's that calls a module."""

    def __init__(self, module, frame):
        self.type_name = type(module).__qualname__
        self.place = source.place_of_frame(frame)
        self.variable = _variable_of(frame, module)
        self.calls = 0
        self.looked_at = 0
        self.recorded = 0             # calls whose result carries a graph
        self.saved = None             # of the last recorded call that was looked at
        self.grad_enabled = self.inference_mode = False
        self.first_state = self.last_state = None
        self.first_state_call = self.last_state_call = 0
        self.module = None
        self.weights = {}             # {address: bytes} of parameters and buffers

    def note_state(self, module):
        """The state of hooks, buffers and modes, once after the first call and from then on the newest."""
        state = modules.ModuleState(module)
        if self.first_state is None:
            self.first_state, self.first_state_call = state, self.calls
        self.last_state, self.last_state_call = state, self.calls
        self.module = weakref.ref(module)
        self.weights = tensors.storages(list(module.parameters()) + list(module.buffers())) if hasattr(
            module, "parameters") else {}


def _variable_of(frame, module):
    names = []
    holders.frame_locals(frame, lambda name, value: names.append(name) if value is module else None)
    names += [name for name, value in list(frame.f_globals.items()) if value is module]
    return names[0] if names else "model"


class Watch:
    """start(), the caller's loop, stop(): then `report` is filled. Any thread may call modules meanwhile."""

    def __init__(self):
        self.report = Report(self.step)
        self.iteration = 0            # completed
        self.steps_given = False
        self.step_name = "one step() of yours"
        self.roots = {}               # (type, file, line) -> RootCall
        self.loaders = {}             # id of a dataset -> LoaderNotes
        self.readings = Series(("anonymous", "in_use", "mapped_in_use", "heap_live"))
        self.summaries = []           # of every census: iteration, tensors, bytes, nodes, Python bytes, generated code
        self.reference = self.previous = self.last = None   # censuses
        self.reference_reading = self.last_reading = None
        self.first_reading = None
        self.first_tensor_bytes = 0
        self.growths, self.explained_at = [], 0
        self.container_lengths = {}
        self.workers = []             # (iteration, {pid: private bytes})
        self.hooks_used = False
        self.overhead_seconds = 0.0
        self.own = process.Reading()  # what the doctor's own work added since the first reading
        self.experiments = {}
        self._next_census = REFERENCE_ITERATION
        self._next_explain = 0
        self._busy = threading.Lock()
        self._local = threading.local()
        self._caller = (0, None)
        self._attached = False
        self._started = time.perf_counter()

    # --- life -------------------------------------------------------------------------------------------------

    def start(self):
        """Imports torch if nobody has."""
        patches.attach(self)
        self._attached = True
        self._started = time.perf_counter()
        return self

    def stop(self, experiments=True):
        """Puts torch back and fills the report; with `experiments` also collects garbage and trims malloc's heap."""
        self.wall_seconds = time.perf_counter() - self._started
        begin = time.perf_counter()
        if self._attached:
            patches.detach(self)
            self._attached = False
        if self.iteration > REFERENCE_ITERATION and self._loop_is_alive():
            with self._busy, collector_off():
                self._sample(self.iteration, census=True)
        if experiments:
            self._experiment()
        self.overhead_seconds += time.perf_counter() - begin
        self.wall_seconds += time.perf_counter() - begin
        diagnose.fill(self.report, self)
        return self.report

    def _loop_is_alive(self):
        """The function that ran the loop has not returned: what it kept is still there to be counted."""
        frame = sys._getframe()
        while frame is not None:
            if (id(frame), frame.f_code) == self._caller:
                return True
            frame = frame.f_back
        return False

    def _experiment(self):
        before = process.read()
        tensors_before = censuses.take(self.iteration, not self.hooks_used)
        gc.collect()
        tensors_after = censuses.take(self.iteration, not self.hooks_used)
        collected = process.read()
        trimmed = process.trim()
        self.experiments = {"before": before, "collected": collected, "trimmed": process.read() if trimmed else None,
                            "cycle_bytes": tensors_before.all_tensor_bytes - tensors_after.all_tensor_bytes,
                            "cycle_tensors": tensors_before.tensor_count - tensors_after.tensor_count}

    # --- called by the replaced methods; nothing here may raise -------------------------------------------------

    def before_call(self, module, arguments):
        begin = time.perf_counter()
        try:
            frame = source.caller_frame(sys._getframe(1))
            root = self._root(module, frame)
            self._local.root = root
            if not self.steps_given and root.calls == self.iteration:
                self._tick(root.calls, frame)
                self.iteration = max(self.iteration, root.calls + 1)
            self._look_before(root, module)
            root.calls += 1
        except Exception as error:
            self._failed(error)
        finally:
            frame = None
            self.overhead_seconds += time.perf_counter() - begin

    def after_call(self, module, arguments, result):
        begin = time.perf_counter()
        try:
            root = self._local.root
            if root is not None:
                self._look_after(root, module, arguments, result)
        except Exception as error:
            self._failed(error)
        finally:
            self._local.root = None
            self.overhead_seconds += time.perf_counter() - begin

    def fetcher(self, fetcher):
        try:
            notes = self.loaders.get(id(fetcher.dataset))
            if notes is None:
                notes = self.loaders[id(fetcher.dataset)] = loaders.LoaderNotes(fetcher.dataset)
            return notes if notes.wants_look() else None
        except Exception as error:
            self._failed(error)
            return None

    def saved_tensor_hooks_used(self):
        self.hooks_used = True

    def step(self):
        """The caller's own iteration begins."""
        begin = time.perf_counter()
        try:
            if not self.steps_given:
                self.steps_given, self.iteration = True, 0
            self._tick(self.iteration, source.caller_frame(sys._getframe(1)))
            self.iteration += 1
        except Exception as error:
            self._failed(error)
        finally:
            self.overhead_seconds += time.perf_counter() - begin

    def _failed(self, error):
        note = f"the doctor itself failed and looked no further there: {type(error).__name__}: {error}"
        if note not in self.report.notes and len(self.report.notes) < 5:
            self.report.notes.append(note)

    # --- looking ------------------------------------------------------------------------------------------------

    def _root(self, module, frame):
        key = (type(module), frame.f_code.co_filename, frame.f_lineno)
        root = self.roots.get(key)
        if root is None:
            root = self.roots[key] = RootCall(module, frame)
        return root

    def _look_before(self, root, module):
        torch = tensors.torch()
        root.grad_enabled = root.grad_enabled or torch.is_grad_enabled()
        root.inference_mode = root.inference_mode or torch.is_inference_mode_enabled()
        # After the first call, then whenever their number doubles: states are compared from call to call.
        root.look = root.calls < 2 or root.calls & (root.calls - 1) == 0 or (
            self.last is not None and root.looked_at < self.last.iteration)
        if root.look and root.calls >= 1:
            with collector_off():
                before = process.read()
                root.note_state(module)
                self.own += process.read() - before

    def _look_after(self, root, module, arguments, result):
        if root.look:
            with collector_off():
                root.looked_at, before = self.iteration, process.read()
                saved = tensors.saved_by_call(result, arguments, module, not self.hooks_used)
                root.saved = saved or root.saved
                root.recorded += saved is not None
                self.own += process.read() - before
        elif any(tensor.requires_grad and tensor.grad_fn is not None for tensor in tensors.nested_tensors(result)):
            root.recorded += 1

    def _tick(self, iteration, frame):
        if not self._busy.acquire(blocking=False):
            return  # another thread is being sampled
        try:
            self._caller = (id(frame), frame.f_code)
            due = iteration >= self._next_census
            if due or self.readings.wants(iteration):
                with collector_off():
                    self._sample(iteration, due)
        finally:
            self._busy.release()

    def _sample(self, iteration, census):
        if self.first_reading is None:
            # What the doctor needs once, it takes before the first reading.
            self.reference, self.previous, self.last = (censuses.take(iteration) for _ in range(3))
            self.first_tensor_bytes = self.last.all_tensor_bytes
            explain.explain(self.last, self.last, self.last, {})
            self.first_code_bytes = process.generated_code_bytes()
            self.first_reading = process.read()
            self._note(iteration, self.first_reading)
            return
        reading = process.read()
        self._note(iteration, reading)
        if census:
            self._next_census = max(iteration + 2, iteration * 3 // 2)
            self._take_census(iteration, reading)
            self.own += process.read() - reading

    def _note(self, iteration, reading):
        self.readings.add(iteration, anonymous=reading.anonymous_bytes,
                          in_use=reading.in_use_bytes - self.own.in_use_bytes,
                          mapped_in_use=reading.mapped_in_use_bytes - self.own.mapped_in_use_bytes,
                          heap_live=reading.heap_live_bytes - self.own.heap_live_bytes)

    def _take_census(self, iteration, reading):
        census = censuses.take(iteration, not self.hooks_used)
        if self.reference_reading is None:
            self.reference, self.reference_reading = census, reading
            self.baseline_code_bytes = process.generated_code_bytes() - self.first_code_bytes
        self.previous, self.last, self.last_reading = self.last, census, reading
        self.summaries.append((iteration, census.tensor_count, census.all_tensor_bytes, census.graph_nodes,
                               census.python_bytes, process.generated_code_bytes()))
        self._read_workers(iteration, census)
        if len(self.summaries) >= 3 and iteration >= self._next_explain:
            weights = {address: size for root in self.roots.values() for address, size in root.weights.items()}
            self.growths = explain.explain(self.reference, self.previous, census, weights, not self.hooks_used)
            self.explained_at = iteration
            self._next_explain = iteration * 2
        self.container_lengths[iteration] = {growth.identity: census.lengths().get(growth.identity)
                                             for growth in self.growths if growth.identity}

    def _read_workers(self, iteration, census):
        private = {pid: process.private_bytes(process.read_rollup(pid)) for pid in census.worker_pids
                   if pid != os.getpid()}
        private = {pid: size for pid, size in private.items() if size}
        if private:
            self.workers.append((iteration, private))
