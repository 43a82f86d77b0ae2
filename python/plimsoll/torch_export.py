"""from_torch: a PyTorch module, exported once, run by Plimsoll."""
import inspect
import io
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from .errors import InvalidArgument
from .inference import InferenceSession
from .options import SessionOptions

if TYPE_CHECKING:
    from .plan import Plan

Axes = Mapping[str, Union[Mapping[int, str], Sequence[int]]]


def _leaves(value: Any, path: str) -> Iterator[Tuple[str, Any]]:
    """The tensors in tuples, lists and dicts, in the order in which torch.onnx has them."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}.{index}" if path else str(index))
    elif value is not None:
        yield path, value


def _rebuilt(like: Any, leaves: Iterator[Any]) -> Any:
    """The structure of `like` with these tensors in it."""
    if isinstance(like, dict):
        return type(like)((key, _rebuilt(item, leaves)) for key, item in like.items())
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return type(like)(*(_rebuilt(item, leaves) for item in like))
    if isinstance(like, (tuple, list)):
        return type(like)(_rebuilt(item, leaves) for item in like)
    return None if like is None else next(leaves)


def _skeleton(value: Any) -> Any:
    """The structure alone: no tensor is kept."""
    return _rebuilt(value, iter(range(sum(1 for _ in _leaves(value, "")))))


class TorchSession:
    """What `from_torch` returns: called as the module is, with torch tensors, and answers with torch tensors.

    `session` is the plimsoll.InferenceSession behind it, `example_plan` what a call with the example's shapes needs.
    """

    def __init__(self, session: InferenceSession, signature: inspect.Signature, names: List[str], answer: Any,
                 shapes: Dict[str, List[int]]):
        self.session = session
        self._signature, self._names, self._answer = signature, names, answer
        self.example_plan: "Plan" = session.plan(shapes)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Runs it. Inputs are read where they are; the answers' memory is theirs and no graph hangs on them."""
        import torch
        leaves = list(_leaves(_bound(self._signature, arguments, keywords), ""))
        if [path for path, _ in leaves] != self._names:
            raise InvalidArgument(f"expected the arguments that it was exported with ({', '.join(self._names)}), "
                                  f"found {', '.join(path for path, _ in leaves)}")
        wanted = {argument.name for argument in self.session.get_inputs()}
        feed = {name: value.detach().numpy() if isinstance(value, torch.Tensor) else value
                for name, value in leaves if name in wanted}
        made = (torch.from_numpy(array) for array in self.session.run(None, feed))
        return _rebuilt(self._answer, made)

    def plan(self, shapes: Optional[Mapping[str, Sequence[int]]] = None) -> "Plan":
        """What a call with these shapes needs, told before; the example's without."""
        return self.example_plan if shapes is None else self.session.plan(shapes)

    def __repr__(self) -> str:
        return f"TorchSession({', '.join(self._names)}; {self.example_plan!r})"


def _bound(signature: inspect.Signature, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Dict[str, Any]:
    """Arguments by the names that forward() gives them; those left at None or another default are not there."""
    bound = signature.bind(*arguments, **keywords)
    flat: Dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            flat.update(value)
        else:
            flat[name] = value
    return flat


def from_torch(module: Any, example_inputs: Any, *, sess_options: Optional[SessionOptions] = None,
               dynamic_axes: Optional[Axes] = None, opset_version: int = 17) -> TorchSession:
    """A PyTorch module exported once, in memory, and run here by the same call: no graph is recorded, nothing of a call is
    kept, and what a call needs is told before.

        >>> fast = plimsoll.from_torch(model, (torch.randn(1, 3, 224, 224),))
        >>> fast                               # its plan
        >>> scores = fast(image)               # as model(image)

    `example_inputs` is a tensor, a tuple of the positional arguments, or a dict of arguments by name. Shapes are those of the
    example unless `dynamic_axes` (as torch.onnx.export has it, by argument name) frees them. The module is exported as in
    eval(), stays in the mode it is in, and is not kept: later changes of its weights do not reach the copy.
    """
    import torch
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"from_torch: expected a torch.nn.Module, found {type(module).__name__}")
    signature = inspect.signature(module.forward)
    keywords = example_inputs if isinstance(example_inputs, dict) else {}
    positional = () if keywords else example_inputs if isinstance(example_inputs, tuple) else (example_inputs,)
    examples = _bound(signature, positional, keywords)
    leaves = list(_leaves(examples, ""))
    if any(not isinstance(value, torch.Tensor) for _, value in leaves):
        raise TypeError("from_torch: the example's arguments must be tensors, or tuples, lists and dicts of them, found "
                        + ", ".join(f"{path}: {type(value).__name__}" for path, value in leaves
                                    if not isinstance(value, torch.Tensor)))
    names = [path for path, _ in leaves]
    answer, model = _export(torch, module, examples, names, dynamic_axes, opset_version)
    session = InferenceSession(model, sess_options)
    inputs = {argument.name for argument in session.get_inputs()}
    shapes = {name: list(value.shape) for name, value in leaves if name in inputs}
    return TorchSession(session, signature, names, answer, shapes)


def _export(torch: Any, module: Any, examples: Dict[str, Any], names: List[str], axes: Optional[Axes],
            opset: int) -> Tuple[Any, bytes]:
    """The structure of what the module returns, and the model."""
    training = module.training
    file = io.BytesIO()
    try:
        module.eval()
        with torch.no_grad():
            answer = module(**examples)
            outputs = [f"output.{path}" if path else "output" for path, _ in _leaves(answer, "")]
            # A dict in the last place is torch.onnx's own way to give arguments by name.
            torch.onnx.export(module, (examples,), file, input_names=names, output_names=outputs,
                              dynamic_axes=dict(axes) if axes else None, opset_version=opset)
        return _skeleton(answer), file.getvalue()
    finally:
        module.train(training)
