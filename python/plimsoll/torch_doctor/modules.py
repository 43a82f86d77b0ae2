"""A module's state that inference should leave alone: hooks, training mode, buffers, parameters."""
import collections
import sys
import zlib

from . import holders, source, tensors

_MODE_MATTERS = ("Dropout", "BatchNorm", "InstanceNorm", "RReLU", "SyncBatchNorm", "LazyBatchNorm", "FeatureAlpha",
                 "AlphaDropout", "Fractional")
_CHECKSUM_LIMIT_BYTES = 32 << 20
_GLOBAL_HOOKS = ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks",
                 "_global_backward_pre_hooks")


class ModuleState:
    """Figures of one moment; holds no tensor."""

    def __init__(self, root):
        self.hooks = collections.Counter()   # (module's name, kind of hook) -> how many
        self.newest_hooks = {}               # the same key -> Place of the newest hook's function
        self.training = []                   # [(name, type)] in training mode that behave differently in it
        self.in_training_mode = bool(getattr(root, "training", False))
        self.buffers = {}                    # name -> fingerprint
        self.buffer_bytes = 0
        self.parameter_versions = {}
        self.has_gradients = False
        named_modules = list(root.named_modules()) if hasattr(root, "named_modules") else []
        for name, module in named_modules:
            self._count_hooks(name, module)
            if module.training and _mode_matters(module):
                self.training.append((name, type(module).__name__))
        self._count_global_hooks()
        if named_modules:
            self._read_tensors(root)

    def _count_hooks(self, name, module):
        for kind in holders.HOOK_DICTIONARIES:
            hooks = module.__dict__.get(kind)
            if hooks:
                self._note(name, kind, hooks)
        for parameter_name, parameter in list(module.__dict__.get("_parameters", {}).items()):
            hooks = getattr(parameter, "_backward_hooks", None)
            if hooks:
                self._note(f"{name}.{parameter_name}".lstrip("."), "tensor hook", hooks)

    def _count_global_hooks(self):
        module = sys.modules["torch.nn.modules.module"]
        for kind in _GLOBAL_HOOKS:
            hooks = getattr(module, kind, None)
            if hooks:
                self._note("every module", kind, hooks)

    def _note(self, name, kind, hooks):
        self.hooks[name, kind] = len(hooks)
        self.newest_hooks[name, kind] = source.place_of_function(next(reversed(list(hooks.values()))))

    def _read_tensors(self, root):
        self.buffer_bytes = sum(tensors.storages(list(root.buffers())).values())
        checksums = self.buffer_bytes <= _CHECKSUM_LIMIT_BYTES
        self.buffers = {name: _fingerprint(buffer, checksums) for name, buffer in root.named_buffers()}
        for name, parameter in root.named_parameters():
            self.parameter_versions[name] = _version(parameter)
            self.has_gradients = self.has_gradients or parameter.grad is not None


def _mode_matters(module):
    kind = type(module)
    if any(word in kind.__name__ for word in _MODE_MATTERS) and tensors.is_torchs_own(kind):
        return getattr(module, "p", 1) != 0 and (getattr(module, "track_running_stats", True) is not False)
    if tensors.is_torchs_own(kind):
        return bool(getattr(module, "dropout", 0)) and isinstance(module.dropout, float)
    # Somebody's own: does its forward ask?
    return "training" in getattr(getattr(kind.forward, "__code__", None), "co_names", ())


def _version(tensor):
    try:
        return tensor._version
    except RuntimeError:
        return None  # inference tensors do not count


def _fingerprint(buffer, checksum):
    address, size = tensors.storage_of(buffer)
    if checksum and buffer.device.type == "cpu":
        try:
            return size, zlib.crc32(buffer.detach().contiguous().view(-1).numpy().tobytes())
        except (RuntimeError, TypeError, ValueError):
            pass  # a type that numpy does not know
    return size, address, _version(buffer)


def changed_buffers(first, last):
    """Names of buffers whose values differ, or that came since."""
    return [name for name, mark in last.buffers.items() if first.buffers.get(name) != mark]


def grown_hooks(first, last):
    """[((module's name, kind), how many more)], most first."""
    rows = [(key, count - first.hooks.get(key, 0)) for key, count in last.hooks.items()]
    return sorted((row for row in rows if row[1] > 0), key=lambda row: -row[1])


def is_trained(first, last):
    """Somebody's optimizer is at work: a recorded graph and training mode are meant."""
    return last.has_gradients or any(first.parameter_versions.get(name, version) != version
                                     for name, version in last.parameter_versions.items())
