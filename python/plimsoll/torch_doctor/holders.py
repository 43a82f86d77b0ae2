"""Who keeps an object alive: the chain of references from it up to a name in somebody's code."""
import gc
import inspect
import io
import sys
import types

from . import source, tensors

_MOST_FRONTIER = 300
_DEPTH = 14
_PEEKING_AT_LOCALS = frozenset({"locals", "vars"})
_NOT_STATE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, str, int, float, type(None))
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)
HOOK_DICTIONARIES = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks",
                     "_state_dict_hooks", "_load_state_dict_pre_hooks")


class Root:
    """A name that ends the chain."""

    def __init__(self, kind, name, place=None, function=""):
        self.kind, self.name, self.place, self.function = kind, name, place, function


class Holder:
    """The answer: how the caller would write what keeps the object, and who owns it."""

    def __init__(self, root, expression, name, owner, owner_kind, traceback, file):
        self.root = root                # None: nothing that has a name; a cycle, or a holder in C++
        self.expression = expression    # "model.encoder.cache"
        self.name = name                # "cache": what a search for the line that fills it looks for
        self.owner = owner              # "encoder.Encoder", the nearest object with attributes, or ""
        self.owner_kind = owner_kind    # "module", "dataset", "hook", "stream" or ""
        self.traceback = traceback      # passes through an exception's traceback
        self.file = file                # where to look for the line

    def __str__(self):
        if self.root is None:
            return self.expression
        where = {"local": f"local variable of {self.root.function}()", "global": "global variable",
                 "class": "class attribute", "function": "kept by a function",
                 "generator": f"local variable of generator {self.root.function}()"}[self.root.kind]
        place = f", {self.root.place}" if self.root.place else ""
        return f"{self.expression} ({where}{place})"

    def lines_that_fill(self):
        function = self.root.function if self.root is not None and self.root.kind == "local" else None
        files = [self.file, self.root.place.file if self.root is not None and self.root.place else None]
        for file in dict.fromkeys(filter(None, files)):
            places = source.places_that_fill(file, self.name, self.owner.split(".")[-1] or function)
            if places:
                return places
        return []


def frame_locals(frame, use):
    """Calls use(name, value) for a frame's variables and leaves the frame as it was: before Python 3.13, f_locals of a
    function is a dictionary that stays with the frame and would keep the values alive."""
    if not _PEEKING_AT_LOCALS.isdisjoint(frame.f_code.co_names):
        return  # it may hold that very dictionary, and would see it change
    variables = frame.f_locals
    for name, value in list(variables.items()):
        use(name, value)
    name = value = None
    ours_alone = sys.getrefcount(variables) <= 3  # the frame's, ours, the argument's; more: somebody called locals()
    if type(variables) is dict and frame.f_code.co_flags & inspect.CO_OPTIMIZED and ours_alone:
        variables.clear()


class Search:
    """Names as they are now; made for one moment, then thrown away."""

    def __init__(self):
        self.names = {}      # id of a value -> Root
        self.modules = {}    # id of a module's dictionary -> module
        self.ignored = {id(self.names), id(self.modules), id(self)}
        for module in list(sys.modules.values()):
            if isinstance(module, types.ModuleType):
                self.modules[id(module.__dict__)] = module
                self._name_globals(module)
        for frame in list(sys._current_frames().values()):
            while frame is not None:
                self._name_variables(frame)
                frame = frame.f_back

    def _name_globals(self, module):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and source.belongs_to_caller(file):
            for name, value in list(module.__dict__.items()):
                if not isinstance(value, _NOT_STATE):
                    self.names.setdefault(id(value), Root("global", name, source.Place(file, 0)))

    def _name_variables(self, frame):
        code = frame.f_code
        if not code.co_flags & inspect.CO_OPTIMIZED or not source.belongs_to_caller(code.co_filename):
            return  # a module's variables are found through its dictionary
        place = source.place_of_frame(frame)

        def use(name, value):
            known = self.names.get(id(value))
            if known is None or known.name in ("self", "cls"):  # its owner's name says more
                self.names[id(value)] = Root("local", name, place, code.co_name)
        frame_locals(frame, use)

    def find(self, target):
        """The Holder of `target`, by the shortest chain."""
        chain, root = self._chain(target)
        try:
            return _describe(chain, root)
        finally:
            chain.clear()

    def _chain(self, target):
        objects, held_by = [target], {id(target): -1}  # index of what it holds
        frontier = [0]
        self.ignored.update((id(objects), id(held_by), id(frontier)))
        for _ in range(_DEPTH):
            for index in frontier:
                root = self._root(objects[index], objects, held_by)
                if root is not None:
                    return _back(objects, held_by, index), root
            frontier = self._referrers(objects, held_by, frontier)
            if not frontier:
                break
        return [target], None

    def _root(self, thing, objects, held_by):
        named = self.names.get(id(thing))
        if named is not None:
            return named
        module = self.modules.get(id(thing))
        if module is not None:
            held = objects[held_by[id(thing)]] if held_by[id(thing)] >= 0 else None
            name = next((key for key, value in list(thing.items()) if value is held), "?")
            file = getattr(module, "__file__", None)
            return Root("global", name, source.Place(file, 0) if file else None)
        if isinstance(thing, type):
            return Root("class", f"{thing.__qualname__}", _place_of_class(thing))
        if isinstance(thing, _FUNCTIONS):
            return Root("function", f"{thing.__qualname__}()", source.place_of_function(thing))
        if isinstance(thing, types.GeneratorType) and thing.gi_frame is not None:
            code = thing.gi_code
            return Root("generator", code.co_name, source.Place(code.co_filename, thing.gi_frame.f_lineno),
                        code.co_name)
        return None

    def _referrers(self, objects, held_by, frontier):
        held = [objects[index] for index in frontier]
        index_of = {id(objects[index]): index for index in frontier}
        self.ignored.update((id(held), id(index_of)))
        found, following = gc.get_referrers(*held), []
        self.ignored.add(id(found))
        for thing in found:
            if id(thing) in held_by or id(thing) in self.ignored or len(following) >= _MOST_FRONTIER:
                continue
            if isinstance(thing, types.FrameType) and not source.belongs_to_caller(thing.f_code.co_filename):
                if thing.f_code.co_filename.startswith(source._HERE):
                    continue
            index = next((index_of[id(part)] for part in gc.get_referents(thing) if id(part) in index_of), None)
            if index is None:
                continue
            objects.append(thing)
            held_by[id(thing)] = index
            following.append(len(objects) - 1)
        thing = None
        held.clear()
        found.clear()
        return following


