"""What a DataLoader in this process copies for each batch. Looks at items as they pass; asks for none itself."""
import inspect

from . import source, tensors

_CONVERSIONS = ("float", "double", "half", "long", "int", "to", "astype", "tensor", "as_tensor", "array", "copy",
                "clone", "asarray", "ascontiguousarray", "FloatTensor", "Tensor", "type", "contiguous")


class LoaderNotes:
    """One dataset's batches, as far as they were looked at."""

    def __init__(self, dataset):
        self.dataset = type(dataset).__qualname__
        self.batches_seen = 0
        self.looked_at = 0
        self.items = 0
        self.item_bytes = 0
        self.copied_bytes = 0       # items that are not views of what the dataset holds
        self.batch_bytes = 0
        self.converted = set()      # ("float64", "float32"): what is held and what comes out
        self.places = _conversion_places(dataset)

    def wants_look(self):
        self.batches_seen += 1
        return self.batches_seen <= 3 or self.batches_seen & (self.batches_seen - 1) == 0

    def look(self, dataset, items, collate):
        """Notes the items, collates them and returns the batch."""
        self._note_items(dataset, items)
        batch = collate(items)
        self.batch_bytes += sum(tensors.storages(batch).values())
        return batch

    def _note_items(self, dataset, items):
        try:
            held = _held_ranges(dataset)
            leaves = [leaf for item in (items if isinstance(items, list) else [items]) for leaf in _leaves(item)]
            self.looked_at += 1
            self.items += len(items) if isinstance(items, list) else 1
            for address, size, dtype in leaves:
                self.item_bytes += size
                if not any(low <= address < high for low, high, _ in held):
                    self.copied_bytes += size
                    sources = {name for _, _, name in held}
                    if held and dtype not in sources:
                        self.converted.add((sorted(sources)[0], dtype))
        except Exception:  # an item that cannot be looked at is the caller's, not our trouble
            pass


def _leaves(item, depth=4):
    """(address, bytes, dtype) of the tensors and arrays in an item."""
    if isinstance(item, tensors.torch().Tensor):
        yield item.data_ptr(), item.numel() * item.element_size(), str(item.dtype)[6:]
    elif tensors.is_array(item):
        yield item.__array_interface__["data"][0], item.nbytes, str(item.dtype)
    elif depth and isinstance(item, dict):
        for part in item.values():
            yield from _leaves(part, depth - 1)
    elif depth and isinstance(item, (list, tuple)):
        for part in item:
            yield from _leaves(part, depth - 1)


def _held_ranges(dataset):
    """[(low, high, dtype)] of the arrays and tensors among the dataset's attributes."""
    ranges = []
    for value in list(getattr(dataset, "__dict__", {}).values())[:64]:
        values = value[:64] if isinstance(value, (list, tuple)) else [value]
        for part in values:
            for address, size, dtype in _leaves(part, 1):
                ranges.append((address, address + max(size, 1), dtype))
    return ranges


def _conversion_places(dataset):
    method = getattr(type(dataset), "__getitem__", None) or getattr(type(dataset), "__iter__", None)
    code = getattr(inspect.unwrap(method), "__code__", None) if method else None
    if code is None or not source.belongs_to_caller(code.co_filename):
        return []
    return source.places_that_call(code.co_filename, _CONVERSIONS, code.co_firstlineno, source.end_of_function(code))
