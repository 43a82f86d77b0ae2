"""`python -m plimsoll.quantization.preprocess --input IN --output OUT`: ONNX Runtime's command before quantization."""
import argparse
import sys
from typing import Optional, Sequence

from .shape_inference import quant_pre_process

__all__ = ["parse_arguments", "quant_pre_process"]

# ONNX Runtime's options that only say how shapes are to be found: quantization here finds them itself.
_FLAGS = ("skip_onnx_shape", "auto_merge", "guess_output_rank")
_NUMBERS = ("int_max", "verbose")
# A model that is written here is one file.
_EXTERNAL = ("save_as_external_data", "all_tensors_to_one_file")


def parse_arguments(arguments: Optional[Sequence[str]] = None) -> argparse.Namespace:
    """ONNX Runtime's options; a flag may have a value (True, False), as there."""
    parser = argparse.ArgumentParser(prog="preprocess", description="Folds constants, as quantization likes it.")
    parser.add_argument("--input", required=True, help="the model")
    parser.add_argument("--output", required=True, help="where the prepared model goes")
    for name in ("skip_optimization", "skip_symbolic_shape", *_FLAGS, *_EXTERNAL):
        parser.add_argument(f"--{name}", type=_truth, nargs="?", const=True, default=False,
                            help="fold nothing" if name == "skip_optimization" else "accepted, without effect")
    for name in _NUMBERS:
        parser.add_argument(f"--{name}", type=int, default=0, help="accepted, without effect")
    parser.add_argument("--external_data_location", help="accepted, without effect")
    parser.add_argument("--external_data_size_threshold", type=int, default=1024, help="accepted, without effect")
    return parser.parse_args(arguments)


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0"):
        raise argparse.ArgumentTypeError(f"expected True or False, found {text!r}")
    return text.lower() in ("true", "1")


def main() -> int:
    given = parse_arguments()
    try:
        quant_pre_process(given.input, given.output, given.skip_optimization)
    except (OSError, ValueError, RuntimeError) as error:
        print(f"preprocess: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