def _back(objects, held_by, index):
    """From the root's end down to the target."""
    chain = []
    while index >= 0:
        chain.append(objects[index])
        index = held_by[id(objects[index])]
    return chain


def _place_of_class(kind):
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return source.Place(file, 0) if file else None


def _name_in_frame(frame, held):
    found = []
    frame_locals(frame, lambda name, value: found.append(name) if value is held else None)
    return found[0] if found else "?"


def _step(holder, held):
    """How code would get from `holder` to `held`: (text, name)."""
    if isinstance(holder, types.FrameType):
        name = _name_in_frame(holder, held)
        return f" -> {name} in {holder.f_code.co_name}()", name
    if isinstance(holder, types.TracebackType):
        return ("", "") if isinstance(held, types.TracebackType) else (" -> frame", "")
    if isinstance(holder, BaseException) and isinstance(held, types.TracebackType):
        return ".__traceback__", ""
    if isinstance(holder, dict):
        key = next((key for key, value in list(holder.items()) if value is held), None)
        return f"[{key!r}]" if type(key) in (str, int) else "[...]", ""
    if isinstance(holder, (list, tuple)):
        return "[...]", ""
    if isinstance(holder, types.CellType):
        return "", ""
    attributes = getattr(holder, "__dict__", None)
    if isinstance(attributes, dict):
        if attributes is held:
            return "", ""
        name = next((key for key, value in list(attributes.items()) if value is held), None)
        if name is not None:
            return f".{name}", name
    return f" -> {type(held).__name__}", ""


def _describe(chain, root):
    if root is None:
        return Holder(None, "nothing that has a name (a cycle of references, or a holder in C++)", "", "", "", False,
                      None)
    traceback = any(isinstance(thing, (types.TracebackType, BaseException)) for thing in chain)
    expression, name, owner, owner_kind, file = root.name, root.name, "", "", None
    if root.kind == "global" and isinstance(chain[0], dict) and chain[0].get(root.name) is (chain + [None])[1]:
        chain = chain[1:]  # the module's dictionary: its key is the root's name
    if root.kind == "generator":
        expression = name = _name_in_frame(chain[0].gi_frame, chain[1]) if len(chain) > 1 else root.name
        chain = chain[1:]
    for position in range(len(chain) - 1):
        holder, held = chain[position], chain[position + 1]
        before = chain[position - 1] if position else None
        if isinstance(holder, dict) and getattr(before, "__dict__", None) is holder:
            name = next((key for key, value in list(holder.items()) if value is held), "?")
            expression += f".{name}"
        elif isinstance(holder, dict) and _is_module_table(holder, chain, position):
            key = next((key for key, value in list(holder.items()) if value is held), "?")
            expression, name = expression.rsplit(".", 1)[0] + f".{key}", key
        else:
            text, step_name = _step(holder, held)
            expression, name = expression + text, step_name or name
        kind = _owner_kind(holder)
        if kind or (hasattr(holder, "__dict__") and not isinstance(holder, (types.ModuleType, types.FunctionType))):
            owner, owner_kind = type(holder).__qualname__, kind
            file = getattr(sys.modules.get(type(holder).__module__), "__file__", None) or file
    if any(f".{table}" in expression for table in HOOK_DICTIONARIES):
        owner_kind = "hook"
    # A text stream's list of what was printed and is not written yet: no attribute, so nothing stands between them.
    if len(chain) > 1 and isinstance(chain[-2], io.TextIOWrapper):
        owner_kind = "stream"
    return Holder(root, expression, name, owner, owner_kind, traceback, file)


def _is_module_table(holder, chain, position):
    """`holder` is some Module's _modules, _parameters or _buffers, whose keys read as attributes."""
    for thing in chain[max(0, position - 2):position]:
        tables = getattr(thing, "__dict__", {})
        if any(tables.get(table) is holder for table in ("_modules", "_parameters", "_buffers")):
            return True
    return False


def _owner_kind(thing):
    torch = tensors.torch()
    if torch is None:
        return ""
    if isinstance(thing, torch.nn.Module):
        return "module"
    data = sys.modules.get("torch.utils.data")
    return "dataset" if data is not None and isinstance(thing, (data.Dataset, data.DataLoader)) else ""
